# SPDX-License-Identifier: Apache-2.0
# A short way to the usual jobs; CMake does the work (see CMakePresets.json).
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# WERROR=ON turns warnings of the optimized build into errors; a stranger's compiler may warn more.
WERROR ?= OFF

.DEFAULT_GOAL := build
.PHONY: build demo test test-arm64 bench format tidy install dist dist-check help clean

build: ## Build the library and the programs: build/bin/tare, build/bin/tare-replay
	@sh scripts/setup.sh build
	@cmake --preset release -DTARE_WERROR=$(WERROR) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build --preset release -j $(JOBS)

demo: build ## Quantize the handwritten-digits network and compare it with its float model
	@sh scripts/demo.sh

test: build ## Build with assertions and run every test
	@sh scripts/setup.sh test
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev -j $(JOBS)
	@ctest --preset release -j $(JOBS)
	@ctest --preset dev -j $(JOBS)
	@echo 'The kernels of 64-bit Arm were not run: make test-arm64 does, under qemu'

test-arm64: ## Run the tests of bits on 64-bit Arm, under qemu
	@sh scripts/setup.sh arm64
	@sh scripts/arm64.sh

bench: build ## Compare our speed with the last recorded figures (bench/record.json)
	@python3 bench/record.py

format: ## Format the C sources
	@sh scripts/setup.sh format
	@git ls-files -co --exclude-standard '*.[ch]' | xargs -r clang-format -i

tidy: ## Run the analyser over the sources (after make test)
	@sh scripts/setup.sh ci
	@sh scripts/tidy.sh

install: build ## Install below $(PREFIX); DESTDIR is honoured
	@cmake --install build/release --prefix "$(PREFIX)"

dist: ## Make the tarball of the last commit, below build/dist
	@sh scripts/dist.sh

dist-check: ## Make it, build and test it without git, and compare two builds: an hour
	@sh scripts/dist.sh check

clean: ## Remove everything that was built
	rm -rf build

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
