# SPDX-License-Identifier: MIT OR Apache-2.0
# `make demo` and `make test` are the whole set-up; `make check` while one works, `make test-all` before a release.

# Outside the checkout, so that a fresh clone does not compile polars again.
CACHE = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mostrace
export CARGO_TARGET_DIR ?= $(CACHE)/target

MOSTRACE = $(CARGO_TARGET_DIR)/release/mostrace

BUILD_PACKAGES = build-essential clang libelf-dev zlib1g-dev pkg-config
RUN_PACKAGES = e2fsprogs blktrace
TEST_PACKAGES = git python3 fio sqlite3 strace trace-cmd fdisk time util-linux xfsprogs btrfs-progs dosfstools mtools sleuthkit f2fs-tools exfatprogs qemu-utils shellcheck
GUEST_PACKAGES = qemu-system-x86 busybox-static cpio kmod xz-utils zstd attr e2fsprogs f2fs-tools dosfstools blktrace \
	dmsetup lvm2 xfsprogs build-essential fio util-linux python3
KERNEL_PACKAGES = build-essential flex bison bc libelf-dev libssl-dev git xz-utils pahole

# The recorder in the kernel: its tests, in the guests too.
RECORDER = env GUEST_SCRIPTS=kernel-patches/test/tests tests/guest/run.sh $(MOSTRACE)

# One profile for the whole, tests and lints.
CARGO = cargo
PROFILE = --release --locked

# Says what runs, and how long it took.
STEP = scripts/step.sh
# One failure does not hide the rest.
TESTS = $(CARGO) test $(PROFILE) --workspace --no-fail-fast
GUESTS = tests/guest/able.sh "$(GUEST_PACKAGES)"
MODULE = kernel-patches/test/able.sh

.PHONY: demo build install deb dist check test tests tests-of-truth tests-in-guests test-all truth truth-guest test-guest test-disks test-systemd test-module test-kernels test-patched bench-events lint book bench bench-analysis bench-record kills soak bench-beside bench-overhead bench-tax \
	bench-accuracy report-check test-python wheel test-fleet phone phone-armv7 phone-x86_64 test-arm64 test-arm64-analysis bench-phone samples samples-guest setup setup-test clean

# What records, and answers in a few lines: without tables and pages, whose polars takes ten minutes to build. It records by sudo if
# there is one.
demo: setup
	$(CARGO) build --locked --profile demo --package mostrace --no-default-features
	@$(if $(SUDO),$(shell command -v sudo)) scripts/demo.sh $(CARGO_TARGET_DIR)/demo/mostrace

build: setup
	$(CARGO) build $(PROFILE) --workspace --exclude test-support

# To where sudo finds it: built as who calls this, put there by root.
PREFIX = /usr/local
SUDO = $(if $(filter-out 0,$(shell id -u)),sudo)
install: build
	$(SUDO) install -D -s -m 755 $(MOSTRACE) $(DESTDIR)$(PREFIX)/bin/mostrace
	$(SUDO) scripts/pages.sh $(MOSTRACE) $(DESTDIR)$(PREFIX)
	@echo "install: $(DESTDIR)$(PREFIX)/bin/mostrace: the whole program, with tables and pages"

# All that a release has, in dist/; and of it the Debian package alone.
dist: setup
	scripts/dist.sh
deb: setup
	scripts/dist.sh --deb

# The program for a phone, static and small, without tables: target/mostrace-aarch64. See docs/PHONE.md.
phone:
	@scripts/setup.sh $(BUILD_PACKAGES)
	@scripts/phone.sh aarch64

phone-armv7 phone-x86_64:
	@scripts/setup.sh $(BUILD_PACKAGES)
	@scripts/phone.sh $(@:phone-%=%)

setup:
	@scripts/setup.sh $(BUILD_PACKAGES) $(RUN_PACKAGES)

setup-test:
	@scripts/setup.sh $(BUILD_PACKAGES) $(RUN_PACKAGES) $(TEST_PACKAGES)

# While one works: format, lints, and the tests that need no root.
check: lint
	@$(STEP) "tests without root" env MOSTRACE_ROOTLESS=1 $(TESTS)

# What a change can break in an ordinary way: loop devices and live captures too, and one kernel in qemu. The comparison of
# filesystems, more than a third of a guest's time, is left to test-all.
KERNELS = test
SPLIT =
ORDINARY = $(SLOW) $(filter-out $(SLOW) compare,$(basename $(notdir $(wildcard tests/guest/tests/*.sh))))
# Those that take longest, the longest first.
SLOW = dm discard hidden f2fs-causes sqlite causes ledger-clock changes f2fs-map fuse flushes
test: setup-test
	@$(MAKE) --no-print-directory --keep-going tests tests-of-truth tests-in-guests
tests:
	@$(STEP) "tests" $(TESTS)
tests-of-truth: build
	@$(STEP) "truth" tests/truth/run.sh $(MOSTRACE)
tests-in-guests: build
	@$(STEP) "guests: $(KERNELS)" $(GUESTS) env GUEST_TESTS="$(ORDINARY)" GUEST_SPLIT=$(SPLIT) tests/guest/run.sh $(MOSTRACE) $(KERNELS)

# Every sector that is written says whose it is, and every row is held against that: see docs/FIGURES.md.
truth: build
	tests/truth/run.sh $(MOSTRACE) all
	@$(MAKE) --no-print-directory truth-guest

# The same of f2fs, FAT and ext4 in a guest, by the probes and by the kernel's recorder; and the causes of ext4's metadata.
TRUTH = $(CARGO_TARGET_DIR)/truth/release/mostrace-truth
truth-guest: build
	$(CARGO) build $(PROFILE) --quiet --manifest-path tests/truth/Cargo.toml --target-dir $(CARGO_TARGET_DIR)/truth
	$(GUESTS) $(MODULE) env TRUTH=$(TRUTH) GUEST_SCRIPTS=tests/guest/truth/tests tests/guest/run.sh $(MOSTRACE) $(KERNELS)
	$(GUESTS) env MOSTRACE=$(MOSTRACE) GUEST_TESTS=ext4 GUEST_SCRIPTS=tests/guest/accuracy/tests tests/guest/run.sh $(MOSTRACE) $(KERNELS)

# All that there is but test-kernels: both kernels, the module on them, the patched kernels, the tests that take minutes.
test-all: lint
	@$(STEP) "tests, the long ones too" env MOSTRACE_LONG=1 $(TESTS)
	@$(STEP) "truth" tests/truth/run.sh $(MOSTRACE) all
	@$(STEP) "truth in a guest" $(MAKE) --no-print-directory truth-guest
	@$(STEP) "guests" $(MAKE) --no-print-directory test-guest
	@$(STEP) "disks" $(MAKE) --no-print-directory test-disks
	@$(STEP) "systemd" $(MAKE) --no-print-directory test-systemd
	@$(STEP) "module" $(MAKE) --no-print-directory test-module
	@$(STEP) "python" $(MAKE) --no-print-directory test-python
	@$(STEP) "fleet" $(MAKE) --no-print-directory test-fleet
	@$(STEP) "patched kernels" $(MAKE) --no-print-directory test-patched

# The package for Python, in an environment of its own that is made anew; pip fetches what it needs. The notebooks run too.
PYTHON = $(CARGO_TARGET_DIR)/python
test-python: build
	@scripts/setup.sh python3 python3-venv
	python3 -m venv --clear $(PYTHON)
	$(PYTHON)/bin/pip install --quiet './analyzer/python[test]'
	MOSTRACE=$(MOSTRACE) $(PYTHON)/bin/python -m unittest discover analyzer/python/tests
	scripts/test-wheel.sh $(MOSTRACE)

# A wheel that has the program inside, in dist/. See docs/PYTHON.md.
wheel: build
	@scripts/setup.sh python3 python3-venv binutils
	scripts/wheel.sh $(MOSTRACE)

# Many recordings as one data set: DuckDB, and Spark as a cluster of two workers on this machine, whose processes are killed.
FLEET = $(CARGO_TARGET_DIR)/fleet
JAVA = $(shell command -v java >/dev/null || echo default-jre-headless)
test-fleet: build
	@scripts/setup.sh python3 python3-venv $(JAVA)
	python3 -m venv $(FLEET)
	$(FLEET)/bin/pip install --quiet './lab/fleet[spark,test]'
	MOSTRACE=$(MOSTRACE) $(FLEET)/bin/python -m unittest discover lab/fleet/tests

# On Debian's 6.1 and 6.12 in qemu, with real f2fs, vfat and blktrace.
test-guest: build
	$(GUESTS) tests/guest/run.sh $(MOSTRACE) test all

# On the same, with disks that other machines have: NVMe drives, namespaces with several paths, RAID 0, thin volumes and volumes that delay,
# and with filesystems on several devices.
test-disks: build
	tests/guest/able.sh "$(GUEST_PACKAGES) nvme-cli mdadm btrfs-progs" tests/guest/disks/run.sh $(MOSTRACE) test all

# The ledger's unit, under systemd in a guest.
test-systemd: build
	tests/guest/able.sh "$(GUEST_PACKAGES) systemd" env GUEST_SCRIPTS=tests/guest/systemd/tests tests/guest/run.sh $(MOSTRACE) test all

# The kernel module on the same.
test-module: build
	$(GUESTS) $(MODULE) $(RECORDER) test all

# All on every kernel of Debian in tests/guest/kernels, 5.10 to 7.2.
test-kernels: build
	$(GUESTS) tests/guest/run.sh $(MOSTRACE) test all kernels
	$(GUESTS) $(MODULE) env MOSTRACE=$(MOSTRACE) GUEST_SCRIPTS=tests/guest/phone/tests tests/guest/run.sh $(MOSTRACE) 5.10
	$(GUESTS) $(MODULE) $(RECORDER) test all kernels

# The phone's recorder on Debian's 6.1 and 6.12 for arm64, and on 6.12 with pages of 16 KiB, and what it recorded analysed here.
test-arm64: build phone
	tests/guest/able.sh "$(GUEST_PACKAGES) qemu-system-arm" $(MODULE) env MOSTRACE=$(MOSTRACE) GUEST_SCRIPTS=tests/guest/phone/tests \
		tests/guest/run.sh $(CARGO_TARGET_DIR)/mostrace-aarch64 arm64
	tests/guest/able.sh "$(GUEST_PACKAGES) qemu-system-arm" $(MODULE) env MOSTRACE=$(MOSTRACE) GUEST_SCRIPTS=tests/guest/phone/tests \
		tests/guest/run.sh $(CARGO_TARGET_DIR)/mostrace-aarch64 arm64-16k

# What the analyser says there of a recording that was made there, and what it says here of the same. Builds the analyser for arm64, polars too: a
# quarter of an hour and more.
test-arm64-analysis: build phone
	scripts/analyzer.sh
	tests/guest/able.sh "$(GUEST_PACKAGES) qemu-system-arm" env MOSTRACE=$(MOSTRACE) GUEST_SCRIPTS=tests/guest/phone/analysis/tests \
		ANALYZER=$(CARGO_TARGET_DIR)/mostrace-analyzer-aarch64 tests/guest/run.sh $(CARGO_TARGET_DIR)/mostrace-aarch64 6.12-arm64

# What recording costs there, by level: instructions a transaction of SQLite, and the recorder's memory.
bench-phone: build phone
	tests/guest/able.sh "$(GUEST_PACKAGES) qemu-system-arm" $(MODULE) env GUEST_SCRIPTS=tests/guest/phone/overhead/tests \
		GUEST_QEMU="-smp 1 -icount shift=0,sleep=off" GUEST_SILENCE=7200 tests/guest/run.sh $(CARGO_TARGET_DIR)/mostrace-aarch64 arm64

# On 6.12 and 7.2 with the series and the recorder built in, and on 6.12 with the kernel's own checks: builds three kernels.
test-patched: build
	tests/guest/able.sh "$(GUEST_PACKAGES) $(KERNEL_PACKAGES)" $(RECORDER) patched
	tests/guest/able.sh "$(GUEST_PACKAGES) $(KERNEL_PACKAGES)" env GUEST_SCRIPTS=kernel-patches/series/test tests/guest/run.sh \
		$(MOSTRACE) 6.12-plain 7.2-plain

# What the upstream patches' tracepoints cost, off and on, in instructions: builds a 6.12 without and one with them.
bench-events: build
	tests/guest/able.sh "$(GUEST_PACKAGES) $(KERNEL_PACKAGES)" env GUEST_SCRIPTS=kernel-patches/upstream/overhead \
		GUEST_QEMU="-smp 1 -icount shift=0,sleep=off" GUEST_SILENCE=7200 tests/guest/run.sh $(MOSTRACE) events

CLIPPY = $(CARGO) clippy $(PROFILE) --all-targets --workspace
lint: setup-test
	@$(STEP) "format" $(CARGO) fmt --all --check
	@$(STEP) "format, truth" $(CARGO) fmt --manifest-path tests/truth/Cargo.toml --check
	@$(STEP) "format, fuzz" $(CARGO) fmt --manifest-path tests/fuzz/Cargo.toml --check
	@$(STEP) "links" scripts/links.sh
	@$(STEP) "shell scripts" scripts/shellcheck.sh
	@$(STEP) "licences, versions, advisories" scripts/deny.sh
	@$(STEP) "clippy" $(CLIPPY) -- -D warnings
	@$(STEP) "clippy, fuzz" $(CARGO) clippy --locked --manifest-path tests/fuzz/Cargo.toml -- -D warnings
	@$(STEP) "clippy, without tables" $(CARGO) clippy $(PROFILE) --package mostrace --no-default-features -- -D warnings
	@$(STEP) "tests that would not run" scripts/check-tests.sh
	@$(STEP) "analyser for macOS" scripts/check-macos.sh $(CARGO) $(PROFILE)
	@$(STEP) "series" kernel-patches/series/generate.sh --check

# The pages of docs/ as a book, in target/book.
book:
	@command -v mdbook >/dev/null || { echo "book: mdbook not found: install it by \`cargo install mdbook\`" >&2; exit 1; }
	mdbook build

bench: setup-test
	$(CARGO) bench --locked -p mostrace

# How fast a recording with causes is read (root), beside blkparse.
bench-analysis: build
	tests/guest/able.sh "blktrace fio" scripts/bench-analysis.sh $(MOSTRACE)

# What recording with our probes costs on this machine (root): IOPS, p99, ns per write, wakeups. PARTS= is of scripts/bench-record.sh.
bench-record: build
	tests/guest/able.sh "bpftool fio" scripts/bench-record.sh $(MOSTRACE) $(PARTS)

# The recorder, its guard or both killed at moments of chance (root): nothing may be left behind. The same SEED is the same again.
KILLS = 50
SEED = 1
kills: build
	scripts/kills.sh $(MOSTRACE) $(KILLS) $(SEED)

# Over 100,000 writes a second for ten minutes by each source (root): losses, memory, counters, rows. SOAK_ variables are of scripts/soak.sh.
SECONDS = 600
SOURCES = bpf tracefs
soak: build
	scripts/soak.sh $(MOSTRACE) $(SECONDS) $(SOURCES)

# The same beside bpftrace's biosnoop, which apt-get installs (bpftrace).
bench-beside: build
	scripts/bench-beside.sh $(MOSTRACE)

# What recording costs, in instructions: one emulated CPU whose clock counts them.
bench-overhead: build
	$(GUESTS) env GUEST_SCRIPTS=kernel-patches/test/overhead GUEST_QEMU="-smp 1 -icount shift=0,sleep=off" \
		GUEST_SILENCE=7200 tests/guest/run.sh $(MOSTRACE) test all

# What a recording costs calls that have nothing to do with it: here (root), and in the guests, where a nanosecond is an instruction.
bench-tax: build
	scripts/bench-tax.sh $(MOSTRACE)
	$(GUESTS) env GUEST_SCRIPTS=tests/guest/tax/tests GUEST_QEMU="-smp 1 -icount shift=0,sleep=off" GUEST_SILENCE=7200 \
		tests/guest/run.sh $(MOSTRACE) test all

# How right causes are, in the guests: those of ext4's blocks against a trace of every modification by the kernel's kprobe events; those of f2fs
# and FAT against writers' folders and a trace of every buffer.
bench-accuracy: build
	$(GUESTS) env MOSTRACE=$(MOSTRACE) GUEST_SCRIPTS=tests/guest/accuracy/tests tests/guest/run.sh $(MOSTRACE) test all

# Pages of the samples in Chromium, light and dark, wide and narrow: needs chromium, node and npm, and takes two packages of npm's. PAGES= names
# some of them, such as wal.
report-check: build
	scripts/report-check.sh $(MOSTRACE) $(PAGES)

# Captures the sample traces anew (root).
samples: build
	sample-traces/capture.sh $(MOSTRACE)

# Those of f2fs and FAT, on Debian's 6.12 in qemu.
samples-guest: build
	$(GUESTS) env GUEST_SCRIPTS=sample-traces/guest tests/guest/run.sh $(MOSTRACE) 6.12
	cp $(CACHE)/guest/6.12/sample-traces/guest/out/*.most.tar.zst sample-traces/

clean:
	$(CARGO) clean
