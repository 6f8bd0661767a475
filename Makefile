# make train [key=value ...]   train on what this machine has; every key=value goes to train.py
# make test                    lint, format check, type check, and what takes less than five minutes on two cores:
#                              the tests of UNIT and JOURNEY; all where GPUROBOT_ALL_TESTS is set, in less than half an hour
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
# Of these --quick skips what builds a kernel or starts a process; the files of LONG, which train, are left out.
UNIT := assets test_house.py \
	$(addprefix gpurobot/,adapters deploy diagnosis learn run settings shell) mistakes \
	$(addprefix physics/,actuator algebra constraint dynamics model ray robot solver state test_load.py \
	test_robustness.py test_simulation.py test_support.py test_urdf.py test_urdf_text.py) \
	$(addprefix tasks/,core motion shared test_base.py)
LONG := best_policy contents discriminator distill* finite image_setup own_code overlap policy_images ppo* profile \
	teachers
# Train, resume, evaluate, export; ranks; a kernel beside MuJoCo C; a task of each kind.
JOURNEY := test_train.py::test_a_resumed_run_repeats_the_uninterrupted_one \
	gpurobot/test_evaluate.py::test_a_run_folder_is_evaluated gpurobot/test_export.py::test_a_policy_is_taken_along \
	test_ranks.py::test_ranks_compute_what_one_computes[toy] \
	physics/test_parity.py::test_a_kernel_agrees_with_mujoco[drives] \
	$(patsubst %,tasks/test_all.py::test_a_task_keeps_the_trainers_contract[%],ant cartpole cartpole_pixels \
	cube_lift dm/point_mass_hard gym/Hopper-v5 quadruped_rough)
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup

.PHONY: train test fuzz bench history results docs lint audit lock

train: $(VENV)/.installed-plot
	$(BIN)/python train.py $(KEYS)

test: lint
ifdef GPUROBOT_ALL_TESTS
	$(PYTEST)
else
	$(PYTEST) --quick $(LONG:%=--ignore-glob='*/test_%.py') $(addprefix tests/,$(UNIT))
	$(PYTEST) $(addprefix tests/,$(JOURNEY))
endif

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
