# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: mixed.sh FOLDER
# Two databases of two processes, a writer of unrelated files, and a reader each of whose reads updates an access time.
mkdir "$1/read"
for i in $(seq 30); do echo "$i" >"$1/read/r$i"; done
mostrace workload sqlite --transactions 60 "$1/one.db" >/dev/null &
mostrace workload sqlite --journal wal --transactions 60 "$1/two.db" >/dev/null &
sh "$(dirname "$0")/writer.sh" "$1/other" &
for i in $(seq 30); do
	cat "$1/read/r$i" >/dev/null
	usleep 50000
done
wait
