# Every target bootstraps .venv by itself; nothing else is needed than Python 3.11+ and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP_INSTALL := python -m pip install --quiet --disable-pip-version-check --retries 5
PIP    := $(BIN)/$(PIP_INSTALL) --require-hashes
SELF   := $(BIN)/$(PIP_INSTALL) --no-deps --no-build-isolation --no-index -e .
CHECK_PYTHON := $(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'

# Tests start Python thousands of times: where nothing may be cached, each start compiles everything anew, twice the work.
unexport PYTHONDONTWRITEBYTECODE

PREFIX ?= $(HOME)/.local

.PHONY: setup demo cluster-demo install uninstall test simulate fuzz packages generated test-agents dist docs version release-check check bench lock format clean
.DEFAULT_GOAL := setup

setup: $(VENV)/.dev          ## everything that development needs

demo: $(VENV)/.runtime       ## server, built-in agent, one streamed turn
	@$(BIN)/sandbox-agent demo

cluster-demo: $(VENV)/.dev   ## three servers on one PostgreSQL; one is killed in a turn, and another goes on
	@$(BIN)/python tools/cluster_demo.py

install:                     ## put the command `sandbox-agent` into $(PREFIX)/bin, independent of this checkout
	@$(CHECK_PYTHON)
	@$(PYTHON) -m venv --clear $(PREFIX)/lib/sandbox-agent
	@$(PREFIX)/lib/sandbox-agent/bin/$(PIP_INSTALL) --require-hashes -r requirements/runtime.lock
	@$(PREFIX)/lib/sandbox-agent/bin/$(PIP_INSTALL) --no-deps --no-build-isolation --no-index .
	@mkdir -p $(PREFIX)/bin && ln -sf $(PREFIX)/lib/sandbox-agent/bin/sandbox-agent $(PREFIX)/bin/sandbox-agent
	@echo "installed $$($(PREFIX)/bin/sandbox-agent --version) as $(PREFIX)/bin/sandbox-agent"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "add $(PREFIX)/bin to your PATH to use it";; esac

uninstall:                   ## undo `make install`
	rm -rf $(PREFIX)/lib/sandbox-agent $(PREFIX)/bin/sandbox-agent

WORKERS ?= 3
test: $(VENV)/.dev packages  ## all tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

SECONDS ?= 60
simulate: $(VENV)/.dev       ## simulated histories of hub, relay and store, new ones each time; SECONDS=600 looks longer
	@PYTHONPATH=tests $(BIN)/python -m simulation --seconds $(SECONDS)

fuzz: $(VENV)/.dev           ## new inputs without end for what parses bytes: SECONDS for each of TARGETS (all by default)
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/$(PIP_INSTALL) --only-binary :all: atheris==3.0.0 || \
		echo "atheris cannot be installed here: inputs are made without the guidance of coverage"
	@PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(SECONDS) $(TARGETS)

packages: sdks/typescript/node_modules/.installed inspector/node_modules/.installed ## what the TypeScript tests need

%/node_modules/.installed: %/package-lock.json
	@if command -v npm >/dev/null 2>&1; then \
		echo "installing npm packages of $* …"; cd $* && \
		for try in 1 2 3; do npm ci --loglevel=error --no-audit --no-fund >/dev/null && touch node_modules/.installed && break; sleep $$try; done; \
	else echo "npm is not installed: tests of $* are skipped"; fi

generated: $(VENV)/.dev      ## what the TypeScript SDK takes from the server's tables
	@$(BIN)/python sdks/typescript/scripts/methods.py

test-agents: $(VENV)/.dev packages  ## the real agents against a loopback LLM; FULL=1 for all of them, REGENERATE=1 writes docs/agents.md
	@SANDBOX_AGENT_REAL_AGENTS=$${SANDBOX_AGENT_REAL_AGENTS:-.cache/agents} $(BIN)/python -m pytest -n $(WORKERS) \
		--dist loadgroup tests/real_agents tests/opencode tests/agents/test_real_agents.py tests/agents/test_real_conformance.py $(PYTEST_ARGS)

dist: $(VENV)/.dev packages  ## wheel, sdist and npm package in dist/, tested in clean environments; publishes nothing
	@command -v npm >/dev/null 2>&1 || { echo "npm is needed to build the TypeScript package"; exit 1; }
	@rm -rf dist && mkdir dist
	@$(BIN)/hatchling build -d dist
	@cd sdks/typescript && npm pack --loglevel=error --pack-destination ../../dist
	@SANDBOX_AGENT_DIST=dist $(BIN)/python -m pytest -n 0 tests/distribution tests/deploy $(PYTEST_ARGS)

docs: $(VENV)/.docs          ## the documentation as a site in site/, links checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo "built site/index.html"

version: $(VENV)/.dev packages ## write VERSION wherever it stands, date the changelog, and rebuild what contains it
	@$(BIN)/python tools/release.py version $(VERSION)
	@WRITE_DOCS=1 $(BIN)/python -m pytest -n 0 -q tests/http/api/test_openapi.py -k copy_under_docs
	@cd sdks/typescript && npm run --silent api
	@cd inspector && npm run --silent build

release-check: $(VENV)/.dev  ## everything that must hold before a release is tagged: see CONTRIBUTING.md
	@$(BIN)/python tools/release.py check
	@REQUIRE_ALL=1 $(MAKE) --no-print-directory check dist docs

check: $(VENV)/.dev          ## lint, format, types, import arrow
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.dev
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

bench: $(VENV)/.dev          ## speed, as ratios within one run
	@$(BIN)/python -m bench

lock: $(VENV)/.dev           ## resolve pyproject.toml anew into requirements/*.lock
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
		pyproject.toml --group build -o requirements/runtime.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		pyproject.toml --group dev -c requirements/runtime.lock -o requirements/dev.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		--group docs -c requirements/dev.lock -o requirements/docs.lock

clean:
	rm -rf $(VENV) dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/bin/python:
	@$(CHECK_PYTHON)
	@echo "setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements/runtime.lock pyproject.toml | $(VENV)/bin/python
	@$(PIP) -r requirements/runtime.lock && $(SELF)
	@touch $@

$(VENV)/.dev: requirements/dev.lock pyproject.toml | $(VENV)/bin/python
	@$(PIP) -r requirements/dev.lock && $(SELF)
	@touch $@ $(VENV)/.runtime

$(VENV)/.docs: requirements/docs.lock | $(VENV)/.dev
	@$(PIP) -r requirements/docs.lock
	@touch $@
