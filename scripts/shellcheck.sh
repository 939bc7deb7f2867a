#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks all shell scripts of the repository. Those without a `#!` are parts: of a guest's test, which begins with tests/guest/lib.sh, or of the
# scripts that read them.
# usage: shellcheck.sh [FILE]…     (by default all, several at a time)
set -eu
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
	git ls-files '*.sh' tests/guest/init | xargs -n 8 -P "$(nproc)" scripts/shellcheck.sh
	exit
fi

failed=0
# check OPTION… FILE: the files that a script reads are looked for beside it and from the top.
check() {
	shellcheck -x -P SCRIPTDIR -P . "$@" || failed=1
}

# check_test FILE: checks a test behind what is read before it.
check_test() {
	{
		printf '#!/bin/sh\n. tests/guest/lib.sh\n'
		lib=$(dirname "$(dirname "$1")")/lib.sh
		case $lib in kernel-patches/series/*) lib=kernel-patches/test/lib.sh ;; esac
		[ "$lib" = tests/guest/lib.sh ] || [ ! -e "$lib" ] || echo ". $lib"
		echo ". ./$1"
		# A test has no arguments that it could pass on to load.
	} | check -a -e SC2119,SC2120 -
}

for file; do
	case $(head -n 1 "$file") in
	'#!/bin/busybox'*) check -s dash "$file" ;;
	'#!'*) check "$file" ;;
	*)
		case $file in
		*/tests/* | */series/test/* | */overhead/* | sample-traces/guest/*) check_test "$file" ;;
		# The test of a guest reads these, and shows what they lack.
		tests/guest/lib*.sh) ;;
		# Whoever reads a part sets its variables, uses them, and calls its functions.
		*) check -s sh -e SC2034,SC2119,SC2120,SC2154 "$file" ;;
		esac
		;;
	esac
done
exit $failed
