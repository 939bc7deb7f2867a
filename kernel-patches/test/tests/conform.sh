# SPDX-License-Identifier: MIT OR Apache-2.0
# The recorder and the BPF probes record the same IO with its causes; conform.py compares the tables on the host.
[ -e /sys/kernel/btf/vmlinux ] || { info "no BTF: nothing to compare with"; exit 0; }
grep -q ' bpf_loop$' /proc/kallsyms || { info "no bpf_loop: nothing to compare causes with"; exit 0; }

columns=time_utc,op,sector,bytes,class,kind,pid,dirty_pid,path,cause_pid,cause_op,cause_known,jbd2_tid

cat >work.sh <<'END'
mnt=$1
sh writer.sh "$mnt/x" & sh writer.sh "$mnt/y" &
mostrace workload sqlite --transactions 40 --journal delete "$mnt/delete.db" >/dev/null
mostrace workload sqlite --transactions 40 --journal wal "$mnt/wal.db" >/dev/null
wait
dd if=/dev/urandom of="$mnt/plain" bs=64k count=16 conv=fsync
dd if=/dev/urandom of="$mnt/plain" bs=4k count=3 seek=5 conv=notrunc,fsync
mkdir "$mnt/directory"
for i in 1 2 3 4 5 6 7 8; do echo $i >"$mnt/directory/file$i"; done
sync
mv "$mnt/directory/file1" "$mnt/directory/file9"
chmod 600 "$mnt/directory/file2"
rm "$mnt/directory/file3"
sync
END

# both NAME: records the work on the new filesystem with both; the recorder's recording lies within the probes'.
both() {
	step "$1"
	mostrace record -d "$loop" -o probes.most --source bpf --entries bpf --causes bpf --files all --no-snapshot -- \
		mostrace record -d "$loop" -o module.most --source blktrace --entries kernel --causes kernel --files all --sync --no-snapshot -- \
		sh work.sh "$mnt" 2>record.err || fail "$1: $(cat record.err)"
	check_bundle module.most
	for recording in module probes; do
		mostrace events $recording.most --format csv --columns $columns >"/tmp/out/conform-$1.$recording.csv"
	done
	sed -n 's/^ *"[a-z]*_misses": *\([0-9]*\).*/\1/p' probes.most/manifest.json | awk '{ n += $1 } END { print n + 0 }' >"/tmp/out/conform-$1.misses"
	remove
	rm -rf probes.most module.most
}

put_writer
load
fresh_ext4 128 -b 4096
both ext4
fresh_ext4 128 -b 1024 -- data=journal
both data-journal
fresh_f2fs 128
both f2fs
fresh_vfat 64
both vfat
unload
check_kernel
