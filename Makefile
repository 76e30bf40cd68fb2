# SPDX-License-Identifier: GPL-3.0-or-later
# The front door. `make help` lists what there is; README.md and CONTRIBUTING.md say when to use it.
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test unit contract integration molecule lint sanity matrix venv artifact clean

STEP := tests/tools/step
PYTEST := python -m pytest -p no:cacheprovider

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 14

demo: artifact ## Install the collection, start the emulator, create machines and update a role
	@$(STEP) demo env ANSIBLE_CALLBACK_RESULT_FORMAT=yaml ansible-playbook infrastructure.services.demo

test: venv ## Run every test that a contributor needs, side by side where that is safe
	@exec 3>&2; $(STEP) "make test" $(MAKE) -j2 --keep-going --output-sync=target sanity molecule integration unit contract lint

unit: venv ## Run the unit tests
	@$(STEP) unit $(PYTEST) tests/unit

contract: venv ## Check that document, options, documentation and emulator agree
	@$(STEP) contract $(PYTEST) tests/contract

integration: artifact ## Run the installed artifact against the emulator
	@$(STEP) integration env TEST_COLLECTIONS=.build/collections $(PYTEST) tests/integration

molecule: artifact ## Run the molecule scenarios
	@$(STEP) molecule tests/tools/molecule

lint: artifact ## Run ruff, shellcheck, antsibull-changelog and ansible-lint (production profile)
	@$(STEP) lint tests/tools/lint

sanity: venv ## Run all of ansible-test sanity
	@$(STEP) sanity tests/tools/sanity

matrix: venv ## Run unit and integration tests on ansible-core 2.16 to 2.21 (CELLS="2.16 2.21" for some)
	@$(STEP) matrix python tests/tools/matrix.py $(CELLS)

venv: ## Make the virtual environment .venv (PYTHON=... names the interpreter)
	@tests/tools/venv .venv tests/requirements.txt

artifact: venv ## Build the collection and install it into .build/collections
	@$(STEP) artifact tests/tools/install

clean: ## Remove what the targets made
	rm -rf .venv .build .hypothesis .pytest_cache .ruff_cache .ansible
