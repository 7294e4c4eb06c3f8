# Everything a newcomer types. `make demo` and `make test` set the machine up themselves: the
# Debian packages (as root), the environment .venv, then the work. A second run skips both.

PYTHON ?= python3
ENV    := .venv
READY  := $(ENV)/.ready
PEERS  := .peers
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help env system demo test soak bench peers check format device-pyz clean
.DELETE_ON_ERROR:

help:  ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Installed anew only when the pins or the metadata change, so that a ready machine needs no network.
$(READY): pyproject.toml constraints.txt scripts/make_env
	@scripts/make_env $(ENV) "$(PYTHON)"
	@echo "make: installing packages into $(ENV) (once; about two minutes)"
	@$(ENV)/bin/python -m pip install --quiet --constraint constraints.txt hatchling
	@$(ENV)/bin/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[host,dev]'
	@touch $@

env: $(READY)  ## make the environment .venv

system:  ## install the Debian packages that emulated boards need (as root)
	@scripts/system_packages

demo: system env  ## cross-compile, run, time and validate on this machine and an emulated board
	@$(ENV)/bin/farbench demo $(ARGS)

test: system env  ## every test; what is skipped is named with its reason
	@$(ENV)/bin/python -m pytest $(ARGS)

soak: system env  ## the tests at full scale (hours)
	@$(ENV)/bin/python -m pytest -m slow -o faulthandler_timeout=0 $(ARGS)

bench: env  ## speed against the peers, interleaved in one run; one JSON object each
	@$(ENV)/bin/python benchmarks/kernels.py --json
	@$(ENV)/bin/python benchmarks/rpc.py --json

peers:  ## the environment .peers with the rivals that the benchmarks compare with
	@scripts/make_env $(PEERS) "$(PYTHON)"
	@$(PEERS)/bin/python -m pip install --quiet --requirement benchmarks/peers/requirements.txt
	@$(PEERS)/bin/python -m pip install --quiet --no-deps --requirement benchmarks/peers/companions.txt

check: env  ## ruff, mypy and the floors of the house
	@$(ENV)/bin/ruff check .
	@$(ENV)/bin/ruff format --check .
	@$(ENV)/bin/mypy
	@$(ENV)/bin/lint-imports

format: env  ## rewrite the sources as ruff formats them
	@$(ENV)/bin/ruff check --fix-only .
	@$(ENV)/bin/ruff format .

device-pyz: farbench-device.pyz  ## the device server as one file to copy to a board

farbench-device.pyz: $(READY) scripts/build_pyz.py $(shell find rpc device_runtime -name '*.py')
	@$(ENV)/bin/python scripts/build_pyz.py $@

clean:  ## remove what was built, and the environments
	rm -rf $(ENV) $(PEERS) build dist farbench-device.pyz farbench-report.html
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
