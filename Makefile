# Two commands do everything: `make run` and `make test`. Each sets up its own virtual environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
COMPILED := $(shell sed -n 's/.*": "\(src[^"]*\)",/\1/p' setup.py) $(shell find src -name '*.pxd')
READY  := $(VENV)/.ready

.PHONY: run test check bench docs generate format clean fuzz peers

run: $(READY) ## start a broker on 127.0.0.1:9092, data in ./odradek-data
	@echo "Kafka clients connect with bootstrap.servers=127.0.0.1:9092 once it says ready."
	@echo "In another terminal: echo hello | $(BIN)/odradek produce greetings; $(BIN)/odradek consume greetings -e"
	$(BIN)/odradek start

test: $(READY) ## every suite, each within its time budget
	$(BIN)/python tools/run_suites.py all

check: $(READY) ## format, lint, types, imports, fast tests: under 3 minutes
	$(BIN)/python tools/run_suites.py check

bench: $(READY) ## measure; the figures go to bench/RESULTS.md by hand
	$(BIN)/pip install -q -c constraints.txt -e '.[bench]'
	$(BIN)/python bench/run.py

docs: $(READY) ## regenerate the documents that are made from data
	$(BIN)/python tools/generate.py

generate: docs

fuzz: $(READY) ## one hour of random bytes over every decoder
	$(BIN)/pip install -q -c constraints.txt -e '.[fuzz]'
	$(BIN)/python tests/fuzz/run.py --target protocol --minutes 30
	$(BIN)/python tests/fuzz/run.py --target records --minutes 30

format: $(READY) ## rewrite the sources in the house format
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

peers: ## fetch Apache Kafka for comparisons
	bench/peers/setup

clean:
	rm -rf $(VENV) build *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
	find src -name '*.so' -delete

$(READY): pyproject.toml setup.py constraints.txt $(COMPILED)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt pip setuptools cython
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[dev]'
	$(BIN)/python -m compileall -q src # a start must not compile, even where Python is told to keep no bytecode
	touch $@
