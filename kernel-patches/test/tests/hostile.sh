# SPDX-License-Identifier: MIT OR Apache-2.0
# What a reader, or whoever is no reader, may do.

# refused WORDS COMMAND…: it fails and says so.
refused() {
	words=$1
	shift
	! "$@" >refused.log 2>&1 || fail "not refused: $*"
	grep -q "$words" refused.log || fail "$*: $(cat refused.log), not $words"
}

put() {
	echo "$1" >"$sys/$2"
}

load
refused "No such device" cat /dev/mostrace
fresh_ext4 64 -b 4096
for bad in nonsense /dev/null 240:17 1:2:3 99999999:1 "$(printf '%0300d' 1)" loop0,loop0,loop0,loop0,loop0,loop0,loop0,loop0,loop0; do
	! (put "$bad" dev) 2>/dev/null || fail "dev=$bad was taken"
done
[ -z "$(cat $sys/dev)" ] || fail "dev is $(cat $sys/dev)"
put " /dev/loop0 " dev
put "$(cut -d: -f1-2 "/sys/block/$(basename "$loop")/dev")" dev
put 16 ring_kb
! (put "$(printf '%0600d' 1)" names) 2>/dev/null || fail "names of 600 bytes were taken"

/usr/local/bin/probe "$mnt/probe" || fail "probe"

step unread
# A reader that never reads: nothing waits for it, and what is lost is counted.
exec 3</dev/mostrace
refused "busy" cat /dev/mostrace
(put loop0 dev) 2>/dev/null && fail "dev was set while recording"
(put all names) 2>/dev/null && fail "names were set while recording"
refused "temporarily unavailable" rmmod mostrace
refused "ermission denied" /usr/local/bin/setpriv --reuid 65534 --clear-groups cat /dev/mostrace
start=$(date +%s)
dd if=/dev/urandom of="$mnt/unread" bs=4k count=600 oflag=direct 2>/dev/null
info "600 direct writes, unread: $(($(date +%s) - start)) s, $(cat $class/entries) entries, $(cat $class/losses/entries_ring) lost"
[ "$(cat $class/losses/entries_ring)" -gt 100 ] || fail "nothing lost"
timeout 3 cat <&3 >/tmp/out/overrun.stream || true
kept=$(cat $class/entries)
dd if=/dev/zero of="$mnt/after" bs=4k count=1 oflag=direct 2>/dev/null
timeout 3 cat <&3 >>/tmp/out/overrun.stream || true
[ "$(cat $class/entries)" -gt "$kept" ] || fail "a ring that was full stays so"
exec 3<&-
refused "not permitted" /usr/local/bin/setpriv --bounding-set -sys_admin --inh-caps -sys_admin cat /dev/mostrace

step names
# Names: of 255 bytes; kept if asked for, else said to be there.
long=$(printf '%0251d' 1)
put 1024 ring_kb
put "temp,[k]?eep*" names
record_start names.stream
for name in "$long.tmp" "$long.txt" kXeep other; do echo x >"$mnt/$name"; done
sync
record_stop
check_nothing_lost
for name in "$long.tmp" kXeep; do grep -q "$name" names.stream || fail "$name not kept"; done
for name in "$long.txt" other; do ! grep -q "$name" names.stream || fail "$name was not asked for"; done

step unplug
# The device goes while it is recorded.
record_start gone.stream
remove
record_stop
check_kernel

step partition
# A partition: what is beside it is not recorded.
truncate -s 64M disk.img
printf 'n\np\n1\n2048\n40000\nn\np\n2\n40960\n100000\nw\n' | fdisk disk.img >/dev/null 2>&1 || true
loop=$(losetup -f)
losetup -P "$loop" disk.img
part=$(basename "$loop")p2
put "$part" dev
dd if="$loop" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
record_start part.stream
dd if=/dev/zero of="${loop}p1" bs=4k count=5 oflag=direct 2>/dev/null
[ "$(cat $class/entries)" = 0 ] || fail "the other partition was recorded"
dd if=/dev/zero of="${loop}p2" bs=4k count=7 oflag=direct 2>/dev/null
# The same place by way of the whole disk.
dd if="$loop" of=/dev/null bs=4k skip=5120 count=1 2>/dev/null
record_stop
entries=$(cat $class/entries)
[ "$entries" -ge 8 ] && [ "$entries" -le 20 ] || fail "partition: $entries entries"
info "partition: $entries entries"
losetup -d "$loop"
rmmod mostrace
check_kernel
