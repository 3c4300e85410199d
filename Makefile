# The commands of the project. PYTHON=/path/to/python uses an interpreter that already has torch and installs nothing.
SHELL := /bin/bash
PYTHON ?=
export PYTHON SYSTEM CXX
RUN = PYTHONPATH=$(CURDIR)/build/python$${PYTHONPATH:+:$$PYTHONPATH} $$(./setup.sh interpreter)

.PHONY: demo test quick gpu-test bench wheel lint setup clean

setup:
	@./setup.sh plan tools test_tools venv build

demo: setup  ## embed a page of sentences with MiniLM and show what was fused
	@$(RUN) examples/demo.py $(ARGS)

test: setup  ## all C++ and Python tests that need no GPU
	@$(RUN) tests/run.py $(ARGS)

quick: setup  ## the smoke part, under two minutes
	@$(RUN) tests/run.py --quick

gpu-test: setup  ## the GPU tests
	@$(RUN) tests/run.py --gpu

SET ?= cpu
bench: setup  ## side by side with eager and torch.compile: SET=seed|rows|cells|fusions|layouts|reductions|small|models|cpu|cpu-models|compile|shapes|partition|trace|fx|memory
	@$(RUN) benchmarks/run.py $(SET) $(ARGS)

wheel:  ## dist/*.whl, built in build/wheel
	@./setup.sh plan tools venv
	@$$(./setup.sh interpreter) -m pip wheel --no-deps --no-build-isolation -w dist . >build/wheel.log 2>&1 || { tail -n 20 build/wheel.log; exit 1; }
	@ls dist/*.whl

lint: setup
	@$(RUN) -m ruff check bindings tests benchmarks examples
	@$(RUN) -m mypy

clean:
	rm -rf build dist
