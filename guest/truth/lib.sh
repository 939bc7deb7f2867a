# SPDX-License-Identifier: MIT OR Apache-2.0
# Added to every test of the truth harness in the guest, after guest/lib.sh and kernel-patches/test/lib.sh.

# truth TYPE PATTERNS OPTION…: runs each pattern on its own, as a sign of life; faults are printed, and the test fails
# at the end.
truth() {
	type=$1 patterns=$2
	shift 2
	info "$type $*"
	for pattern in $patterns; do
		step "$type $pattern"
		mostrace-truth run --mostrace /usr/local/bin/mostrace --fs "$type" --unknown "$@" "$pattern" >truth.log 2>&1 || touch wrong
		sed 1d truth.log | cut -c1-1500 | while read -r line; do info "$line"; done
	done
	[ ! -e wrong ] || fail "see above"
}
