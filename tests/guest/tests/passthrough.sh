# SPDX-License-Identifier: MIT OR Apache-2.0
# Reading a virtio disk's serial number makes a command that carries data but neither reads nor writes sectors. The
# trace by our own probes has it, as the kernel's has.

# commands SOURCE: prints the number of completions with no sector and the serial's 20 bytes.
commands() {
	step "$1"
	mostrace record -d /dev/vda -o "$1.most" --source "$1" --entries none --no-snapshot -- \
		sh -c 'for i in 1 2 3; do cat /sys/block/vda/serial; done'
	mostrace events "$1.most" --format csv --columns op,bytes >"$1.csv"
	grep -c ',20$' "$1.csv" || true
}

ours=$(commands bpf)
kernels=$(commands blktrace)
{ [ "$ours" = 3 ] && [ "$kernels" = 3 ]; } || fail "$ours of 3 by our probes, $kernels by blktrace: $(cat bpf.csv blktrace.csv)"
