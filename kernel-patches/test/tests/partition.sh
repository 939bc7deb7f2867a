# SPDX-License-Identifier: MIT OR Apache-2.0
# A recorded partition: IO beside it is not recorded.
truncate -s 64M disk.img
printf 'n\np\n1\n2048\n40000\nn\np\n2\n40960\n100000\nw\n' | fdisk disk.img >/dev/null 2>&1 || true
loop=$(losetup -f)
losetup -P "$loop" disk.img
load dev="$(basename "$loop")p2"
dd if="$loop" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
record_start part.stream
dd if=/dev/zero of="${loop}p1" bs=4k count=5 oflag=direct 2>/dev/null
[ "$(cat "$class"/entries)" = 0 ] || fail "the other partition was recorded"
dd if=/dev/zero of="${loop}p2" bs=4k count=7 oflag=direct 2>/dev/null
# The same place is read through the whole disk.
dd if="$loop" of=/dev/null bs=4k skip=5120 count=1 2>/dev/null
record_stop
entries=$(cat "$class"/entries)
{ [ "$entries" -ge 8 ] && [ "$entries" -le 20 ]; } || fail "$entries entries"
[ "$(count part.stream)" = "$entries" ] || fail "$(count part.stream) of $entries entries"
info "$entries entries"
losetup -d "$loop"
unload
check_kernel
