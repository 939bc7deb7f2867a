# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: delayed.sh FOLDER
# Delayed allocation: two processes write into one file, and a third one's fsync, or the flusher, allocates its blocks.
cd "$1" || exit
for i in $(seq 15); do
	: >"f$i"
	/usr/local/bin/dd if=/dev/zero of="f$i" bs=4k count=1 conv=notrunc 2>/dev/null &
	/usr/local/bin/dd if=/dev/zero of="f$i" bs=4k count=1 seek=1 conv=notrunc 2>/dev/null &
	/usr/local/bin/dd if=/dev/zero of="g$i" bs=4k count=1 2>/dev/null
	wait
	case $((i % 3)) in
	0) /usr/local/bin/dd if=/dev/null of="f$i" conv=notrunc,fsync 2>/dev/null ;;
	1) sync ;;
	2)
		chmod 600 "g$i"
		/usr/local/bin/dd if=/dev/zero of="h$i" bs=4k count=1 conv=fsync 2>/dev/null
		;;
	esac
done
