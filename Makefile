# Every command sets itself up: it needs only Python >= 3.11, make and a package index.
ifeq ($(OS),Windows_NT)
PYTHON ?= python
SCRIPTS := Scripts
EXE    := .exe
else
PYTHON ?= python3
SCRIPTS := bin
endif
VENV   := .venv
BIN    := $(VENV)/$(SCRIPTS)
# One environment; the file $(HAS)test marks that the extra `test` is installed in it.
HAS    := $(VENV)/.has-
# make test TORCH=1 also installs PyTorch and runs the tests of the device path.
TESTS  := $(HAS)test $(if $(TORCH),$(HAS)gpu) $(HAS)markets
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# Tests run side by side, a process for each core. All other commands have what a plain shell has.
test test-gpu test-slow test-rounding mutants: export OPENBLAS_NUM_THREADS ?= 1
test test-gpu test-slow test-rounding mutants: export OMP_NUM_THREADS ?= 1

# Tests start many processes, which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help markets run test test-gpu test-slow test-rounding test-beam check format examples docs bench bench-short lock audit dist reliability mutants clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(BIN)/pip$(EXE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "driftwolfe needs Python >= 3.11; choose one with: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "$(PYTHON) cannot create an environment; on Debian or Ubuntu first run: apt install python3-venv"; exit 1; }

$(HAS)%: pyproject.toml constraints.txt | $(BIN)/pip$(EXE)
	@echo "Installing driftwolfe[$*] into $(VENV)"
	@$(PIP) -c constraints.txt -e '.[$*]'
	@touch $@

# Six stock markets come with this package. Its files alone: what it needs to run (cvxopt, which is under the
# GPL, pandas before 3, yfinance) is not needed to read them.
$(HAS)markets: | $(BIN)/pip$(EXE)
	@$(PIP) --no-deps universal-portfolios==0.4.17
	@touch $@

markets: $(HAS)markets ## Fetch the stock markets for tests and `python -m benchmarks.portfolio`

run: $(HAS)experiments ## Run the demo and the paper's experiments in minutes, and show the results
	@echo "== A target that jumps (driftwolfe demo)"
	@$(BIN)/driftwolfe demo
	@echo "== Infeasible projections on five sets (python -m benchmarks.oracles)"
	@$(BIN)/python -m benchmarks.oracles
	@echo "== The paper's experiments, in minutes (driftwolfe reproduce)"
	@$(BIN)/driftwolfe reproduce classification
	@$(BIN)/driftwolfe reproduce matrix-completion
	@echo "== Results (driftwolfe overview)"
	@$(BIN)/driftwolfe overview results/demo.png results/classification-quick results/matrix-completion-quick

test: $(TESTS) ## Run the tests and doctests (six to eight minutes on two cores)
	$(BIN)/python -m pytest -n auto -m 'not slow'

test-gpu: $(HAS)test $(HAS)gpu ## Run the tests that need a GPU and PyTorch
	$(BIN)/python -m pytest -m gpu

test-slow: $(TESTS) ## Run all tests, including the long ones
	$(BIN)/python -m pytest -n auto

test-rounding: $(TESTS) ## Run some tests with other BLAS kernels and threads; QUICK=--quick for minutes
	$(BIN)/python -m reliability.rounding $(QUICK)

test-beam: ## Run the tests of the Apache Beam example, in an environment of their own (two minutes)
	$(PYTHON) -m venv build/beam
	build/beam/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check -c constraints-beam.txt -e '.[test-beam]'
	build/beam/$(SCRIPTS)/python -m pytest tests/clusters/test_beam.py

check: $(HAS)check ## Check format, lint, types and the import layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(HAS)check ## Format the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

examples: $(HAS)bench ## Run every example; write figures to results/examples
	@set -e; for example in examples/*.py; do \
	  echo "== $$example"; $(BIN)/python "$$example"; done

docs: $(HAS)docs ## Build the documentation and check its links (two minutes)
	@$(BIN)/python docs/site/build.py

bench: $(HAS)bench ## Measure speed against peers as ratios (half an hour)
	$(BIN)/python -m benchmarks

bench-short: $(HAS)bench ## Measure speed against peers in minutes, as in CI
	$(BIN)/python -m benchmarks --short --out build/bench-short

LOCK := build/uv/$(SCRIPTS)/uv pip compile --quiet --universal --python-version 3.11.0 $(if $(UPGRADE),--upgrade) \
	  --no-emit-index-url --no-annotate --custom-compile-command 'make lock' pyproject.toml
lock: ## Renew the pins, constraints*.txt, after a change of pyproject.toml; UPGRADE=1: newest versions
	$(PYTHON) -m venv build/uv
	build/uv/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check uv
	$(LOCK) --extra dev --extra gpu -o constraints.txt
	$(LOCK) --extra test-beam -o constraints-beam.txt

audit: ## Look for known vulnerabilities of the pinned packages (needs the network)
	$(PYTHON) -m venv build/audit
	build/audit/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check pip-audit
	build/audit/$(SCRIPTS)/pip-audit --requirement constraints.txt --no-deps --disable-pip

dist: ## Build sdist and wheel, check them, and run all that the README shows in an empty environment
	rm -rf dist
	$(PYTHON) -m venv build/dist
	build/dist/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check build twine
	build/dist/$(SCRIPTS)/python -m build
	build/dist/$(SCRIPTS)/twine check --strict dist/*
	$(PYTHON) -m reliability.distribution dist

reliability: $(HAS)test ## Test kills, hostile files, a million rounds, ten million ratings, a million users (half an hour)
	$(BIN)/python -m reliability.crash
	$(BIN)/python -m reliability.fuzz
	$(BIN)/python -m reliability.numerics
	$(BIN)/python -m reliability.load
	$(BIN)/python -m reliability.growth

mutants: $(TESTS) ## Draw faults at random and run the tests that execute them; MODULES= SAMPLE=40 SEED=0 (half an hour)
	$(BIN)/python -m reliability.mutants $(MODULES) --sample $(or $(SAMPLE),40) --seed $(or $(SEED),0) \
	  --processes $(or $(PROCESSES),2)

clean: ## Remove the environment and all caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
