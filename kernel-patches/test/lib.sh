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
	streams=$1
	# Empty at once: the reader opens it when it runs.
	: >"$1"
	cat /dev/mostrace >>"$1" &
	reader=$!
	wait_for "no header from /dev/mostrace" test -s "$1"
}

# wait_for WHAT-IF-NOT COMMAND…: until it succeeds. Where it never does, the guest says WHAT, having been silent for so long.
wait_for() {
	step "$1"
	shift
	until "$@"; do usleep 100000; done
}

# has_all: whether what was read into $streams is every entry.
has_all() {
	taken=0
	for stream in $streams; do
		held=$(count "$stream" 2>/dev/null) || return 1
		taken=$((taken + held))
	done
	[ "$taken" = "$(cat $class/entries)" ]
}

# record_stop: when the reader has every entry, or none came for ten seconds, in which case the test has its say.
record_stop() {
	size_now=0 looks=0
	until has_all || [ $looks -ge 100 ]; do
		usleep 100000
		size_then=$size_now
		# shellcheck disable=SC2086 # one word per file
		size_now=$(cat $streams | wc -c)
		[ "$size_now" = "$size_then" ] && looks=$((looks + 1)) || looks=0
	done
	kill "$reader"
	wait "$reader" || true
}

# take_rest STREAM [EARLIER…]: what descriptor 3 still has is added to the first; together they are all that was recorded.
take_rest() {
	streams=$*
	cat <&3 >>"$1" &
	reader=$!
	record_stop
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
