# Each target is one command that can be typed by hand; make help lists them.
PYTHON ?= python3
SIZE ?= small
NAME ?= iawj-micro
EFFORT ?= quick
CASES ?= 1000
SEED ?= 0
BOARD ?= pynq-z2
BIN := .venv/bin
WORKERS ?= 3
# Hundreds of processes import what the first one compiled: bytecode is kept, whatever is set.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $(WORKERS) --dist worksteal

.PHONY: help setup setup-tests compare bench test test-all test-arm check fmt lint stress sim formal verilog synth \
	bitstream report docs setup-docs site wheel clean

.DEFAULT:
	@echo "no target $@: make help lists them" >&2; exit 2

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 12

setup: ## make .venv with all that is needed; seconds if nothing is missing
	@$(PYTHON) bootstrap.py

compare: setup ## run engines side by side, check all (SIZE=small|medium|large)
	$(BIN)/streamjoin compare benchmarks/workloads/$(SIZE).toml --out runs/$(SIZE)

bench: setup ## run a published experiment (NAME=iawj-micro, EFFORT=quick|full)
	$(BIN)/streamjoin bench $(NAME) --size $(EFFORT)

setup-tests: setup ## make the environment with PYNQ too, which some tests need
	@$(PYTHON) bootstrap.py board 3.1

test: setup-tests ## pass all the tests
	$(PYTEST)

test-all: setup-tests setup-docs ## pass all the tests and the slow ones
	CASES=200 $(PYTEST) -m ""

test-arm: setup-tests ## pass tests on an emulated 32-bit ARM; needs Debian and QEMU
	$(BIN)/python -m tests.arm.run armhf

check: setup ## pass the tests that a change touches (PATHS=..., else git's)
	$(BIN)/python -m tests.affected $(PATHS)

fmt: setup ## format the sources
	$(BIN)/ruff format .

lint: setup ## formatting, lint, strict types and the walls between the packages
	$(PYTEST) tests/test_walls.py

stress: setup ## random cases for every parallel engine (CASES=1000, SEED= repeats)
	CASES=$(CASES) SEED=$(SEED) $(BIN)/pytest tests/host/test_stress.py \
		tests/host/test_sliding.py tests/host/test_chains.py

sim: setup ## simulate the designs with cocotb on Verilator
	$(BIN)/pytest sim_tests -s -m ""

formal: setup ## prove parts of the designs; every proof must also find a fault
	$(BIN)/streamjoin hw prove

verilog: setup ## write the Verilog and manifest of the preset tiny to build/
	$(BIN)/streamjoin hw verilog --preset tiny --out build/tiny

synth: setup ## area and clock of small designs with Yosys and nextpnr, in minutes
	$(BIN)/streamjoin hw synth --preset tiny --target ecp5-85k --out build/synth/tiny-ecp5
	$(BIN)/streamjoin hw synth --preset tiny --target xc7z020 --out build/synth/tiny-xc7z020
	$(BIN)/streamjoin hw synth --preset pynq-z2 --param cores=1 --target xc7z020 \
		--out build/synth/pynq-z2-core

bitstream: setup ## build a bitstream (BOARD=ulx3s-85f; Vivado: pynq-z2|zcu104|kv260)
	$(BIN)/streamjoin hw bitstream --board $(BOARD) --out build/$(BOARD)

report: setup ## write the page of the last comparison anew (SIZE=small|medium|large)
	$(BIN)/streamjoin report runs/$(SIZE) -o runs/$(SIZE)/report.html

docs: setup ## write the generated pages of docs/ anew
	$(BIN)/python docs/generate.py

setup-docs: setup ## put what builds the site into a folder of its own
	@cmp -s docs/constraints.txt .venv-docs/constraints.txt || { rm -rf .venv-docs && \
		$(BIN)/python -m pip --disable-pip-version-check -q install --target .venv-docs \
		--require-hashes -r docs/constraints.txt && cp docs/constraints.txt .venv-docs; }

site: setup-docs ## build the documentation to build/site, to be read in a browser
	PYTHONPATH=.venv-docs $(BIN)/python -m sphinx -q -E -a -W --keep-going -d build/site-work docs build/site
	@echo build/site/index.html

wheel: setup ## build the sdist, and from it the wheel, in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

clean: ## remove what was built, not the environment
	rm -rf build dist runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
