# SPDX-License-Identifier: MIT OR Apache-2.0
# blktrace and ftrace while others trace too: another's trace is never stopped, and interference by others is reported.
fresh_ext4 64 -b 4096
name=${loop#/dev/}
second=$(losetup -f)
truncate -s 16M second.img
losetup "$second" second.img

# tracers: prints the state of the loop devices' tracers. On 5.10 that of a device without a file cannot be read.
tracers() {
	cat /sys/block/loop*/trace/enable 2>/dev/null || true
}

# refused SOURCE WORDS: checks that a recording of $loop by it is refused, and that the loop devices' tracers stay as
# they are.
refused() {
	step "record by $1 is refused: $2"
	before=$(tracers)
	! mostrace record -d "$loop" -o refused.most --source "$1" --no-snapshot --entries none -- true 2>refused.err || fail "$1 was not refused"
	grep -q "$2" refused.err || fail "$1 was refused otherwise: $(cat refused.err)"
	[ "$(tracers)" = "$before" ] || fail "$1: tracers were $before"
	[ ! -e refused.most ] || fail "$1 left a bundle"
}

# begin SOURCE: starts a recording of $loop that runs until the file `over` exists.
begin() {
	rm -rf first.most over
	step "a recording by $1 begins"
	mostrace record -d "$loop" -o first.most --source "$1" --no-snapshot --entries none -- \
		sh -c 'dd if=/dev/zero of=mnt/f bs=4k count=256 oflag=direct
			until [ -e over ]; do sleep 0.1; done
			dd if=/dev/zero of=mnt/f bs=4k count=256 oflag=direct' 2>first.err &
	first=$!
	until [ "$(stat -c %s mnt/f 2>/dev/null)" = 1048576 ]; do
		kill -0 "$first" 2>/dev/null || fail "$(cat first.err)"
		sleep 0.1
	done
}

# end: ends that recording; its bundle must be whole.
end() {
	touch over
	wait "$first" || fail "$(cat first.err)"
	rm -f mnt/f
}

for source in blktrace ftrace; do
	begin $source
	pid="pid [0-9]* records $loop by $source"
	for other in blktrace ftrace; do refused $other "the block tracer of $name is taken: $pid"; done
	mostrace record -d "$loop" -o second.most --no-snapshot --entries none -- true 2>second.err || fail "$(cat second.err)"
	grep -q ' events (bpf)' second.err || fail "auto: $(cat second.err)"
	rm -r second.most
	end
	grep -q "^mostrace: the kernel's counters agree$" first.err || fail "$source: $(cat first.err)"
done

step "a blktrace of somebody else's"
blktrace -d "$loop" -D . -o others >others.log 2>&1 &
others=$!
until [ "$(cat "/sys/block/$name/trace/enable")" = 1 ]; do sleep 0.1; done
for source in blktrace ftrace; do refused $source "$name is being traced: pid $others (blktrace)"; done
kill -INT $others
wait $others || true

blktrace -d "$second" -D . -o others >others.log 2>&1 &
others=$!
until [ "$(cat "/sys/block/${second#/dev/}/trace/enable")" = 1 ]; do sleep 0.1; done
refused ftrace "the events of every disk: ${second#/dev/} (pid $others (blktrace)) is being traced"
begin blktrace
end
grep -q INTERFERED first.err && fail "a trace of another disk is none of ours: $(cat first.err)"
kill -INT $others
wait $others || true

begin blktrace
step "it is torn down by somebody else"
blktrace -d "$loop" -k || true
end
grep -q "INTERFERED: .*/trace/enable was set to .0., from .1." first.err || fail "torn down, and not said: $(cat first.err)"
grep -q "^mostrace: the kernel's counters differ: .*write_bytes [0-9]* traced" first.err || fail "$(cat first.err)"
# Records that the reader had not fetched yet may be lost with the trace; this is reported ahead of the tables.
mostrace analyze first.most >first.txt
sed '/^$/q' first.txt | grep -q '^INTERFERED' || fail "$(head -n 3 first.txt)"

begin blktrace
step "ftrace's blk tracer is turned on by somebody else"
mount -t tracefs none /sys/kernel/tracing 2>/dev/null || true
echo blk >/sys/kernel/tracing/current_tracer
end
echo nop >/sys/kernel/tracing/current_tracer
echo >/sys/kernel/tracing/trace
grep -q "INTERFERED: .*current_tracer was set to .blk." first.err || fail "diverted, and not said: $(cat first.err)"
losetup -d "$second"
