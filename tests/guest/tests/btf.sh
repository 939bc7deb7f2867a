# SPDX-License-Identifier: MIT OR Apache-2.0
# A kernel whose BTF comes only from a file (--btf): the kernel's own BTF is hidden from the recorder and given to it as
# a file. Probes that copy what they read use the most stack, and kernels differ in how they count it.
cp /sys/kernel/btf/vmlinux vmlinux.btf
: >none
fresh_ext4 64 -b 4096
mount -o bind none /sys/kernel/btf/vmlinux
step "record"
mostrace record -d "$loop" -o given.most --source bpf --entries bpf --causes none --btf vmlinux.btf --sync -- \
	mostrace workload sqlite --transactions 30 "$mnt/test.db" || refused=yes
umount /sys/kernel/btf/vmlinux
[ -z "${refused:-}" ] || fail "no probes by a file"
check_bundle given.most
check_temporary given.most test.db-journal 30
check_kinds given.most descriptor metadata_copy commit regular
remove
