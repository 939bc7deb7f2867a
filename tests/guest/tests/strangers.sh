# SPDX-License-Identifier: MIT OR Apache-2.0
# blktrace while others trace too: another's trace is never stopped, and what others end is reported.
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

begin blktrace
refused blktrace "the block tracer of $name is taken: pid [0-9]* records $loop by blktrace"
mostrace record -d "$loop" -o second.most --no-snapshot --entries none -- true 2>second.err || fail "$(cat second.err)"
grep -q ' events (tracefs)' second.err || fail "auto: $(cat second.err)"
rm -r second.most
end
grep -q "^mostrace: the kernel's counters agree$" first.err || fail "$(cat first.err)"

step "a blktrace of somebody else's"
blktrace -d "$loop" -D . -o others >others.log 2>&1 &
others=$!
until [ "$(cat "/sys/block/$name/trace/enable")" = 1 ]; do sleep 0.1; done
refused blktrace "$name is being traced: pid $others (blktrace)"
kill -INT $others
wait $others || true

blktrace -d "$second" -D . -o others >others.log 2>&1 &
others=$!
until [ "$(cat "/sys/block/${second#/dev/}/trace/enable")" = 1 ]; do sleep 0.1; done
step "a blktrace of another disk"
begin blktrace
end
grep -q "^mostrace: the kernel's counters agree$" first.err || fail "a trace of another disk is none of ours: $(cat first.err)"
kill -INT $others
wait $others || true

begin blktrace
step "it is torn down by somebody else"
blktrace -d "$loop" -k || true
end
grep -q "^mostrace: the kernel's counters differ: .*write_bytes [0-9]* traced" first.err || fail "$(cat first.err)"
# Records that the reader had not fetched yet may be lost with the trace; this is reported ahead of the tables.
mostrace analyze first.most >first.txt
sed '/^$/q' first.txt | grep -q '^DIFFERS' || fail "$(head -n 3 first.txt)"

mount -t tracefs none /sys/kernel/tracing 2>/dev/null || true
enable=/sys/block/$name/trace/enable
# killed NAME: kills the processes of this name while blktrace records, and checks that the disk's tracer is off in the end.
killed() {
	begin blktrace
	step "killed: $1"
	# shellcheck disable=SC2046 # there may be several
	kill -KILL $(pidof "$1")
	touch over
	wait "$first" || true
	tries=0
	until [ "$(cat "$enable")" = 0 ]; do
		[ $((tries += 1)) -lt 100 ] || fail "the trace goes on: $1"
		sleep 0.1
	done
	rm -f mnt/f
}
killed blktrace
killed mostrace

step "ftrace's blk tracer is on"
echo blk >/sys/kernel/tracing/current_tracer
refused blktrace "ftrace's blk tracer takes the events of every disk: it is on"
echo nop >/sys/kernel/tracing/current_tracer

begin blktrace
step "ftrace's blk tracer is turned on by somebody else"
echo blk >/sys/kernel/tracing/current_tracer
end
echo nop >/sys/kernel/tracing/current_tracer
echo >/sys/kernel/tracing/trace
grep -q "^mostrace: the kernel's counters differ: " first.err || fail "diverted, and not said: $(cat first.err)"
losetup -d "$second"
