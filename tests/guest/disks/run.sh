#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the tests of this folder, whose guests have more disks: an NVMe drive, and an NVMe namespace with two paths (multipath).
# usage: run.sh MOSTRACE [KERNEL | TARGET]…     (as of tests/guest/run.sh)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
images=$(mktemp -d)
trap 'rm -rf "$images"' EXIT
truncate -s 256M "$images/drive" "$images/shared"
drive="-drive file=$images/drive,format=raw,if=none,id=drive -device nvme,serial=1,drive=drive"
paths="-device nvme-subsys,id=subsystem -device nvme,serial=2,subsys=subsystem -device nvme,serial=2,subsys=subsystem"
shared="-drive file=$images/shared,format=raw,if=none,id=shared -device nvme-ns,drive=shared,shared=on"
# The guests share the images, so one boots at a time.
GUEST_QEMU="$drive $paths $shared" GUEST_JOBS=1 GUEST_SCRIPTS=$here/tests "$here/../run.sh" "$@"
