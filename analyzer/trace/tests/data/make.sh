#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Make the real traces of this folder again: make.sh OUTDIR   (root; uses one free loop device)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
tmp=$(mktemp -d)
truncate -s 256M "$tmp/img"
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$tmp/img"
dev=$(losetup --find --show --direct-io=off "$tmp/img")
mkdir "$tmp/mnt"
trap 'umount "$tmp/mnt" 2>/dev/null || true; losetup -d "$dev"; rm -rf "$tmp"' EXIT
queue=/sys/block/$(basename "$dev")/queue
echo 64 >"$queue/max_sectors_kb"
mount "$dev" "$tmp/mnt"

# fsyncs (flush and FUA sequences), merges of sequential writes, splits, read back, unlink and fstrim.
echo mq-deadline >"$queue/scheduler"
python3 "$here/capture.py" "$dev" "$out/ext4-fsync" "
    cd '$tmp/mnt'
    for i in 1 2 3 4 5 6; do dd if=/dev/zero of=small bs=4k count=3 seek=\$((i * 7)) conv=notrunc,fsync status=none; done
    dd if=/dev/zero of=large bs=1M count=6 conv=fsync status=none
    echo 3 >/proc/sys/vm/drop_caches
    cat large >/dev/null
    rm large && sync
    fstrim ."

# Direct IO from several processes at once, scheduler none: splits, reads, and writes to the same file.
echo none >"$queue/scheduler"
python3 "$here/capture.py" "$dev" "$out/ext4-direct" "
    cd '$tmp/mnt'
    fio --name=a --filename=direct --size=8M --direct=1 --ioengine=libaio --iodepth=8 --rw=randrw --bs=4k-256k --number_ios=120 --minimal >/dev/null &
    fio --name=b --filename=direct2 --size=4M --direct=1 --ioengine=psync --rw=write --bs=512k --fsync=4 --minimal >/dev/null
    wait"

# SQLite in rollback mode on a filesystem with online discard.
umount "$tmp/mnt"
mount -o discard "$dev" "$tmp/mnt"
python3 "$here/capture.py" "$dev" "$out/ext4-sqlite" "
    cd '$tmp/mnt'
    sqlite3 t.db 'create table t(a); insert into t values(randomblob(100));'
    for i in 1 2 3 4 5 6 7 8; do sqlite3 t.db 'insert into t values(randomblob(5000));'; done
    rm t.db; sync; sleep 1"
