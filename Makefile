# Two commands do everything: `make run` and `make test`. Each sets up .venv with what it needs and no more.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
COMPILED := $(shell sed -n 's/.*": "\(src[^"]*\)",.*/\1/p' setup.py) $(shell find src -name '*.pxd')
PIP    := $(BIN)/python -m pip --disable-pip-version-check install -c constraints.txt
# Empty files whose age says when .venv was last set up: for running odradek, and for working on it.
RUN    := $(VENV)/.ready-to-run
DEV    := $(VENV)/.ready-to-develop
# PySpark wants pandas 2, so that it has an environment of its own.
SPARK_VENV := .venv-spark
SPARK  := $(SPARK_VENV)/.ready

.PHONY: planted-bugs long demo run test check bench docs generate format clean fuzz faults peers spark

run: $(RUN) ## start a broker on 127.0.0.1:9092, data in ./odradek-data
	@echo "Kafka clients connect with bootstrap.servers=127.0.0.1:9092 once it says ready."
	@echo "In another terminal: echo hello | $(BIN)/odradek produce greetings; $(BIN)/odradek consume greetings -e"
	$(BIN)/odradek start

test: $(DEV) ## every suite, each within its time budget
	$(BIN)/python tools/run_suites.py all

check: $(DEV) ## format, lint, types, imports, fast tests: under 3 minutes
	$(BIN)/python tools/run_suites.py check

bench: $(DEV) ## measure; the figures go to bench/RESULTS.md by hand
	$(PIP) --no-build-isolation -e '.[bench]'
	$(BIN)/python bench/run.py

docs: $(DEV) ## regenerate the documents that are made from data
	$(BIN)/python tools/generate.py

generate: docs

fuzz: $(DEV) ## one hour of random bytes over every decoder
	$(PIP) --no-build-isolation -e '.[fuzz]'
	$(BIN)/python tests/fuzz/run.py --target protocol --minutes 30
	$(BIN)/python tests/fuzz/run.py --target records --minutes 30

faults: $(DEV) $(SPARK) ## kill, stop and wipe brokers of clusters under load for an hour, and queries of Spark; FAULTS="--seed 1 --store embedded" and COPIER="--records 10000", KILLS="--runs 1", SPARK_KILLS="--kills 12" choose
	bench/peers/setup > /dev/null
	cd tests && ../$(BIN)/python -m faults.cluster.main $(FAULTS)
	cd tests && ../$(BIN)/python -m faults.copier.main $(COPIER)
	cd tests && ../$(BIN)/python -m faults.transactions.main $(KILLS)
	cd tests && ../$(SPARK_VENV)/bin/python -m spark.kills.main $(SPARK_KILLS)

long: $(DEV) $(SPARK) ## the longest comparisons with Apache Kafka: transactions, reassignments, pipelines on Spark
	bench/peers/setup > /dev/null
	$(BIN)/pytest -q -m long --timeout 900
	$(SPARK_VENV)/bin/python -m pytest -q -m 'spark and long' --timeout 900 tests/spark

planted-bugs: $(DEV) ## plant known bugs in the brokers; the simulation must find each
	$(BIN)/python tests/simulation/run.py --every-bug --schedules 1000

format: $(DEV) ## rewrite the sources in the house format
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

spark: $(SPARK) ## set up .venv-spark, the environment for PySpark
	@true

demo: $(SPARK) ## a broker, a generator, a pipeline on Spark with live progress; needs Java 17
	$(SPARK_VENV)/bin/python examples/demo/demo.py

peers: ## fetch Apache Kafka for comparisons
	bench/peers/setup

clean:
	rm -rf $(VENV) $(SPARK_VENV) build *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
	find src -name '*.so' -delete

# Compiling comes first and by itself, because pip would hide its output; pip then finds everything compiled.
$(RUN): pyproject.toml setup.py constraints.txt $(COMPILED)
	@echo "Setting up $(VENV): about two minutes, most of them for the C compiler."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) setuptools cython
	$(BIN)/python -u setup.py -q build_ext --inplace
	ODRADEK_PURE_PYTHON=1 $(PIP) --no-build-isolation -e .
	$(BIN)/python -m compileall -q src # a start must not compile, even where Python is told to keep no bytecode
	touch $@

$(DEV): $(RUN)
	ODRADEK_PURE_PYTHON=1 $(PIP) --no-build-isolation -e '.[dev]'
	touch $@

$(SPARK): $(RUN) constraints-spark.txt
	test -x $(SPARK_VENV)/bin/python || $(PYTHON) -m venv $(SPARK_VENV)
	$(SPARK_VENV)/bin/python -m pip --disable-pip-version-check install -q -c constraints-spark.txt setuptools cython
	ODRADEK_PURE_PYTHON=1 $(SPARK_VENV)/bin/python -m pip --disable-pip-version-check install -q -c constraints-spark.txt --no-build-isolation -e '.[spark-test]'
	touch $@
