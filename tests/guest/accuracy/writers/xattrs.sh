# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: xattrs.sh FOLDER
# Extended attributes, in the inode and in a block of their own, by processes whose inodes share a block.
going=$PWD/going
cd "$1" || exit
for file in a b c d; do echo "$file" >"$file"; done
sync
touch "$going"
sh /lib/accuracy/commits.sh . "$going" &
long=$(head -c 600 /dev/zero | tr '\0' x)
all=
for file in a b c d; do
	for i in $(seq 15); do
		/usr/local/bin/setfattr -n user.short -v "$i" "$file"
		/usr/local/bin/setfattr -n user.long -v "$i$long" "$file"
		/usr/local/bin/setfattr -x user.long "$file"
	done &
	all="$all $!"
done
# shellcheck disable=SC2086 # one word per process
wait $all
rm "$going"
wait
