#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs the package for Python into fresh environments as a user does: a wheel of Python alone, which works without the
# program and says how to get it, and one that has the program inside, which needs nothing else.
# usage: test-wheel.sh MOSTRACE
set -eu

program=$1
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MOSTRACE
# No program of this machine's may be found.
PATH=/usr/bin:/bin
cd "$work"
python=$(command -v python3)

fail() {
	echo "test-wheel: $1" >&2
	exit 1
}

"$python" -m venv plain
plain/bin/pip install --quiet "$here/analyzer/python"
said=$(plain/bin/python -c 'import mostrace; mostrace.read("x.most")' 2>&1) && fail "it read a recording without the program"
case $said in
*MostraceError*"make wheel"*) ;;
*) fail "it does not say how to get the program: $said" ;;
esac
# What is not installed is named with the way to install it.
said=$(plain/bin/python -c 'import mostrace._plot' 2>&1) && fail "it draws charts without Altair"
case $said in
*"pip install 'mostrace[plot]'"*) ;;
*) fail "it does not say what charts need: $said" ;;
esac

"$python" -m venv whole
DIST=$work "$here/scripts/wheel.sh" "$program" "$work/whole/bin/python" >/dev/null
whole/bin/pip install --quiet "$work"/mostrace-*.whl
whole/bin/mostrace --version
whole/bin/python - "$here/sample-traces/wal.most.tar.zst" <<-'PROGRAM'
	import sys, mostrace
	run = mostrace.read(sys.argv[1])
	assert mostrace.program().startswith(sys.prefix), mostrace.program()
	assert run.events("bytes", where="op = 'write'")["bytes"].sum() == 30_650_368
	print(run.finding)
PROGRAM
ls -l "$work"/mostrace-*.whl
