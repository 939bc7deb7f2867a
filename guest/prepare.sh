#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by guest/run.sh: adds the programs that these tests run besides the guest's own tools. perl can call any ioctl.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

for tool in perl setpriv; do "$(dirname "$0")/add.sh" "$3" "$tool"; done
