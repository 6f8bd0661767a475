# make train [key=value ...]   train on what this machine has; every key=value goes to train.py
# make quick                   lint and the unit tests, of the folders in QUICK: three minutes on two cores
# make test                    lint, format check, type check and the test suite, without tests marked as thorough
#                              unless GPUROBOT_ALL_TESTS is set
# make fuzz                    850 random models against MuJoCo C, a million answers of the solver: an hour
# make bench                   every benchmark, as `name: value` lines
# make history                 the ratios that `make bench` keeps by commit, as a picture; fails if one fell by over 5 %
# make results                 bench, the curves of Cartpole and Ant, transfer, into docs: 45 minutes on an idle machine
# make docs                    the pages of docs/ as a site, in site/
# make lint                    lint, format check and type check alone
# make audit                   are the installed packages consistent, and does the registry offer what constraints.lock says
# make lock                    constraints.lock, from constraints.txt; this needs uv
# The first call of each builds .venv with the versions of constraints.txt; later ones reuse it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KEYS = $(filter-out PYTHON=%,$(MAKEOVERRIDES))
# Folders of unit tests, and the rules of the house. Of their tests --quick skips the few that build a kernel or
# start a process; the files test_ppo*.py, which train, are left out.
QUICK := assets gpurobot/learn gpurobot/run mistakes physics/actuator physics/algebra physics/constraint \
	physics/dynamics physics/model physics/ray physics/solver physics/state tasks/core test_house.py
SUITE := -n 2 $(if $(GPUROBOT_ALL_TESTS),,-m "not slow and not thorough")

.PHONY: train quick test fuzz bench history results docs lint audit lock

train: $(VENV)/.installed-plot
	$(BIN)/python train.py $(KEYS)

quick: lint
	$(BIN)/python -m pytest $(SUITE) --quick --ignore-glob='*/test_ppo*.py' $(addprefix tests/,$(QUICK))

test: lint
	$(BIN)/python -m pytest $(SUITE) --dist loadgroup

fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 -m slow tests/physics/test_fuzz.py tests/physics/solver/test_descent.py

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

history: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.history

results: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks > docs/results/bench.txt
	for task in cartpole ant; do $(BIN)/python -m benchmarks.learning.curves $$task; done
	$(BIN)/python -m benchmarks.learning.transfer ant
	$(BIN)/python -m benchmarks.table

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

audit: $(VENV)/.installed-dev
	$(BIN)/python -m pip check
	$(BIN)/python -m pip install --quiet --dry-run --ignore-installed --no-deps --require-hashes -r constraints.lock

# Without torch, which has several builds: one for each CUDA version, and one for the CPU.
lock:
	uv pip compile --quiet --no-deps --no-annotate --generate-hashes --no-emit-package torch \
		--custom-compile-command "make lock" --output-file constraints.lock constraints.txt

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# .installed is the package alone, .installed-<extra> the package with one of its extras.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$*]"
	touch $@
