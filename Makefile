# Needs Python 3.11 or newer and make; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
SESSION := fixtures/claude-code/orders.jsonl
OUT := .demo

.DEFAULT_GOAL := help
.PHONY: help install demo test test-long interop check format lint typecheck bench needles clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## put compact into .venv

demo: $(VENV)/.installed ## compact a bundled session: before, and after
	@echo "== Before: what compact finds in $(SESSION), nothing written"
	@$(BIN)/compact run $(SESSION) --dry-run
	@mkdir -p $(OUT)
	@echo
	@echo "== Compacting, with no model"
	@$(BIN)/compact run $(SESSION) -o $(OUT)/orders.compacted.jsonl --summary $(OUT)/orders.summary.json --force
	@echo
	@echo "== After: the block that the agent reads in place of what was removed"
	@$(BIN)/compact show $(OUT)/orders.summary.json

test: $(VENV)/.test ## run the tests, the long ones apart
	$(BIN)/python -m pytest -n 2 -q

test-long: $(VENV)/.test ## run the long tests
	$(BIN)/python -m pytest -q -m long

check: lint typecheck test ## all that a change must pass

interop: $(VENV)/.test ## install the real agent clients and packages, and have them go on from what compact writes
	@if command -v npm >/dev/null; then mkdir -p .interop && npm install --prefix .interop --no-audit --no-fund --silent \
		@anthropic-ai/claude-code @openai/codex @mariozechner/pi-coding-agent @google/gemini-cli opencode-ai ai; fi
	@for python in python3.14 python3.13 python3.12; do if $$python -c '' 2>/dev/null; then \
		$$python -m venv .interop/harbor && .interop/harbor/bin/pip install -qq pydantic && \
		.interop/harbor/bin/pip install -qq --no-deps harbor && \
		$$python -m venv .interop/openhands && .interop/openhands/bin/pip install -qq openhands-sdk && break; fi; done
	$(BIN)/python -m pytest -q -m interop -rs tests/interop

format: $(VENV)/.dev ## put the code in shape
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

lint: $(VENV)/.dev ## ruff: rules and shape
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

bench: $(VENV)/.installed ## measure speed and memory against their floors
	$(BIN)/python -m bench.bench
	PYTHONPATH=tests $(BIN)/python -m bench.reading

needles: $(VENV)/.test ## what survives ten compactions: planted rules, grants, decisions, names
	$(BIN)/python -m bench.needles

clean: ## remove all that these targets made
	rm -rf $(VENV) $(OUT) .interop build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) install --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[dev]'
	@touch $@ $(VENV)/.test $(VENV)/.installed
