# SPDX-License-Identifier: MIT OR Apache-2.0
# To be sourced in the guest and on the host.

# tables PROGRAM BUNDLE FOLDER: writes everything that the analyser prints about the bundle to files.
tables() {
	"$1" analyze "$2" >"$3/analyze.txt"
	"$1" analyze "$2" --format json >"$3/analyze.json"
	"$1" events "$2" --format csv >"$3/events.csv"
	"$1" events "$2" --format parquet -o "$3/events.parquet"
	for by in class kind,role process file cause_process,cause_op provenance rewritten_bytes; do
		"$1" analyze "$2" --by "$by" --format csv >"$3/by-$by.csv"
	done
	"$1" map "$2" --format csv >"$3/map.csv"
	"$1" report "$2" -o "$3/report.html"
}
