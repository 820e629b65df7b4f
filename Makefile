# `make help` lists what there is. Each target sets up what it needs, in .venv.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
JOBS ?= 5
MINUTES ?= 5

# A checkout that was moved has an environment that still points to the old place.
ifneq ($(wildcard $(STAMP)),)
ifneq ($(shell cat $(STAMP)),$(CURDIR))
MOVED := moved
endif
endif

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_USER := 0
unexport PYTHONHOME
unexport PYTHONPATH
# With it, each process of the tests would compile draftsman again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test costly check servers bench soak agents format wording lock moved

help: ## this list
	@echo "make TARGET, with:"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' Makefile
	@echo "Variables: PYTHON (3.11 or later), JOBS (parallel tests, $(JOBS)), MINUTES (of draftsman" \
	  "soak, $(MINUTES)), AGENT (of demo: codex, claude, opencode, qwen, gemini, goose, aider or auto), ARGS (for demo, test, servers, bench, agents and the tests of soak)."

demo: $(STAMP) ## a real job, from the request to the answer to the end
	@$(BIN)/draftsman demo $(if $(AGENT),--agent $(AGENT)) $(ARGS)

test: $(STAMP) ## the tests, on a real PostgreSQL (4 min)
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

costly: $(STAMP) ## the tests that make test leaves out because each needs much CPU (10 min)
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "costly and not slow" $(ARGS)

check: $(STAMP) ## style, format, types and import contracts
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

servers: $(STAMP) ## the core of the tests on PostgreSQL 15 to 18 with default settings
	@$(BIN)/python -m tests.servers --jobs $(JOBS) $(ARGS)

bench: $(STAMP) ## draftsman beside other queues, in turn on one PostgreSQL (25 min)
	@$(BIN)/python -m bench $(ARGS)

soak: $(STAMP) ## draftsman soak, then what is slow: a million jobs, every fault at every point (1 h)
	@$(BIN)/draftsman soak --minutes $(MINUTES)
	@$(BIN)/python -m pytest tests/soak/soak_*.py $(ARGS)

agents: $(STAMP) ## the tests with the real programs of agents, which npm installs once (50 min)
	@$(BIN)/python -m tests.support.agent_programs $(ARGS)

format: $(STAMP) ## apply ruff's fixes and format
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

# Sets $$python, or says in one line what is missing.
CANDIDATES := $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11 python3.14)
define FIND_PYTHON
set -e; python=; for candidate in $(CANDIDATES); do \
  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
    >/dev/null 2>&1; then python=$$candidate; break; fi; \
done; \
if [ -z "$$python" ]; then \
  echo "draftsman needs Python 3.11 or later with venv and pip (on Debian: python3-venv);" \
    "install it, or name one: make PYTHON=/path/to/python3" >&2; exit 1; \
fi
endef

# An environment that a stop left half done, or that somebody made, is completed, not thrown away.
$(STAMP): pyproject.toml requirements.lock $(MOVED)
	@if [ -n "$(MOVED)" ] || ! $(BIN)/python -c 'import pip, sys; \
	  sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  $(FIND_PYTHON); \
	  echo "Setting up $(VENV) with $$("$$python" -V)"; \
	  "$$python" -m venv --clear $(VENV); \
	fi
	@echo "Installing $$(grep -c '==' requirements.lock) packages from requirements.lock"
	@$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@printf '%s\n' "$(CURDIR)" > $(STAMP)

wording: $(STAMP) ## accept changed words of messages; read them in the diff
	@$(BIN)/python -m pytest -q -n0 tests/bots/test_documents.py tests/bots/*/test_contract.py \
	  -k "test_documents or story" --snapshot-update

# The oldest Python knows the requirements of all: the later ones need a subset.
lock: ## resolve the dependencies anew into requirements.lock
	@$(FIND_PYTHON); \
	"$$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
	  || { echo "make lock needs Python 3.11: make lock PYTHON=/path/to/python3.11" >&2; exit 1; }; \
	folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	"$$python" -m venv "$$folder/venv"; \
	"$$folder/venv/bin/python" -m pip install -q pip-tools; \
	CUSTOM_COMPILE_COMMAND='make lock' "$$folder/venv/bin/pip-compile" --quiet --upgrade \
	  --extra dev --extra mail --extra otel --extra slack --extra testing --extra trello --extra tui --extra web --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --no-emit-options --output-file requirements.lock pyproject.toml
