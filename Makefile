# Every command sets itself up: it needs only Python >= 3.11, make and a package index.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# One environment, grown by need: the file $(HAS)test says that the extra `test` is in it.
HAS    := $(VENV)/.has-
# make test TORCH=1 also installs PyTorch and runs the tests of the device path.
TESTS  := $(HAS)test $(if $(TORCH),$(HAS)gpu)
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# Experts run in parallel threads; a BLAS that also threads would fight them.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test test-gpu test-slow test-rounding check format examples docs bench bench-short lock audit reliability mutants clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "driftwolfe needs Python >= 3.11; say which with: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "$(PYTHON) cannot make an environment; on Debian or Ubuntu first: apt install python3-venv"; exit 1; }

$(HAS)%: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing what driftwolfe[$*] needs into $(VENV)"
	@$(PIP) -c constraints.txt -e '.[$*]'
	@touch $@

run: $(HAS)experiments ## Run a first job and show its result
	@echo "== A target that jumps (driftwolfe demo)"
	@$(BIN)/driftwolfe demo
	@echo "== Infeasible projections on five sets (driftwolfe oracles)"
	@$(BIN)/driftwolfe oracles
	@echo "== The paper's experiments, in minutes (driftwolfe reproduce)"
	@$(BIN)/driftwolfe reproduce classification
	@$(BIN)/driftwolfe reproduce matrix-completion
	@echo "== What was made (driftwolfe overview)"
	@$(BIN)/driftwolfe overview results/demo.png results/classification-quick results/matrix-completion-quick

test: $(TESTS) ## Run the tests, doctests included (minutes)
	$(BIN)/python -m pytest -n auto -m 'not slow'

test-gpu: $(HAS)test $(HAS)gpu ## Run the tests that need a GPU (a PyTorch that finds one)
	$(BIN)/python -m pytest -m gpu

test-slow: $(TESTS) ## Run the long tests too
	$(BIN)/python -m pytest -n auto

test-rounding: $(TESTS) ## Run a slice of the tests under other kernels and BLAS threads; QUICK=--quick for minutes
	$(BIN)/python -m reliability.rounding $(QUICK)

check: $(HAS)check ## Check format, lint, types and the layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(HAS)check ## Format the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

examples: $(HAS)bench ## Run every example; figures go to results/examples
	@set -e; for example in examples/*.py; do \
	  echo "== $$example"; $(BIN)/python "$$example"; done

docs: $(HAS)docs ## Build the pages of the documentation and check their links (two minutes)
	@$(BIN)/python docs/site/build.py

bench: $(HAS)bench ## Measure speed against peers, as ratios in one run (half an hour)
	$(BIN)/python -m benchmarks

bench-short: $(HAS)bench ## The same in minutes, as the checks of a change run it
	$(BIN)/python -m benchmarks --short --out build/bench-short

lock: ## Renew constraints.txt after a change of pyproject.toml (UPGRADE=1: to the newest versions)
	$(PYTHON) -m venv build/uv
	build/uv/bin/python -m pip install --quiet --disable-pip-version-check uv
	build/uv/bin/uv pip compile --quiet --universal --python-version 3.11.0 --all-extras $(if $(UPGRADE),--upgrade) \
	  --no-emit-index-url --no-annotate --custom-compile-command 'make lock' pyproject.toml -o constraints.txt

audit: ## Look for known weaknesses of what is installed (needs the network)
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	build/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip

reliability: $(HAS)experiments ## Crashes, hostile files, a million rounds, ten million ratings (half an hour)
	$(BIN)/python -m reliability.crash
	$(BIN)/python -m reliability.fuzz
	$(BIN)/python -m reliability.numerics
	$(BIN)/python -m reliability.load

mutants: $(TESTS) ## Draw faults at random: do the tests notice? MODULES= SAMPLE=40 SEED=0 (a quarter of an hour)
	$(BIN)/python -m reliability.mutants $(MODULES) --sample $(or $(SAMPLE),40) --seed $(or $(SEED),0) \
	  --processes $(or $(PROCESSES),2)

clean: ## Remove the environment and all caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
