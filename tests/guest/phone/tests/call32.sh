# SPDX-License-Identifier: MIT OR Apache-2.0
# A 32-bit program, whose calls have other numbers: its getppid has that of write, and its output is a file here.
[ "$(uname -m)" = aarch64 ] || { info "no 32-bit programs of ARM here"; exit 0; }
fresh_ext4 64 -b 4096
step "record"
mostrace record -d "$loop" -o calls.most --source bpf --entries bpf --causes bpf --sync -- \
	sh -c "call32 >>'$mnt/file' && echo after >>'$mnt/file'" || fail "record: $?"
keep calls.most
remove
