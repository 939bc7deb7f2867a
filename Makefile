# SPDX-License-Identifier: MIT OR Apache-2.0
# `make demo` and `make test` are the whole set-up.

# Outside the checkout, so that a fresh clone does not compile polars again.
CACHE = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mostrace
export CARGO_TARGET_DIR ?= $(CACHE)/target

MOSTRACE = $(CARGO_TARGET_DIR)/release/mostrace

BUILD_PACKAGES = build-essential clang libelf-dev zlib1g-dev pkg-config
RUN_PACKAGES = e2fsprogs blktrace
TEST_PACKAGES = fio sqlite3 strace fdisk util-linux xfsprogs dosfstools mtools sleuthkit f2fs-tools exfatprogs
GUEST_PACKAGES = qemu-system-x86 busybox-static cpio kmod xz-utils zstd attr e2fsprogs f2fs-tools dosfstools blktrace \
	build-essential fio util-linux python3
KERNEL_PACKAGES = build-essential flex bison bc libelf-dev libssl-dev git xz-utils

# The recorder in the kernel: its tests, in the guests too.
RECORDER = GUEST_SCRIPTS=kernel-patches/test/tests guest/run.sh $(MOSTRACE)

# One profile for demo, tests and lints.
CARGO = cargo
PROFILE = --release --locked

.PHONY: demo build install test test-guest test-kernels test-patched lint features bench bench-overhead samples samples-guest setup setup-test clean

demo: build
	@scripts/demo.sh $(MOSTRACE)

build: setup
	$(CARGO) build $(PROFILE) --workspace

# To ~/.cargo/bin.
install: build
	$(CARGO) install --locked --path analyzer

setup:
	@scripts/setup.sh $(BUILD_PACKAGES) $(RUN_PACKAGES)

setup-test:
	@scripts/setup.sh $(BUILD_PACKAGES) $(RUN_PACKAGES) $(TEST_PACKAGES)

test: setup-test features
	$(CARGO) test $(PROFILE) --workspace
	@! guest/able.sh $(GUEST_PACKAGES) || $(MAKE) test-guest test-patched

# On Debian's 6.1 and 6.12 in qemu, with real f2fs, vfat and blktrace; then the kernel module on the same.
test-guest: build
	@guest/able.sh $(GUEST_PACKAGES)
	guest/run.sh $(MOSTRACE) test
	@! kernel-patches/test/able.sh || $(RECORDER) test

# The same on every kernel of Debian in guest/kernels, 5.10 to 7.2.
test-kernels: build
	@guest/able.sh $(GUEST_PACKAGES)
	guest/run.sh $(MOSTRACE) test kernels
	@! kernel-patches/test/able.sh || $(RECORDER) test kernels

# On a 6.1 with the recorder built in, as it is and with the kernel's own checks: builds both kernels.
test-patched: build
	@guest/able.sh $(GUEST_PACKAGES) $(KERNEL_PACKAGES)
	$(RECORDER) patched
	GUEST_SCRIPTS=kernel-patches/series/test guest/run.sh $(MOSTRACE) 6.1-plain

# Capture and analysis each build and pass their tests without the other; the maps need neither.
FEATURE_TESTS = --lib --bins --test 'cli_*' --test record --test samples
features: setup-test
	$(CARGO) test $(PROFILE) -p mostrace --no-default-features $(FEATURE_TESTS)
	$(CARGO) test $(PROFILE) -p mostrace --no-default-features --features analyze $(FEATURE_TESTS)
	$(CARGO) test $(PROFILE) -p mostrace --no-default-features --features record $(FEATURE_TESTS)

lint: setup-test
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(PROFILE) --workspace --all-targets -- -D warnings
	kernel-patches/series/generate.sh --check

bench: setup-test
	$(CARGO) bench --locked -p mostrace

# What recording costs, in instructions: one emulated CPU whose clock counts them.
bench-overhead: build
	@guest/able.sh $(GUEST_PACKAGES)
	GUEST_SCRIPTS=kernel-patches/test/overhead GUEST_QEMU="-smp 1 -icount shift=0,sleep=off" GUEST_LIMIT=7200 \
		GUEST_TEST_LIMIT=7200 guest/run.sh $(MOSTRACE) test

# Captures the sample traces anew (root).
samples: build
	sample-traces/capture.sh $(MOSTRACE)

# Those of f2fs and FAT, on Debian's 6.12 in qemu.
samples-guest: build
	@guest/able.sh $(GUEST_PACKAGES)
	GUEST_SCRIPTS=sample-traces/guest guest/run.sh $(MOSTRACE) 6.12
	cp $(CACHE)/guest/6.12/sample-traces/guest/out/*.most.tar.zst sample-traces/

clean:
	$(CARGO) clean
