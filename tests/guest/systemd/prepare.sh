#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: adds systemd, which starts the tests as a service, and the ledger's unit.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$3
systemd=$(dirname "$(readlink -f /lib/systemd/systemd)")
mkdir -p "$root/usr/lib/systemd/system" "$root/etc/systemd/system"
for program in systemd systemd-executor systemd-shutdown; do
	[ ! -e "$systemd/$program" ] || cp "$systemd/$program" "$root/usr/lib/systemd/"
	[ ! -e "$systemd/$program" ] || "$here/../add.sh" "$root" "$systemd/$program"
done
for tool in systemctl systemd-analyze systemd-run mount umount; do "$here/../add.sh" "$root" "$tool"; done
cp "$here/guest.target" "$here/guest.service" "$root/etc/systemd/system/"
cp "$here/../../../scripts/mostrace-ledger.service" "$root/etc/systemd/system/"
ln -s guest.target "$root/etc/systemd/system/default.target"
for unit in sysinit.target basic.target shutdown.target umount.target; do cp "$systemd/system/$unit" "$root/usr/lib/systemd/system/"; done
echo root:x:0:0:root:/:/bin/sh >"$root/etc/passwd"
echo root:x:0: >"$root/etc/group"
: >"$root/etc/machine-id"
