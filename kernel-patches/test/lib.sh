# SPDX-License-Identifier: MIT OR Apache-2.0
# Added to every test of the recorder (a module or built in) in the guest, after tests/guest/lib.sh.
sys=/sys/module/mostrace/parameters
class=/sys/class/misc/mostrace

# is_module: succeeds if the recorder can be loaded and unloaded.
is_module() {
	[ -e /lib/mostrace.ko ]
}

# is_debug: succeeds on a debug kernel, which takes several times as long.
is_debug() {
	[ -e /proc/lockdep_stats ]
}

# load [PARAMETER=VALUE…]: loads the module with these parameters. If it is built in, sets them, and the others to their
# defaults.
load() {
	if is_module; then
		# A test that failed may have left it loaded.
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

# put VALUE PARAMETER: sets a parameter.
put() {
	echo "$1" >"$sys/$2"
}

# record_start FILE: begins to read what the recorder delivers into FILE.
record_start() {
	streams=$1
	# The file must be empty at once, because the reader opens it only when it runs.
	: >"$1"
	cat /dev/mostrace >>"$1" &
	reader=$!
	wait_for "no header from /dev/mostrace" test -s "$1"
}

# wait_for WHAT COMMAND…: waits until the command succeeds. If it never does, the guest ends the test for its silence,
# and shows WHAT.
wait_for() {
	step "$1"
	shift
	until "$@"; do usleep 100000; done
}

# has_all: succeeds if every entry was read into $streams.
has_all() {
	taken=0
	for stream in $streams; do
		held=$(count "$stream" 2>/dev/null) || return 1
		taken=$((taken + held))
	done
	[ "$taken" = "$(cat $class/entries)" ]
}

# record_stop: ends the reader when it has every entry, or when none has arrived for ten seconds; the test then checks
# what is missing.
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

# take_rest STREAM [EARLIER…]: reads what is left in descriptor 3 into the first file; all files together then have the
# whole recording.
take_rest() {
	streams=$*
	cat <&3 >>"$1" &
	reader=$!
	record_stop
}

# is_free: succeeds if nobody has the device open. This resets the counters.
is_free() {
	(: </dev/mostrace) 2>/dev/null
}

# refused WORDS COMMAND…: checks that the command fails with these words.
refused() {
	words=$1
	shift
	! "$@" >refused.log 2>&1 || fail "not refused: $*"
	grep -q "$words" refused.log || fail "$*: $(cat refused.log), not $words"
}

# lost LOSS: prints the number of losses of this kind.
lost() {
	cat "$class/losses/$1"
}

# check_nothing_lost
check_nothing_lost() {
	for loss in "$class"/losses/*; do
		[ "$(cat "$loss")" = 0 ] || fail "$(basename "$loss"): $(cat "$loss")"
	done
}

# The kernel's messages about its own faults.
complaints='BUG:|WARNING:|Oops|Call Trace|KASAN:|INFO: task .* blocked|INFO: trying to register|INFO: lockdep is turned off'
complaints="$complaints|possible (recursive|circular) locking|possible irq lock|inconsistent lock state|held lock freed"
complaints="$complaints|suspicious RCU|rcu.*(stall|detected)|invalid wait context|unsafe lock order|Unable to handle|ODEBUG"

# check_kernel: checks that the kernel has no complaints, and that lockdep is still on.
check_kernel() {
	! dmesg | grep -A 40 -E "$complaints" || fail "see above"
	! is_debug || grep -q 'debug_locks: *1' /proc/lockdep_stats || fail "lockdep is off"
}
