# make demo and make test do all the set-up they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test lint bench clean

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nram needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: setup
	@echo "== Train a population of machines to copy arrays, on the CPU"
	rm -rf runs/demo
	$(BIN)/nram train copy --seed 1 --device cpu --out runs/demo
	@echo; echo "== Judge the best member on unseen instances"
	$(BIN)/nram eval runs/demo --device cpu --count 200
	@echo; echo "== The learned machine, as a discrete program, on an array of 50"
	$(BIN)/nram eval runs/demo --device cpu --solve 50

test: setup lint
	JAX_PLATFORMS=cpu $(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: setup
	$(BIN)/nram bench step
	$(BIN)/nram bench step --population 8

clean:
	rm -rf .venv build dist src/*.egg-info .pytest_cache .ruff_cache
