#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Records a small program on a fresh loop-mounted ext4, shows what it wrote, and leaves the recording as demo.most in the present
# folder. If that is not possible it says why, and analyses a sample.
# usage: demo.sh MOSTRACE
set -eu

mostrace=$1
here=$(dirname "$0")
sample=$(dirname "$here")/sample-traces/delete.most.tar.zst
app=$(cd "$here/../examples" && pwd)/app.py
# shellcheck source=scripts/loop-ext4.sh
. "$here/loop-ext4.sh"

next() {
	cat >&2 <<-NEXT

		This program has no tables and pages. Next, as typed here:
		  make install    # builds all of it, in some ten minutes more, and puts mostrace where sudo finds it
		  mostrace analyze $1 --full
		  mostrace report $1 -o demo.html
	NEXT
}

fallback() {
	echo "demo: cannot capture here: $1" >&2
	echo "demo: analysing the sample trace instead: $sample" >&2
	"$mostrace" analyze "$sample" | sed '/^next: /d'
	next "$sample"
	exit 0
}

say() { printf '\n\033[1m$ %s\033[0m\n' "$*" >&2; }

loop_ext4 256 || fallback "$why"
if python3 -c "import sqlite3" 2>/dev/null; then
	set -- python3 "$app"
	shown="python3 examples/app.py"
else
	set -- "$(realpath "$mostrace")" workload sqlite --transactions 100 test.db
	shown="mostrace workload sqlite --transactions 100"
fi
say "mostrace record -d $loop -o demo.most -- $shown"
recorder=$(realpath "$mostrace")
(cd "$mnt" && "$recorder" record -d "$loop" -o "$work/demo.most" -- "$@") 2>"$work/log" ||
	{ cat "$work/log" >&2; fallback "$(tail -n 1 "$work/log")"; }
grep -v '^mostrace: next: ' "$work/log" >&2 || true
rm -rf demo.most
cp -r "$work/demo.most" demo.most
# Who called sudo gets the recording.
[ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" demo.most
say "mostrace analyze demo.most"
"$mostrace" analyze demo.most | sed '/^next: /d'
next demo.most
