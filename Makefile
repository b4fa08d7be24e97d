# Two commands do all the set-up: `make run` and `make test`.  `make bench-peers` installs what `lmc bench` compares itself with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Test processes side by side; each computes with one thread and loads the default model once.
JOBS ?= 2

.PHONY: run test bench-peers clean

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

# Each list of benchmarks/peers has a virtual environment of its own: the engines' needs do not go together.  NAME.alone.txt is installed
# after NAME.txt and without what it asks for: its needs stand in NAME.txt, where they are met in another way.
#     make bench-peers                            all of them
#     make bench-peers PEERS="vllm transformers"  some
PEERS ?= $(filter-out %.alone,$(patsubst benchmarks/peers/%.txt,%,$(wildcard benchmarks/peers/*.txt)))

bench-peers: $(PEERS:%=.bench-peers/%/.ready)

.SECONDEXPANSION:
.bench-peers/%/.ready: benchmarks/peers/%.txt $$(wildcard benchmarks/peers/$$*.alone.txt benchmarks/peers/$$*.sh benchmarks/peers/$$*_server.py)
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --disable-pip-version-check -r $<
	$(if $(wildcard benchmarks/peers/$*.alone.txt),$(@D)/bin/python -m pip install --disable-pip-version-check --no-deps -r benchmarks/peers/$*.alone.txt)
	$(if $(wildcard benchmarks/peers/$*.sh),bash benchmarks/peers/$*.sh $(@D))
	touch $@

clean:
	rm -rf $(VENV) .bench-peers
