# SPDX-License-Identifier: MIT OR Apache-2.0
# Stacks of a program that writes two files by two ways: each function has the bytes that it wrote, whatever tells the calls and the
# handles on this kernel, and every byte is in one stack.

# bytes FRAME…: prints the sum of the stacks that have all of these frames.
bytes() {
	cp stacks some
	for frame; do
		grep "[; ]${frame}[; ]" some >fewer || true
		mv fewer some
	done
	awk '{ sum += $NF } END { print sum + 0 }' some
}

fresh_ext4 64
step "record"
if ! mostrace record -d "$loop" -o run.most --entries bpf --sync --stacks -- two-ways "$mnt/letter" "$mnt/picture" "$mnt/diary" >told 2>err; then
	# Before 5.17 there are no stacks.
	grep -q "^mostrace: --stacks: .*bpf_loop" err || fail "$(cat err)"
	info "no stacks"
	remove
	exit 0
fi
grep -q "^mostrace: note: a program's stack is followed by its frame pointers" err || fail "nothing said of frame pointers: $(cat err)"
keep run.most
grep '"causes_' run.most/manifest.json | while read -r loss; do
	case $loss in *": 0"*) ;; *) fail "lost: $loss" ;; esac
done
mostrace export run.most --format folded >stacks
mostrace analyze run.most --by op --format csv >by.csv
whole=$(awk -F, -v at="$(column write_bytes <by.csv)" '$1 == "write" { print $at }' by.csv)
[ "$(bytes)" -eq "$whole" ] || fail "$(bytes) bytes in stacks, $whole were written"
for way in save_letter:24576 save_picture:196608; do
	function=${way%:*} data=${way#*:}
	[ "$(bytes main "$function" store data)" -eq "$data" ] || fail "$function: $(cat stacks)"
	[ "$(bytes main "$function" store journal)" -gt 0 ] || fail "$function has no journal: $(cat stacks)"
	[ "$(bytes main "$function" store ext4_dirty_inode_\\[k\\])" -gt 0 ] || fail "$function has no kernel: $(cat stacks)"
	info "$function: data $data, journal $(bytes main "$function" store journal)"
done
# Two functions changed the mode of one inode in one transaction: the journal's copy of it is of both.
for function in begin_page end_page; do
	shared=$(bytes main $function notify_change_\\[k\\] /diary metadata_copy inode_table)
	[ "$shared" -gt 0 ] || fail "$function has nothing of the inode: $(cat stacks)"
	info "$function: $shared of the inode"
done
# By glibc's unwinding the functions are the same.
for function in save_letter save_picture; do
	grep -q " store $function main" told || fail "$(cat told)"
done
# Nothing of the tracing is in a stack.
! grep -E '[; ](bpf_|__bpf_|kprobe_|fprobe_|ftrace_|__traceiter_)' stacks || fail "the tracing is in a stack"
remove
