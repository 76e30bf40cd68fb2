# SPDX-License-Identifier: GPL-3.0-or-later
# The front door: `make help` lists the targets, CONTRIBUTING.md says when to use them, noxfile.py what they do.
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
PYTHON := $(or $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && echo $$python && break; done),python3)
NOX := .venv/bin/nox -s
# Each directory under tests/ that holds tests is a target of its name, but tests/docs is called guides.
SUITES := $(filter-out page,$(subst docs,guides,$(sort $(patsubst tests/%/,%,$(dir $(wildcard tests/*/test_*.py))) unit)))

.PHONY: help demo test slow ci $(SUITES) artifact lint sanity docs molecule certify matrix stress bench mutation page picture \
	reliability release venv clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12
	@echo "unit        Run one test suite; the table in CONTRIBUTING.md has the others"

demo: .build/demo/venv/bin/ansible-playbook ## Show the collection at work against the emulator, on one screen
	@tests/tools/demo

test: venv ## Run every test that a contributor needs
	@$(NOX) test

slow: venv ## Run the slow tests that make test leaves out
	@$(NOX) tests -- -m 'matrix and not stress'

ci: venv ## Run what a build server runs for each change
	@$(NOX) ci

$(SUITES): venv
	@$(NOX) tests -- -m 'not stress' tests/$(subst guides,docs,$@)

artifact: venv ## Build the collection and install it into .build/collections
	@$(NOX) artifact

lint: venv ## Run the linters, and measure the size of the code
	@$(NOX) lint extra-checks

sanity: venv ## Run ansible-test sanity on 2.16, 2.19 and 2.22 (or CORES="2.17")
	@$(NOX) sanity -- $(CORES)

docs: venv ## Build the site in .build/docs/html
	@$(NOX) docs

molecule: venv ## Run the molecule scenarios
	@$(NOX) molecule

certify: venv ## Import the artifact as Galaxy does
	@$(NOX) certify

matrix: venv ## Run what depends on ansible-core on the same (or CORES="2.17")
	@$(NOX) matrix -- $(CORES)

stress: venv ## Run sweeps, generated answers and crash loops: half an hour
	@$(NOX) stress

bench: venv ## Measure speed against uri, and safety, on a quiet machine
	@$(NOX) bench

mutation: venv ## Count the changes that no test notices (ARGUMENTS="--help")
	@$(NOX) mutation -- $(ARGUMENTS)

page: venv ## Test emulator page and report page in Chromium
	@.venv/bin/pip install --quiet -r tests/page/requirements.txt
	@.venv/bin/pytest tests/page

picture: venv ## Take the picture of a report in the guides anew, in Chromium
	@.venv/bin/pip install --quiet -r tests/page/requirements.txt
	@.venv/bin/python tests/page/picture.py

reliability: venv ## Write the tables of docs/reliability.md and of the guide to messages
	@PYTHONPATH=tests .venv/bin/python -m tools.reliability
	@PYTHONPATH=tests .venv/bin/python -m tools.docs_failures

release: venv ## Build and sign a release in .build/release (VERSION=1.2.3 KEY=...)
	@.venv/bin/python tests/tools/release.py '$(VERSION)' '$(KEY)'

venv: .venv/bin/nox ## Create .venv (PYTHON=... names the interpreter)

# A virtual environment with what its file of requirements names.
define install
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("Python 3.11 or later is needed: make PYTHON=/path/to/python3.12")'
	@echo "==> $(@D:/bin=): pip installs $<"
	@test -e $(@D)/python || $(PYTHON) -m venv $(@D:/bin=)
	@$(@D)/python -m pip install --disable-pip-version-check --quiet -r $<
	@touch $@
endef

.venv/bin/nox: tests/requirements.txt tests/requirements-pytest.txt requirements.txt
	$(install)

.build/demo/venv/bin/ansible-playbook: tests/requirements-demo.txt requirements.txt
	$(install)

clean: ## Remove what the targets made
	rm -rf .venv .build .hypothesis .nox .pytest_cache .ruff_cache .ansible
