# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: commits.sh FOLDER GOING
# Commits every 50 ms for as long as the file GOING exists.
while [ -e "$2" ]; do
	/usr/local/bin/dd if=/dev/zero of="$1/commits" bs=1 count=1 conv=notrunc,fsync 2>/dev/null
	usleep 50000
done
