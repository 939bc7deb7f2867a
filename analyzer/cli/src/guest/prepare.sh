#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: a job's programs and files.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

root=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$root/job"
cp -r "$here/files" "$root/job/"
while read -r program; do "$here/../tests/guest/add.sh" "$root" "$program"; done <"$here/programs"
