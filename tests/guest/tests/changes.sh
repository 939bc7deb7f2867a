# SPDX-License-Identifier: MIT OR Apache-2.0
# Every way to change a file (docs/CHANGES.md), on ext4, on f2fs and on overlays over both: what a recording says of a block agrees
# with whose bytes are in it.

[ "$(uname -m)" = x86_64 ] || { info "ways.pl has the system calls of x86-64"; exit 0; }

rows="SELECT path, e.sector, e.bytes AS row_bytes, c.cause_comm, c.cause_known, c.bytes AS share, e.completion FROM events e
	JOIN causes c ON e.completion = c.completion AND e.sector = c.sector
	WHERE e.op = 'write' AND e.kind = 'regular' ORDER BY e.completion"

record_ways() { mostrace record -d "$loop" -o "$bundle" --sync -- perl /lib/ways.pl do "$1" >refused 2>record.err; }

# judge NAME FOLDER: records all ways in the folder and judges them by what is on the disk.
judge() {
	bundle=$1.most
	lossless "$bundle" record_ways "$2" || fail "$1: $(cat record.err)"
	info "$1: refused: $(tr '\n' ' ' <refused)"
	info "$1: $(mostrace analyze "$bundle" | head -n 1)"
	mostrace query "$bundle" "$rows" --format csv >"$1.csv" || fail "$1: query"
	echo 3 >/proc/sys/vm/drop_caches
	perl /lib/ways.pl judge "$loop" "$1.csv" >"$1.judged" || ! grep WRONG "$1.judged" | grep -vE "$copied" || fail "$1: see above"
	cp "$1.judged" "$1.csv" /tmp/out/
	grep -qx "nothing: unchanged: aaaA/exact 32768" "$1.judged" || fail "$1: $(grep ^nothing "$1.judged")"
	# Whoever changes a file is named, whether or not all others are. Stores are not seen, nor what is cut off and not written. A worker
	# of io_uring's is a thread of the program, with a name of its own.
	! grep "NOT SEEN" "$1.judged" | grep -v -e "^mmap_store" -e "iou-wrk-" || fail "$1: not seen"
}

# overlay: mounts an overlay over $mnt at overlay; the files that are there before are in its lower folder.
overlay() {
	mkdir -p "$mnt/lower" "$mnt/upper" "$mnt/work" overlay
	perl /lib/ways.pl make "$mnt/lower"
	mount -t overlay overlay -o "lowerdir=$mnt/lower,upperdir=$mnt/upper,workdir=$mnt/work" overlay
}

fresh_of() { if [ "$1" = ext4 ]; then fresh_ext4 256 -b 4096; else fresh_f2fs 256; fi; }

for type in ext4 f2fs; do
	# f2fs copies the blocks that it moves, and writes out what is there before an atomic write begins: then the bytes of one process
	# are in blocks that another one wrote alone.
	copied='^$'
	[ "$type" = ext4 ] || copied='^WRONG (fallocate_collapse|fallocate_insert|f2fs_atomic):'
	fresh_of "$type"
	judge "$type" "$mnt"
	remove
	if grep -q overlay /proc/filesystems; then
		fresh_of "$type"
		overlay
		judge "overlay-$type" overlay
		umount overlay
		remove
	fi
done
