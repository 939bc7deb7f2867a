# SPDX-License-Identifier: MIT OR Apache-2.0
# Added to every test of the truth harness in the guest, after tests/guest/lib.sh and kernel-patches/test/lib.sh.

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

# causes TYPE OPTION…: judges the causes of blocks that several processes changed; faults are printed, and `causes_ended` fails.
causes() {
	step "causes: $*"
	info "causes: $*"
	type=$1
	shift
	mostrace-truth causes --mostrace /usr/local/bin/mostrace --fs "$type" "$@" >truth.log 2>&1 || touch wrong
	cut -c1-600 truth.log | while read -r line; do info "$line"; done
}

causes_ended() {
	[ ! -e wrong ] || fail "see above"
}
