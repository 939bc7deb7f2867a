# SPDX-License-Identifier: MIT OR Apache-2.0
# The values that the parameters accept; and that they cannot be changed during a recording.
load
refused "No such device" cat /dev/mostrace
fresh_ext4 64 -b 4096
for bad in nonsense /dev/null 240:17 1:2:3 99999999:1 "$(printf '%0300d' 1)" loop0,loop0,loop0,loop0,loop0,loop0,loop0,loop0,loop0; do
	! (put "$bad" dev) 2>/dev/null || fail "dev=$bad was taken"
done
[ -z "$(cat "$sys"/dev)" ] || fail "dev is $(cat "$sys"/dev)"
put " $loop " dev
put "$(cat "/sys/block/$(basename "$loop")/dev")" dev
! (put "$(printf '%0600d' 1)" names) 2>/dev/null || fail "names of 600 bytes were taken"
probe "$mnt/probe" || fail "probe"

exec 3</dev/mostrace
! (put loop0 dev) 2>/dev/null || fail "dev was set while recording"
! (put all names) 2>/dev/null || fail "names were set while recording"
exec 3<&-
put all names
remove
unload
check_kernel
