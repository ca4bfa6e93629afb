# Everything that is done with this repository. `make help` lists it.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_WORKERS ?= 3
BENCH ?= controlplane

.DEFAULT_GOAL := help
.PHONY: help setup build run up down install test chain faults late check lint types layers generated files coverage fmt generate \
	bench e2e tools lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## Make the virtual environment from the locked requirements

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pequod needs Python 3.11 or newer; set PYTHON=python3.X")'
	@test -x $(BIN)/python || { echo "Making the virtual environment $(VENV) …"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing the locked requirements …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

build: setup ## Build the evaluator and the control plane into the cache (minutes the first time, then nothing)
	@$(BIN)/pequod dev build

run: setup ## Start a control plane and the operator, apply the samples and show them; Ctrl-C ends it
	@$(BIN)/pequod dev run

up: setup ## Start a control plane with the operator in the background
	@$(BIN)/pequod dev up --detach --operator

down: setup ## End what `make up` started
	@$(BIN)/pequod dev down

install: setup ## Install the CRDs and the admission policy into a cluster of yours, after asking which
	@$(BIN)/pequod install

test: setup build tools chain ## Run every test
	$(BIN)/pytest -n $(PYTEST_WORKERS)

e2e: setup build tools chain ## Run the tests that need a real node
	$(BIN)/pytest -m e2e

chain: setup ## Build the programs of a real OP Stack chain for the tests (minutes the first time, then nothing)
	@PYTHONPATH=tests $(BIN)/python -m opstack

faults: setup build ## Sweep every fault over every write, and everything else of tests/faults
	PEQUOD_FAULTS=all $(BIN)/pytest -n $(PYTEST_WORKERS) tests/faults

late: setup build ## Test the controllers with every request and answer late: what passes only by haste fails
	$(BIN)/pytest -n $(PYTEST_WORKERS) --late 0.2 tests/apiserver/graphs tests/apiserver/kube tests/apiserver/modules \
		tests/apiserver/rollup tests/apiserver/runtime tests/apiserver/transforms

check: setup lint types layers generated files ## Lint, types, layers, generated files: what CI asks before it tests

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/mypy

layers: setup
	PYTHONPATH=src $(BIN)/lint-imports

generated: setup
	PYTHONPATH=src $(BIN)/python -m pequod.crd --check

files: setup
	$(BIN)/python tools/check_files.py

coverage: setup build ## Measure branch coverage of the packages that must have 90 %
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(PYTEST_WORKERS) tests/unit tests/properties tests/evaluator tests/sources tests/cli tests/apiserver
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90 \
		--include='src/pequod/api/*,src/pequod/base/*,src/pequod/controllers/*,src/pequod/crd/*,src/pequod/evaluator/*,src/pequod/graph/*,src/pequod/kube/*,src/pequod/policy/*,src/pequod/render/*,src/pequod/runtime/*,src/pequod/sources/*'

fmt: setup ## Format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

generate: setup ## Write what is generated: CRDs, RBAC, the admission policy, the reference
	PYTHONPATH=src $(BIN)/python -m pequod.crd

bench: setup build ## Measure: BENCH=controlplane, floor (the client), cache, idle (the operator), graph, requests, evaluator, sources or race-kro
	$(BIN)/python -m bench.$(subst -,_,$(BENCH))

tools: setup ## Install jj, and what a real node needs (Debian, root); says what is missing elsewhere
	@$(BIN)/pequod dev tools

lock: setup ## Compile the requirements again; needs uv
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		pyproject.toml --output-file requirements/runtime.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--group dev pyproject.toml --output-file requirements/dev.txt

clean: ## Remove what the other targets made in the work tree
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov dist
