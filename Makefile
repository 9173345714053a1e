# make demo and make test do all the set-up they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-slow coverage fuzz kills soak lint docs bench reproduce-results clean

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nram needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.venv/trackers: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mlflow,wandb]'
	@touch $@

demo: setup
	@echo "== Train a population of machines to copy arrays, on the CPU"
	rm -rf runs/demo
	$(BIN)/nram train copy --seed 1 --device cpu --out runs/demo
	@echo; echo "== Extract the best member's program and simplify it"
	$(BIN)/nram extract runs/demo --out runs/demo/program.nram
	@echo; echo "== Verify it: every small input, proofs for all values, random instances up to 100,000"
	$(BIN)/nram verify runs/demo/program.nram --budget 10 --out runs/demo/program.nram
	@echo; echo "== Watch it, and draw its circuits"
	$(BIN)/nram trace runs/demo/program.nram
	$(BIN)/nram draw runs/demo/program.nram --out runs/demo/circuits.svg
	@echo; echo "== Compile it, and run it on an array of a million"
	$(BIN)/nram compile runs/demo/program.nram --emit object --out runs/demo/copy.o
	$(BIN)/nram run runs/demo/program.nram --complexity 1000000

test: setup lint
	JAX_PLATFORMS=cpu $(BIN)/python -m pytest --numprocesses 3 --dist loadfile

# What takes minutes: training by the recipes, and the whole notebook. A single process, since training uses every core.
# Also MLflow and W&B, whose 24 packages would add 120 MB to the set-up of everybody.
test-slow: .venv/trackers
	JAX_PLATFORMS=cpu $(BIN)/python -m pytest -m slow

# An hour of broken and hostile files, at least 10,000 of each kind that nram reads.
fuzz: setup
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds 3600 --workers 2 --out runs/fuzz/summary.json

# Jobs that are killed 120 times and more, on full disks and in read-only folders too, and resumed to the same bits.
kills: setup
	PYTHONPATH=tests $(BIN)/python -m kills --kills 120 --out runs/kills

# Two hours of training and search side by side: memory, open files and speed once a minute, and a verdict.
soak: setup
	JAX_PLATFORMS=cpu $(BIN)/python benchmarks/soak.py --seconds 7200 --out results/soak.jsonl

coverage: setup
	JAX_PLATFORMS=cpu $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --cov --cov-report=term --cov-report=html

# The documentation as a site with search, in site/.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: setup
	$(BIN)/nram bench step
	$(BIN)/nram bench step --population 8
	$(BIN)/nram bench programs

# The numbers of the README again, those that fit this machine, into runs/reproduce. make reproduce-results ARGS=--list
reproduce-results: setup
	$(BIN)/python benchmarks/reproduce.py $(ARGS)

clean:
	rm -rf .venv build dist site htmlcov .coverage* src/*.egg-info .pytest_cache .ruff_cache
