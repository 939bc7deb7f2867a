# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: writer.sh FOLDER
# Makes, writes, links, renames, truncates and removes files in a folder.
mkdir -p "$1"
for i in $(seq 12); do
	echo "$i" >"$1/a$i"
	/usr/local/bin/dd if=/dev/zero of="$1/b$i" bs=20k count=1 conv=fsync 2>/dev/null
	mv "$1/a$i" "$1/c$i"
	ln "$1/c$i" "$1/d$i"
	chmod 600 "$1/d$i"
	truncate -s 1000 "$1/b$i"
	mkdir "$1/e$i"
	rm "$1/b$i"
	rmdir "$1/e$i"
done
