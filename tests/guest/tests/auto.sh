# SPDX-License-Identifier: MIT OR Apache-2.0
# On Debian's kernels before 7.0 our probes run at all times, so that `auto` takes them for the events too. Where they do not make the
# entries, and from 7.0 on, it takes plain tracepoints.
case $(uname -r) in
[56].*) events=bpf ;;
*) events=tracefs ;;
esac
mostrace doctor >doctor.txt
grep "^auto takes: events from $events, entries from bpf$" doctor.txt || fail "doctor: $(cat doctor.txt)"
fresh_ext4 64 -b 4096

# taken NAME OPTION…: records by `auto` with these options; NAME must make the events.
taken() {
	expected=$1
	shift
	rm -rf taken.most
	mostrace record -d "$loop" -o taken.most --no-snapshot --sync "$@" -- \
		/usr/local/bin/dd if=/dev/zero of="$mnt/f" bs=64k count=16 2>taken.err || fail "$(cat taken.err)"
	grep -q " events ($expected)" taken.err || fail "$*: $(cat taken.err)"
	grep -q "^mostrace: the kernel's counters agree$" taken.err || fail "$*: $(cat taken.err)"
}
taken $events
taken $events --causes none
taken tracefs --entries tracefs
taken tracefs --entries none
remove
