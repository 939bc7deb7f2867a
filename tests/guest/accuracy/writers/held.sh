# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: held.sh FOLDER
# Files that one process removes while another holds them open, and closes them last: unlinked, or replaced by a rename.
going=$PWD/going opened=$PWD/opened
cd "$1" || exit
for i in $(seq 20); do
	/usr/local/bin/dd if=/dev/zero of="a$i" bs=16k count=1 2>/dev/null
	/usr/local/bin/dd if=/dev/zero of="b$i" bs=16k count=1 2>/dev/null
	echo new >"new$i"
done
sync
touch "$going"
sh /lib/accuracy/commits.sh . "$going" &
for i in $(seq 20); do
	(
		exec 3<"a$i" 4<"b$i"
		touch "$opened"
		usleep 150000
	) &
	while [ ! -e "$opened" ]; do usleep 2000; done
	rm "a$i" "$opened"
	mv "new$i" "b$i"
done
usleep 300000
rm "$going"
wait
