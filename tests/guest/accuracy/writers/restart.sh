# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: restart.sh FOLDER
# Removes a file that lies in hundreds of groups while the journal is small, so that its handle restarts; another process
# changes a mode meanwhile.
going=$PWD/going
cd "$1" || exit
touch mode
/usr/local/bin/dd if=/dev/zero of=big bs=1M count=200 2>/dev/null
sync
touch "$going"
while [ -e "$going" ]; do
	chmod 600 mode
	chmod 644 mode
done &
rm big
rm "$going"
wait
