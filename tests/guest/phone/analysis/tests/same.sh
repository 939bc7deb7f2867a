# SPDX-License-Identifier: MIT OR Apache-2.0
# Records SQLite and analyses the recording in the guest; both go to the host.
for type in ext4 f2fs; do
	fresh_$type 128
	for journal in delete wal; do
		name=$type-$journal
		step "record $name"
		mostrace record -d "$loop" -o "$name.most" --sync -- \
			mostrace workload sqlite --transactions 50 --overwrite --journal "$journal" "$mnt/$journal.db"
		cp -r "$name.most" /tmp/out/
		step "analyse $name"
		mkdir "/tmp/out/$name"
		tables mostrace-analyzer "$name.most" "/tmp/out/$name"
	done
	remove
done
