# Two commands do all the set-up: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Test processes side by side; each computes with one thread and loads the default model once.
JOBS ?= 2

.PHONY: run test clean

run: $(READY)
	$(BIN)/lmc models pull
	$(BIN)/lmc run examples/judge.lmp --essay @examples/essay.txt

test: $(READY)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lmc needs Python 3.11 or newer; found: `$(PYTHON) --version`. Say which with: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

clean:
	rm -rf $(VENV)
