# The README's two commands, and what contributors use besides. Every target sets up what it needs.

RUN := tools/env
FUZZ_SECONDS ?= 60
SEEDS ?= 2

# Debian's and other distributions' stable compilers can build the fuzz target with this; the
# sanitizer is left out because the code is safe Rust and the runtime is not packaged everywhere.
FUZZ := RUSTC_BOOTSTRAP=1 $(RUN) cargo fuzz

# Without cached bytecode each of a thousand processes of the tests would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup dev loader kernel demo study studio test test-compile test-rust test-cases test-python test-host check test-studies test-kernel test-live test-gateway test-studio test-cluster test-checked test-all test-slow compare validate bench bench-brief bench-table guard examples format format-check lint lint-format lint-rust lint-python generate generate-check docs fuzz fuzz-brief lock wheel gateway-release group-release clean distclean
.DEFAULT_GOAL := help

help: ## Say what the targets do
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-22s %s\n", $$1, $$2 }'

setup: ## Set up the checkout: .tools, .venv, the engine
	@tools/bootstrap

dev: ## As setup, with the tools of development
	@tools/bootstrap dev

loader: ## Build what loads programs into the kernel; needs clang, libelf and zlib
	@tools/bootstrap loader

kernel: setup ## Build a Linux kernel for virtual time unless there is one (seven minutes of a processor)
	@$(RUN) python -c 'from anabranch.kernel.images import chosen; print("kernel:", chosen().release)' 2>/dev/null || $(RUN) anabranch kernel build

studio: setup ## Build the studio, the engine in a page; needs Node.js and rustc's library for WebAssembly
	@tools/build_studio

demo: setup ## Run the reordering study in quick mode; write a page of it
	@$(RUN) anabranch demo --out out/demo

# What controllers of link groups save takes four minutes even in quick mode: anabranch study link-aggregation-frontier
STUDIES := $(filter-out studies/link-aggregation-frontier/,$(sort $(wildcard studies/*/)))

study: setup ## Run the studies that ship, in quick mode (three minutes); write their reports
	@echo "$(words $(STUDIES)) studies in quick mode: about three minutes on two cores. make demo runs one of them: seconds." >&2
	@$(RUN) anabranch study $(STUDIES) --quick --out out/studies

# A study takes all cores by itself, and what runs live must not wait for them; two live runs at a time sleep most of it
# (docs/design/012-what-tests-run.md).
test: ## Run the tests, of studies and live runs those marked brief
	@tools/bootstrap test
	@$(MAKE) --no-print-directory test-compile
	@$(MAKE) --no-print-directory test-rust
	@$(MAKE) --no-print-directory test-python
	@$(MAKE) --no-print-directory test-host

# The parts of `make test`, which sets up what they need. .ci/run has two of them at the same time.

# Examples are left out: clippy checks them. validation/kernel/queues.py uses one, and builds it if need be.
# The gateway's daemon is not optimized for its tests, and its libraries as ever; `cargo build --release` replaces it.
RUST_TESTS := env RUSTC_WRAPPER=$(CURDIR)/tools/rustc_tests cargo nextest run --cargo-profile release --workspace --locked --tests \
  --config profile.release.package.anabranch-gatewayd.opt-level=0

# Tests in Python call the group controller, and no test in Rust makes cargo build it.
test-compile:
	$(RUN) $(RUST_TESTS) --no-run
	$(RUN) cargo build --quiet --profile release --workspace --locked --example decisions --bin anabranch-group

# A fixed seed for the properties: a failure is one anybody sees again. Leave it out to look further.
# Four times as many at once as there are processors: those that run live sleep most of the time.
TEST_THREADS ?= $$((4 * $$(getconf _NPROCESSORS_ONLN)))

test-rust:
	$(RUN) env PROPTEST_RNG_SEED=1 $(RUST_TESTS) --no-fail-fast --test-threads $(TEST_THREADS)
	$(RUN) python tools/rust_skips.py
	$(RUN) cargo test --profile release --workspace --exclude anabranch-studio --locked --doc

test-cases: ## Run the Rust tests with many random cases, of which `make test` has few
	@tools/bootstrap test
	$(RUN) env PROPTEST_RNG_SEED=1 $(RUST_TESTS) --no-fail-fast --run-ignored only many_cases

# Tests in virtual time (tests/guest, ignored tests of the crates, and whole commands in tests/python) are skipped where no
# kernel is built: make kernel. Longer ones are marked long: make test-kernel.
test-python:
	$(RUN) python -m pytest -rs -n auto --dist loadfile -m 'not slow and not long' tests/python tests/tools validation/tests
	$(RUN) python -m pytest -rs -m 'brief and not slow' tests/studies
	$(RUN) python -m pytest -rs tests/guest

# Nothing else may take all processors: these tests are about time.
test-host:
	$(RUN) python -m pytest -rs -n 2 --dist loadfile -m 'brief and not slow' tests/live

test-studies: dev ## Run all tests of studies, and wrong systems beside figures of others
	$(RUN) python -m pytest -rs tests/studies
	$(RUN) python -m pytest -rs -n auto --dist loadfile -m long tests/python tests/tools validation/tests

test-kernel: ## Run all tests with a Linux kernel in virtual time; needs one (make kernel)
	@tools/bootstrap test
	$(RUN) cargo build --profile release -p anabranch-groupd --locked
	$(RUN) env ANABRANCH_KERNEL_TESTS=required python -m pytest -rs tests/guest
	$(RUN) env ANABRANCH_KERNEL_TESTS=required python -m pytest -rs -n auto tests/python/test_kernel_real.py tests/python/test_kernel_guest.py tests/python/test_kernel_hosts.py validation/tests/test_kernel_queues.py

test-live: ## Run all tests of live runs (4 minutes)
	@tools/bootstrap test
	$(RUN) python -m pytest -rs -n 2 --dist loadfile tests/live

test-gateway: ## Run the tests that send QUIC through the gateway's tunnel, lint them, and let paths fail in virtual time
	@tools/bootstrap test
	$(RUN) cargo clippy --profile release -p anabranch-gatewayd --all-targets --locked --features quic-tests -- -D warnings
	$(RUN) cargo nextest run --cargo-profile release --no-fail-fast -p anabranch-gatewayd --locked --features quic-tests quic
	$(RUN) python bench/gateway/failures.py
	$(RUN) cargo nextest run --cargo-profile release -p anabranch-engine --locked --run-ignored only --test all never_worse::

test-studio: setup ## Test the studio: units, digests beside the native engine's, the page in Chromium; needs Node.js
	@tools/test_studio

# Ray has a separate environment, .tools/cluster: with Ray, `make test` would have forty packages more.
test-cluster: ## Run the tests of Ray clusters (six minutes; installs Ray)
	@tools/bootstrap cluster
	.tools/cluster/bin/python -m pytest -rs tests/cluster

# `make test` uses the engine's own build, in which overflow wraps.
test-checked: dev ## Run the Rust tests with checks of overflow and assertions (builds all of it again)
	$(RUN) env PROPTEST_RNG_SEED=1 cargo nextest run --no-fail-fast --test-threads $$((4 * $$(getconf _NPROCESSORS_ONLN))) --workspace --locked
	$(RUN) python tools/rust_skips.py

test-all: ## Run all tests but those marked slow, one kind after the other
	$(MAKE) test
	$(MAKE) test-checked
	$(MAKE) test-studies
	$(MAKE) kernel test-kernel
	$(MAKE) test-live
	$(MAKE) test-gateway
	$(MAKE) test-studio
	$(MAKE) test-cluster

test-slow: dev ## Run the tests that make every figure of a page anew
	$(RUN) python -m pytest -rs -m slow validation/tests tests/guest tests/live

compare: dev ## Set figures of other implementations beside ours, row by row; write docs/validation
	@$(RUN) python validation/compare.py --write

validate: setup ## Run the scenarios of scenarios/live in both engines; write docs/validation/live.md (20 minutes)
	@status=0; $(RUN) anabranch validate --seeds $(SEEDS) --keep out/live-runs --out out/validation scenarios/live/*.toml || status=$$?; \
	  test $$status -le 1 && $(RUN) python validation/live_validation.py out/validation && exit $$status

bench: setup ## Measure speed and memory; needs valgrind for instruction counts
	@status=0; $(RUN) anabranch bench || status=1; $(RUN) anabranch bench --commands || status=1; exit $$status

# The crates and features are those of `make test`, so that little is built again.
# Instructions are counted of one case, to see that counting works; `make guard` counts those on record.
bench-brief: setup ## Run every case of the benchmark for a fraction of a second
	$(RUN) cargo build --profile release --locked --quiet --workspace --bin anabranch-bench
	$(RUN) target/release/anabranch-bench --brief --no-instructions
	$(RUN) target/release/anabranch-bench --brief --case plain --flows 1

bench-table: setup ## Measure the plain case beside other simulators; write the table of docs/bench.md
	$(RUN) cargo run --profile dist --locked --quiet -p anabranch-bench -- --table docs/bench.md

guard: setup ## Compare instructions and events per packet and digests with the record
	$(RUN) cargo run --profile dist --locked --quiet -p anabranch-bench -- --guard

examples: dev ## Build and run the examples outside the workspace, and the one in CONTRIBUTING.md
	$(RUN) examples/run
	$(RUN) python tools/try_contribution.py

format: ## Format all sources
	@tools/bootstrap lint
	git ls-files -z --cached --others --exclude-standard '*.rs' | xargs -0 $(RUN) rustfmt --edition 2024
	$(RUN) ruff format
	$(RUN) ruff check --fix-only --quiet

format-check: ## Check the formatting of all sources
	@tools/bootstrap lint
	@$(MAKE) --no-print-directory lint-format

# Over the list of files: `cargo fmt` passes over modules that a macro declares.
lint-format:
	git ls-files -z --cached --others --exclude-standard '*.rs' | xargs -0 $(RUN) rustfmt --check --edition 2024
	$(RUN) ruff format --check

lint: ## Check everything that is checked without running it
	@tools/bootstrap lint
	@$(MAKE) --no-print-directory lint-rust
	@$(MAKE) --no-print-directory lint-python

lint-rust:
	$(RUN) cargo clippy --profile release --workspace --all-targets --locked $$(cat .tools/cargo-features) -- -D warnings
	$(RUN) cargo fetch --locked --quiet
	$(RUN) cargo deny --offline --locked check --hide-inclusion-graph bans licenses sources
	$(RUN) python tools/check_one_build.py

lint-python:
	$(RUN) python tools/check_layers.py
	$(RUN) python tools/check_circles.py
	$(RUN) python tools/check_locks.py
	$(RUN) python tools/check_docs_paths.py
	$(RUN) ruff check
	$(RUN) python tools/check_prose.py
	$(RUN) env MYPYPATH=tools:validation:tests mypy --strict python/anabranch tests/python tools tests/tools validation tests/studies tests/live tests/guest tests/cluster && $(RUN) env MYPYPATH=bench/gateway mypy --strict bench/gateway

check: ## Check what has changed: formatting, lints and its tests; a minute
	@tools/bootstrap lint
	@$(RUN) python tools/check_changed.py

generate: dev ## Write the generated reference and the JSON Schema
	$(RUN) python tools/generate.py

generate-check: dev ## Check that the generated files are up to date
	$(RUN) python tools/generate.py --check

docs: dev ## Build the documentation site into site/, strictly
	@NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict --quiet
	@echo "documentation: site/index.html"

FUZZ_TARGETS := scenario capture diagnose diagnose_segments lacpdu fec gateway_control gateway_data gateway_handshake gateway_inner qlog recording script tunnel wire

fuzz: dev ## Fuzz the scenario parser and the wire formats for FUZZ_SECONDS (60) each
	for target in $(FUZZ_TARGETS); do \
	  $(FUZZ) run --sanitizer none $$target -- -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096 || exit 1; \
	done

fuzz-brief: setup ## Run each fuzz target for two seconds with random inputs, without libFuzzer
	$(RUN) cargo build --release --locked --quiet --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --no-default-features --bins
	for target in $(FUZZ_TARGETS); do \
	  echo $$target: && FUZZ_SECONDS=2 target/fuzz/release/$$target || exit 1; \
	done

# axe-playwright-python is locked for the axe.min.js in it: the tests drive Chromium themselves.
WITHOUT_PLAYWRIGHT := --no-emit-package playwright --no-emit-package pyee --no-emit-package greenlet

lock: dev ## Renew the lock files after a change of requirements*.in or Cargo.toml
	@eval "$$(.tools/uv/bin/python tools/pip_settings.py)" && \
	compile() { .tools/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header "$$@"; } && \
	compile requirements-dev.in $(WITHOUT_PLAYWRIGHT) -o requirements-dev.lock && \
	compile requirements.in --constraint requirements-dev.lock -o requirements.lock && \
	compile requirements-cluster.in --constraint requirements-dev.lock -o requirements-cluster.lock && \
	compile tools/wheel.in --constraint requirements-dev.lock -o tools/wheel.lock
	$(RUN) cargo update --workspace
	$(RUN) cargo update --workspace --manifest-path fuzz/Cargo.toml
	$(RUN) python tools/check_locks.py

wheel: setup ## Build wheels into dist/: x86-64 and aarch64, glibc and musl, as far as this rustc compiles for them
	@tools/build_wheel --all

gateway-release: ## Build static binaries of the gateway into dist/: x86-64 and aarch64, with checksums
	@packaging/build-release anabranch-gateway

group-release: ## Build static binaries of the group controller into dist/, as gateway-release does
	@packaging/build-release anabranch-group

clean: ## Remove what was built; keep the environment
	rm -rf target site out .mypy_cache .ruff_cache .pytest_cache .hypothesis .tools/stamps/engine python/anabranch/_loader.so

distclean: clean ## Remove the environment as well
	rm -rf .venv .tools
