# SPDX-License-Identifier: MIT OR Apache-2.0
# A device disappears while it is recorded and written: a loop device and a disk.
fresh_ext4 64 -b 4096
load dev="$(basename "$loop"),vda" names=all
record_start gone.stream

# write_at DEVICE-OR-FILE: writes until it fails or is killed. It does not create a plain file in place of a removed
# disk.
write_at() {
	while /usr/local/bin/dd if=/dev/zero of="$1" bs=4k count=64 oflag=direct conv=notrunc,nocreat; do :; done 2>/dev/null
}

# recorded_more: succeeds if there are more than $before entries.
recorded_more() {
	[ "$(cat $class/entries)" -gt $((before + 20)) ]
}

: >"$mnt/gone"
write_at "$mnt/gone" &
writer=$!
before=0
wait_for "loop: nothing recorded" recorded_more
# A loop device that is detached while in use disappears with its mount.
losetup -d "$loop"
umount -l "$mnt"
# The writer may have ended by itself, since the file's folder is gone.
kill $writer 2>/dev/null || true
wait $writer || true

disk=$(basename "$(readlink -f /sys/block/vda/device)")
driver=/sys/bus/virtio/drivers/virtio_blk
write_at /dev/vda &
writer=$!
before=$(cat $class/entries)
wait_for "disk: nothing recorded" recorded_more
echo "$disk" >$driver/unbind
wait $writer || true
[ ! -e /sys/block/vda ] || fail "vda is still there"
kill -0 "$reader" || fail "the reader ended"
echo "$disk" >$driver/bind
wait_for "vda is not back" test -b /dev/vda
# A device that comes back under the same number is recorded again.
before=$(cat $class/entries)
/usr/local/bin/dd if=/dev/zero of=/dev/vda bs=4k count=64 oflag=direct conv=notrunc,nocreat 2>/dev/null
recorded_more || fail "$(cat $class/entries) entries after $before"
record_stop
[ "$(count gone.stream)" = "$(cat $class/entries)" ] || fail "$(count gone.stream) of $(cat $class/entries) entries"
info "$(count gone.stream) entries"
unload
check_kernel
