#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: adds nvme-cli, mdadm, losetup, blkzone and mkfs.btrfs, and from the kernel's package its drivers of NVMe,
# RAID 0, thin and delayed volumes, and btrfs.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

guest=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace/guest
"$guest/add.sh" "$3" nvme
"$guest/add.sh" "$3" mdadm
"$guest/add.sh" "$3" losetup
"$guest/add.sh" "$3" blkzone
"$guest/add.sh" "$3" mkfs.btrfs
GUEST_MODULES="nvme raid0 dm_thin_pool dm_delay btrfs" "$guest/kernel.sh" "$1" "$2" "$cache/disks-$1"
while read -r module; do
	cp "$cache/disks-$1/modules/$module" "$3/lib/modules/"
	grep -qx "$module" "$3/lib/modules/order" || echo "$module" >>"$3/lib/modules/order"
done <"$cache/disks-$1/modules/order"
