# SPDX-License-Identifier: GPL-3.0-or-later
# The front door. `make help` lists what there is; README.md and CONTRIBUTING.md say when to use it.
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Each directory under tests/ that holds tests is a target of its name; but tests/docs is called guides, since docs are
# something to build, and tests/page is left out: pip cannot bring the browser it needs.
FILES := $(wildcard tests/*/test_*.py tests/*/*/test_*.py)
SUITES := $(patsubst docs,guides,$(filter-out page,$(sort $(foreach file,$(FILES),$(word 2,$(subst /, ,$(file)))))))
STEP := tests/tools/step
PYTEST := env TEST_COLLECTIONS=.build/collections python -m pytest -p no:cacheprovider
# Three workers on two cores, since much of the time is waiting; a file's tests share what they set up.
PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder
# What takes long, or what make lint or the tests find almost all of; make sanity runs it.
QUICK := $(foreach test,changelog compile import pep8 pylint yamllint,--skip-test $(test))

.PHONY: help demo test $(SUITES) molecule lint certify sanity matrix stress reliability bench page picture docs coverage \
	mutation release venv artifact clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12
	@echo "and one for each test suite: $(SUITES)"

demo: ## Install the collection and show it at work against the emulator, on one screen
	@$(STEP) demo tests/tools/demo

# make matrix runs the tests marked `matrix`; .ci/run names what it leaves out.
test: artifact ## Run every test that a contributor needs
	@$(STEP) "make test" python tests/tools/parts.py .build/test \
		"pytest=$(PYTEST) --parts $(PARALLEL) --ignore=tests/page tests" \
		"lint=tests/tools/lint" "sanity=tests/tools/sanity $(QUICK)"

$(SUITES): artifact
	@$(STEP) $@ $(PYTEST) tests/$(patsubst guides,docs,$@)

molecule: artifact ## Run the molecule scenarios
	@$(STEP) molecule tests/tools/molecule

lint: artifact ## Run ruff, shellcheck, antsibull-changelog, antsibull-docs, reuse, zizmor, check-jsonschema and ansible-lint
	@$(STEP) lint tests/tools/lint

certify: artifact ## Import the artifact as Galaxy does
	@$(STEP) certify tests/tools/importer

sanity: venv ## Run all of ansible-test sanity
	@$(STEP) sanity tests/tools/sanity

matrix: artifact ## Run what depends on ansible-core on 2.16, 2.19 and 2.22 (or CELLS="2.17 2.18" TESTS=tests/crossing)
	@$(STEP) matrix env TEST_COLLECTIONS=.build/collections python tests/tools/matrix.py $(CELLS) $(TESTS)

stress: artifact ## Run the tests that take longer: exhaustive sweeps, thousands of generated answers, crash loops
	@$(STEP) foreign tests/tools/foreign
	@$(STEP) stress $(PYTEST) --parts --junitxml=.build/stress.xml --ignore=tests/page tests -m stress -n 2 --dist worksteal
	@$(STEP) libraries tests/tools/libraries -n 2

reliability: artifact ## Write the table of faults into docs/reliability.md
	@$(STEP) reliability env PYTHONPATH=tests python -m tools.reliability

bench: artifact ## Measure speed against ansible-core's own modules, and the cost of the ledger (quiet machine)
	@$(STEP) bench tests/tools/bench

page: docs ## Test the site and the pages of emulator and report in a browser; not part of test, since it needs Chromium (apt install chromium)
	@$(STEP) playwright python -m pip install --disable-pip-version-check --quiet -r tests/page/requirements.txt
	@$(STEP) page python -m pytest -p no:cacheprovider tests/page

picture: venv ## Take the picture of a report in the guides anew, in Chromium, after a change of the page
	@$(STEP) playwright python -m pip install --disable-pip-version-check --quiet -r tests/page/requirements.txt
	@$(STEP) picture python tests/page/picture.py

docs: artifact ## Build the site (guides, plugins, pages kept as Markdown) in .build/docs/html
	@$(STEP) docs tests/tools/docs

coverage: artifact ## Measure which lines and branches of plugins and emulator the tests reach
	@$(STEP) coverage env TEST_COLLECTIONS=.build/collections tests/tools/coverage

mutation: venv ## Change plugins/ in one place at a time, and count what no test notices
	@$(STEP) mutation tests/tools/mutation

release: venv ## Check, build and sign a release in .build/release (VERSION=1.2.3 KEY=...); publishing is left to you
	@$(STEP) release python tests/tools/release.py '$(VERSION)' '$(KEY)'

venv: ## Create the virtual environment .venv (PYTHON=... names the interpreter)
	@tests/tools/venv .venv tests/requirements.txt

artifact: venv ## Build the collection and install it into .build/collections
	@$(STEP) artifact tests/tools/install

clean: ## Remove what the targets made
	rm -rf .venv .build .hypothesis .nox .pytest_cache .ruff_cache .ansible
