# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by every test in the guest, after guest/lib.sh.
sys=/sys/module/mostrace/parameters
class=/sys/class/misc/mostrace

# load [PARAMETER…]
load() {
	insmod /lib/mostrace.ko "$@"
}

# record_start FILE: what the module hands out, from now on.
record_start() {
	# Empty at once: the reader opens it when it runs.
	: >"$1"
	cat /dev/mostrace >>"$1" &
	reader=$!
	# Opened: its header is there.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ ! -s "$1" ] || return 0
		sleep 1
	done
	fail "no header from /dev/mostrace"
}

# record_stop: the reader has what there was, a moment after.
record_stop() {
	sleep 1
	kill "$reader"
	wait "$reader" || true
}

# check_nothing_lost
check_nothing_lost() {
	for loss in "$class"/losses/*; do
		[ "$(cat "$loss")" = 0 ] || fail "$(basename "$loss"): $(cat "$loss")"
	done
}

# check_kernel: it has nothing to complain of.
check_kernel() {
	! dmesg | grep -A 40 -E 'BUG|WARNING|Oops|Call Trace|rcu.*(stall|detected)|blocked for more' || fail "see above"
}

# step NAME: to the console, at once: where a guest hangs.
step() {
	echo "STEP $*" >/dev/ttyS0
}
