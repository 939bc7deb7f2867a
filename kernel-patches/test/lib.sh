# SPDX-License-Identifier: MIT OR Apache-2.0
# Part of every test of these in the guest, after guest/lib.sh: the recorder, a module or built in.
sys=/sys/module/mostrace/parameters
class=/sys/class/misc/mostrace

# is_module: whether it can be loaded and unloaded.
is_module() {
	[ -e /lib/mostrace.ko ]
}

# is_debug: whether the kernel looks for its own faults, which takes it several times as long.
is_debug() {
	[ -e /proc/lockdep_stats ]
}

# load [PARAMETER=VALUE…]: the module with them; where it is built in, the parameters are set, the others to their defaults.
load() {
	if is_module; then
		# A test that failed has left it.
		! [ -e $sys ] || rmmod mostrace
		insmod /lib/mostrace.ko "$@"
		return 0
	fi
	for parameter in dev= names=temp ring_kb=1024 "$@"; do
		put "${parameter#*=}" "${parameter%%=*}"
	done
}

unload() {
	! is_module || rmmod mostrace
}

# put VALUE PARAMETER
put() {
	echo "$1" >"$sys/$2"
}

# record_start FILE: what the recorder hands out, from now on.
record_start() {
	# Empty at once: the reader opens it when it runs.
	: >"$1"
	cat /dev/mostrace >>"$1" &
	reader=$!
	wait_for "no header from /dev/mostrace" test -s "$1"
}

# wait_for WHAT-IF-NOT COMMAND…: until it succeeds, for half a minute.
wait_for() {
	what=$1
	shift
	for _ in $(seq 300); do
		! "$@" || return 0
		usleep 100000
	done
	fail "$what"
}

# record_stop: the reader has what there was, a moment after.
record_stop() {
	sleep 1
	kill "$reader"
	wait "$reader" || true
}

# is_free: nobody has it open. The counters begin anew.
is_free() {
	(: </dev/mostrace) 2>/dev/null
}

# refused WORDS COMMAND…: it fails and says so.
refused() {
	words=$1
	shift
	! "$@" >refused.log 2>&1 || fail "not refused: $*"
	grep -q "$words" refused.log || fail "$*: $(cat refused.log), not $words"
}

# lost LOSS
lost() {
	cat "$class/losses/$1"
}

# check_nothing_lost
check_nothing_lost() {
	for loss in "$class"/losses/*; do
		[ "$(cat "$loss")" = 0 ] || fail "$(basename "$loss"): $(cat "$loss")"
	done
}

# What the kernel says when something is wrong with it.
complaints='BUG:|WARNING:|Oops|Call Trace|KASAN:|INFO: task .* blocked|INFO: trying to register|INFO: lockdep is turned off'
complaints="$complaints|possible (recursive|circular) locking|possible irq lock|inconsistent lock state|held lock freed"
complaints="$complaints|suspicious RCU|rcu.*(stall|detected)|invalid wait context|unsafe lock order|Unable to handle|ODEBUG"

# check_kernel: it has nothing to complain of, and still looks.
check_kernel() {
	! dmesg | grep -A 40 -E "$complaints" || fail "see above"
	! is_debug || grep -q 'debug_locks: *1' /proc/lockdep_stats || fail "lockdep is off"
}

# step NAME: to the console, at once: where a guest hangs.
step() {
	echo "STEP $*" >/dev/ttyS0
}
