# Every target sets up what it needs: a virtual environment in .venv, TensorFlow, the op library.
#
#   make demo      builds, trains on real data, saves, reloads, plots
#   make test      builds, runs the whole test-suite
#   make build     the op library, in place
#   make engine    build/libcudnn_rnn_cpu.so, the CPU engine under cuDNN's names
#   make cc-test   the C++ tests alone (GoogleTest: install libgtest-dev or set GTEST_ROOT)
#   make benchmark everything beside Keras, PyTorch, ONNX Runtime (half an hour; docs/performance.md)
#   make wheel     dist/*.whl against the TensorFlow in .venv
#   make lint      formatter, linters and house rules; make format mends what can be mended
#   make tidy      clang-tidy on the C++ that does without TensorFlow (minutes)
#   make sanitize  the C++ that does without TensorFlow under clang's sanitizers, and a short fuzz
#   make fuzz      libFuzzer on the engine's C API for FUZZ_SECONDS, half an hour
#   make test-simgpu  the GPU kernels in TensorFlow's GPU wheel on a simulated GPU (570 MB to install)
#   make conformance  our declarations of cuDNN and CUDA against real headers; with
#                     CUDNN_FETCH=FOLDER also against pip's newest cuDNN (700 MB)
#   make bazel-test  the Bazel build and its tests, with bazelisk or BAZEL=...
#
# Variables: PYTHON (the Python of the virtual environment), VENV (its folder), TENSORFLOW (a
# requirement such as "tensorflow==2.21.0"), CXX, JOBS, PYTEST_ARGS, FUZZ_SECONDS.

PYTHON ?= python3
VENV ?= .venv
TENSORFLOW ?= $(shell sed -n 's/^cpu = \["\(.*\)"\]$$/\1/p' pyproject.toml)
PYTEST_ARGS ?=
BENCHMARK_ARGS ?=
FUZZ_SECONDS ?= 1800
BAZEL ?= bazelisk
# A virtual environment with TensorFlow's GPU wheel and none of NVIDIA's, and the simulated GPU.
GPU_VENV ?= build/gpu-venv
GPU_TENSORFLOW ?= tensorflow==2.21.0
SIMGPU_SOURCE ?= ../shared/simgpu
CUDNN_FETCH ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: demo test build engine build/cc_tests cc-test wheel benchmark lint tidy format sanitize fuzz \
  test-simgpu conformance bazel-test clean
.DEFAULT_GOAL := build

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The package itself is installed as a link to this tree, so later builds only renew _ops.so.
$(VENV)/.ready: pyproject.toml setup.py | $(BIN)/python
	@echo "installing $(TENSORFLOW)"
	$(PIP) install "setuptools>=77" "$(TENSORFLOW)"
	$(PIP) install --no-build-isolation --editable '.[test,examples]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.ready
	$(PIP) install --no-build-isolation --editable '.[dev]'
	@touch $@

build: $(VENV)/.ready
	$(BIN)/python tools/build_cc.py ops

engine: $(VENV)/.ready
	$(BIN)/python tools/build_cc.py engine

build/cc_tests: $(VENV)/.ready
	$(BIN)/python tools/build_cc.py tests

cc-test: build/cc_tests
	$(BIN)/python -m pytest tests/test_cc.py $(PYTEST_ARGS)

test: build engine build/cc_tests
	$(BIN)/python -m pytest $(PYTEST_ARGS)

demo: build
	$(BIN)/python examples/japanese_vowels.py --output build/demo

benchmark: build
	$(BIN)/python tools/build_cc.py benchmark
	$(PIP) install --no-build-isolation --editable '.[bench]'
	$(BIN)/python -m benchmarks $(BENCHMARK_ARGS)

wheel: $(VENV)/.ready
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .
	$(BIN)/python tools/check_wheel.py dist/*.whl

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	git ls-files '*.cc' '*.h' '*.inc' | xargs $(BIN)/clang-format --dry-run -Werror
	$(BIN)/python tools/check_house.py

tidy: $(BIN)/python
	$(BIN)/python tools/build_cc.py tidy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	git ls-files '*.cc' '*.h' '*.inc' | xargs $(BIN)/clang-format -i

sanitize: $(BIN)/python
	$(BIN)/python tools/sanitize.py

fuzz: $(BIN)/python
	$(BIN)/python tools/sanitize.py fuzz $(FUZZ_SECONDS)

$(GPU_VENV)/.ready:
	$(PYTHON) -m venv $(GPU_VENV)
	$(GPU_VENV)/bin/pip --disable-pip-version-check --quiet install "$(GPU_TENSORFLOW)"
	@touch $@

test-simgpu: build engine $(GPU_VENV)/.ready
	SIMGPU_PYTHON=$(abspath $(GPU_VENV)/bin/python) SIMGPU_SOURCE=$(abspath $(SIMGPU_SOURCE)) \
	  $(BIN)/python -m pytest tests/simgpu -n 2 --dist loadfile $(PYTEST_ARGS)

conformance: $(BIN)/python $(GPU_VENV)/.ready
	$(BIN)/python tools/check_cudnn.py $(if $(CUDNN_FETCH),--fetch $(CUDNN_FETCH)) \
	  $(GPU_VENV)/lib/python3*/site-packages

bazel-test: $(VENV)/.ready
	PYTHON_BIN_PATH=$(abspath $(BIN)/python) $(BAZEL) test //...

clean:
	rm -rf build dist *.egg-info tf_cudnn_rnn_ops/_ops.so tf_cudnn_rnn_ops/build_info.json
