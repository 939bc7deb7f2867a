# SPDX-License-Identifier: MIT OR Apache-2.0
# Encryption in the block layer (inlinecrypt), which disks without hardware for it leave to the kernel: it writes the ciphertext in
# bios of its own (blk-crypto's fallback). Each row must have the file, the place and the writer of the plaintext, and every byte one
# row: before 7.0 the kernel's tracers report the end of the plaintext's bio, too.
tracing=/sys/kernel/tracing
mount -t tracefs none $tracing
mount -t debugfs none /sys/kernel/debug

# The buffer of busybox's own dd is not aligned for direct IO.
dd() {
	/usr/local/bin/dd "$@" 2>dd.log || fail "$type: dd $*: $(cat dd.log)"
}

# Each file's own bios, and buffered ones of more pages than a bio of ciphertext has.
cat >write.sh <<'END'
set -e
/usr/local/bin/dd if=/dev/urandom of="$1/direct" bs=64k count=32 oflag=direct
/usr/local/bin/dd if=/dev/urandom of="$1/buffered" bs=1M count=8 conv=fsync
END

# check_file BUNDLE NAME BYTES WRITER-COLUMN: in the events.csv that check_bundle left, the file's bytes were written once, by dd,
# each to where the filesystem has that part of the file.
check_file() {
	filefrag -e -b512 "$mnt/enc/$2" | sed 's/[.:]/ /g' | awk '$1 ~ /^[0-9]+$/ { print $2, $3, $4 }' >extents
	awk -F, -v p="$(column path <events.csv)" -v o="$(column op <events.csv)" -v c="$(column class <events.csv)" \
		-v s="$(column sector <events.csv)" -v f="$(column file_offset <events.csv)" -v b="$(column bytes <events.csv)" \
		-v w="$(column "$4" <events.csv)" -v path="/enc/$2" '
		$p == path && $o == "write" && $c == "data" { print $s, $f == "" ? "?" : $f, $b, $w }' events.csv >written
	awk -v all="$3" '
		NR == FNR { first[NR] = $1; last[NR] = $2; disk[NR] = $3; n = NR; next }
		{
			found = 0
			for (i = 1; i <= n; i++)
				if ($2 != "?" && $2 / 512 >= first[i] && $2 / 512 <= last[i] && $1 == disk[i] + $2 / 512 - first[i]) found = 1
			if (!found || $4 != "dd") print "wrong: sector, offset, bytes, writer " $0
			sum += $3
		}
		END { if (sum != all) print sum + 0 " bytes of " all }' extents written >wrong
	[ ! -s wrong ] || fail "$type $1 $2: $(wc -l <wrong) of $(wc -l <written): $(head -n 5 wrong)"
}

# From 7.0 on the bio of the plaintext is not queued, and the kernel's recorder does not look for it.
pairs="bpf,bpf blktrace,bpf tracefs,bpf"
case $(uname -r) in [56].*) pairs="$pairs blktrace,kernel" ;; esac

# record_writes: records into $bundle what writes into the encrypted folder.
record_writes() {
	rm -rf "$mnt/enc"/*
	sync
	mostrace record -d "$loop" -o "$bundle" --source "$source" --entries "$entries" --sync -- \
		sh -c "sh write.sh $mnt/enc 2>/dev/null; mostrace workload sqlite --transactions 20 --overwrite $mnt/enc/test.db"
}

# on FRESH: the same on a filesystem that this makes.
on() {
	$1 128 -O encrypt -- inlinecrypt
	head -c 64 /dev/urandom >key
	xfs_io -c add_enckey "$mnt" <key >added
	mkdir "$mnt/enc"
	xfs_io -c "set_encpolicy -v 2 $(awk '{ print $NF }' added)" "$mnt/enc"
	for sources in $pairs; do
		source=${sources%,*} entries=${sources#*,}
		bundle=$type-$source-$entries.most
		step "$type by $source and $entries"
		lossless "$bundle" record_writes
		check_bundle "$bundle"
		check_file "$sources" direct 2097152 comm
		check_file "$sources" buffered 8388608 dirty_comm
		[ "$entries" = kernel ] || check_temporary "$bundle" test.db-journal 20 'data|node'
		info "$type $sources, try $tries: $(mostrace analyze "$bundle" | grep '^causes')"
	done
	remove
}

# In an instance, as whoever tests should: what all share stays as it is.
ended=$tracing/instances/ended
mkdir $ended
echo 'p:ended blk_crypto_fallback_encrypt_endio' >$tracing/kprobe_events
echo 1 >$ended/events/kprobes/ended/enable
on fresh_ext4
on fresh_f2fs
number=$(grep -c ' ended: ' $ended/trace)
[ "$number" -gt 100 ] || fail "the kernel did not encrypt: $number bios"
info "$number bios of ciphertext"
echo 0 >$ended/events/kprobes/ended/enable
rmdir $ended
echo >$tracing/kprobe_events
umount /sys/kernel/debug $tracing
