# SPDX-License-Identifier: MIT OR Apache-2.0
# Readers that are not allowed, that are too many, that share the device, and that never read.
fresh_ext4 64 -b 4096
load dev="$(basename "$loop")" ring_kb=16

step refused
/usr/local/bin/setpriv --reuid 65534 --clear-groups cat /dev/null
refused "ermission denied" /usr/local/bin/setpriv --reuid 65534 --clear-groups cat /dev/mostrace
refused "not permitted" /usr/local/bin/setpriv --bounding-set -sys_admin --inh-caps -sys_admin cat /dev/mostrace

step unread
# Writers do not wait for the reader, and lost entries are counted.
exec 3</dev/mostrace
refused "busy" cat /dev/mostrace
! is_module || refused "temporarily unavailable" rmmod mostrace
start=$(date +%s)
dd if=/dev/urandom of="$mnt/unread" bs=4k count=600 oflag=direct 2>/dev/null
# What the journal writes later must not come between the counts.
sync
info "600 direct writes, unread: $(($(date +%s) - start)) s, $(cat "$class"/entries) entries, $(lost entries_ring) lost"
[ "$(lost entries_ring)" -gt 100 ] || fail "nothing lost"
take_rest overrun.stream
kept=$(cat "$class"/entries)
[ "$(count overrun.stream)" = "$kept" ] || fail "$kept entries, $(count overrun.stream) of them read"
dd if=/dev/zero of="$mnt/after" bs=4k count=1 oflag=direct 2>/dev/null
sync
take_rest after.stream overrun.stream
{ [ "$(count after.stream)" = $(($(cat "$class"/entries) - kept)) ] && [ "$(count after.stream)" -gt 0 ]; } ||
	fail "a ring that was full stays so"
exec 3<&-

step waiting
# A reader waits in the kernel while the device has no entries.
sync
record_start idle.stream
in_read() {
	grep -q '^0 ' "/proc/$reader/syscall" && grep -q '^State:.S' "/proc/$reader/status"
}
wait_for "the reader does not wait in read()" in_read
! is_module || refused "temporarily unavailable" rmmod mostrace
in_read || fail "the reader is no more in read()"
record_stop

step shared
# Two processes share one open file: each reads whole entries, and together they read every entry once.
put 64 ring_kb
share one.stream two.stream &
reader=$!
wait_for "no header" test -s one.stream -o -s two.stream
# Each time that both wait, the scheduler chooses which of them is first.
both_have() {
	dd if=/dev/urandom of="$mnt/shared" bs=4k count=50 oflag=direct 2>/dev/null
	[ "$(wc -c <one.stream)" -gt 1000 ] && [ "$(wc -c <two.stream)" -gt 1000 ]
}
wait_for "one reader alone" both_have
streams="one.stream two.stream"
record_stop
check_nothing_lost
one=$(count one.stream) two=$(count two.stream)
[ $((one + two)) = "$(cat "$class"/entries)" ] || fail "$one and $two entries of $(cat "$class"/entries)"
info "two that share: $one and $two entries"
wait_for "the second reader has not ended" is_free
remove
unload
check_kernel
