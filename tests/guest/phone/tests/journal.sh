# SPDX-License-Identifier: MIT OR Apache-2.0
# data=journal, in blocks of a page and in smaller ones: each copy of contents has its file, and its writer as its cause. What was
# recorded is checked on the host.
rm -f /usr/local/bin/e2image
for block in 4096 "$(page)"; do
	[ ! -e "/tmp/out/journal-$block.most" ] || continue
	fresh_ext4 256 -F -b "$block" -- data=journal
	step "record blocks of $block"
	mostrace record -d "$loop" -o "$block.most" --files all --sync -- sh -c "
		/usr/local/bin/dd if=/dev/zero of=$mnt/by-dd bs=$block count=10 conv=fsync 2>/dev/null
		/usr/local/bin/cp $mnt/by-dd $mnt/by-cp
		sync
		mostrace workload sqlite --transactions 10 --overwrite $mnt/test.db"
	keep "$block.most"
	remove
done
