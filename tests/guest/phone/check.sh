#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Analyses on this machine what the recorder of another architecture left. MOSTRACE is this machine's analyser.
# usage: check.sh OUT
set -eu

out=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib-check.sh"
. "$here/../lib-map.sh"
step() {
	:
}
mostrace() {
	"$MOSTRACE" "$@"
}

# roles BUNDLE ROLES: prints the bytes of data of each of these roles (an extended regular expression).
roles() {
	mostrace analyze "$1" --by role,class --format csv >table.csv
	at=$(column write_bytes <table.csv)
	grep -E "^($2),data," table.csv | cut -d, -f1,"$at" | sort
}

# sqlite TEST JOURNAL SUFFIX LEAST ROLES [CLASSES]: checks that each source reported the same. CLASSES are for check_temporary.
sqlite() {
	for source in blktrace bpf kernel; do
		bundle=$1-$2-$source.most
		check_rows "$bundle"
		grep -q '"method": "walk"' "$bundle/manifest.json" || fail "$bundle: its snapshot is no walk's"
		# The module does not name a node's file, so a deleted file of which only nodes were written has no name.
		[ "$source ${6:-data}" = "kernel data|metadata" ] || check_temporary "$bundle" "$2.db$3" "$4" "${6:-data}"
		roles "$bundle" "$5" >"$source.roles"
		[ -s "$source.roles" ] || fail "$bundle: $(cat table.csv)"
		cmp "$source.roles" blktrace.roles || fail "$source and blktrace differ: $(cat "$source.roles" blktrace.roles)"
	done
}

# plain BY-TRACEFS BY-BPF ROLES: checks a recording by plain tracepoints: all is accounted for, and the probes report as
# much data of regular files.
plain() {
	check_rows "$1"
	for each in "$1" "$2"; do
		mostrace analyze "$each" --by class,kind --format csv >table.csv
		at=$(column write_bytes <table.csv)
		grep '^data,regular,' table.csv | cut -d, -f"$at"
	done | uniq >regular.txt
	[ "$(wc -l <regular.txt)" -eq 1 ] || fail "$1: of regular files $(tr '\n' ' ' <regular.txt)bytes by tracefs and by bpf"
	# If the filesystem's events have names, the roles must be the same too.
	if grep -q 'no event tells names' "$1/manifest.json"; then return; fi
	roles "$1" "$3" >tracefs.roles
	roles "$2" "$3" >bpf.roles
	cmp tracefs.roles bpf.roles || fail "$1 and $2 differ: $(cat tracefs.roles bpf.roles)"
}

# applications BUNDLE: checks that no task between the filesystem and the disk is taken for the writer of a file or a
# journal.
applications() {
	mostrace events "$1" --format csv >events.csv
	awk -F, -v c="$(column comm <events.csv)" -v p="$(column path <events.csv)" -v k="$(column kind <events.csv)" '
		$p ~ /[.]db/ && $k == "regular" && $c !~ /^mostrace/ { print }
		$k ~ /^(descriptor|metadata_copy|commit)$/ && $c !~ /^jbd2/ { print }' events.csv >strange.csv
	[ ! -s strange.csv ] || fail "$1: $(wc -l <strange.csv) rows by another: $(head -n 5 strange.csv)"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for bundle in "$out"/*.most; do cp -r "$bundle" .; done
# In blocks of 16 KiB, f2fs stores a rollback journal inside its inode.
# journals TYPE: prints the classes of a rollback journal's blocks.
journals() {
	[ "$1 $(cat "$out/f2fs-map-page.txt")" = "f2fs 16384" ] && echo 'data|metadata' || echo data
}

for test in ext4 f2fs; do
	sqlite $test delete -journal 100 'db|rollback_journal' "$(journals $test)"
	sqlite $test wal -wal 50 wal
	plain $test-delete-tracefs.most $test-delete-bpf.most 'db|rollback_journal'
	plain $test-wal-tracefs.most $test-wal-bpf.most wal
done
# Of a 32-bit program nothing is taken for a write.
if [ -e call32-calls.most ]; then
	mostrace query call32-calls.most "SELECT comm FROM calls WHERE call = 'write'" --format csv >writers.csv
	[ "$(sort -u writers.csv | tr '\n' ' ')" = "comm sh " ] || fail "call32-calls.most: writes by: $(sort writers.csv | uniq -c)"
fi

# With data=journal each copy of contents has its file, and its writer as its cause where causes are told.
for bundle in journal-*.most; do
	[ -e "$bundle" ] || continue
	check_rows "$bundle"
	block=${bundle#journal-} block=${block%.most}
	mostrace analyze "$bundle" --by home_path,cause_comm --where "kind = 'data_copy'" --format csv >copies.csv
	bytes=$(column write_bytes <copies.csv)
	told=$(grep -q '"causes": "none"' "$bundle/manifest.json" || echo yes)
	for writer in dd cp; do
		copied=$(awk -F, -v p="/by-$writer" -v c="${told:+$writer}" -v b="$bytes" '$1 == p && $2 == c { n += $b } END { print n + 0 }' copies.csv)
		[ "$copied" = $((10 * block)) ] || fail "$bundle: $copied bytes of copies of /by-$writer: $(cat copies.csv)"
	done
	! sed 1d copies.csv | grep -v '^/by-dd,\|^/by-cp,\|^/test.db' || fail "$bundle: $(cat copies.csv)"
done

# The same checks for recordings below mapped devices.
for type in ext4 f2fs; do
	for journal in delete wal; do
		probes=dm-$journal-$type-bpf.most
		check_rows "$probes"
		plain dm-$journal-$type-tracefs.most "$probes" 'db|rollback_journal|wal'
		applications "$probes"
		applications dm-$journal-$type-tracefs.most
		# A file with a name also has its number, because the snapshot is that of its filesystem.
		"$here/shares.sh" "$probes" >share.csv
		awk -F, 'NR > 1 && ($6 < 20 || $5 < $6 - 2)' share.csv >strange.csv
		[ ! -s strange.csv ] || fail "$probes: names without numbers: $(cat strange.csv)"
	done
done
# The module reports causes as the probes do.
for bundle in *-kernel.most; do
	grep -q '"causes": "kernel"' "$bundle/manifest.json" || fail "$bundle: causes are not the module's"
	known=$("$here/shares.sh" "$bundle" | sed '1d; s/.*,//')
	[ "${known%.*}" -ge 90 ] || fail "$bundle: causes of $known % of the bytes"
done
# The small program, which has no tables, answered there what this one answers here.
for answer in "$out"/*.answer; do
	bundle=$(basename "$answer" .answer).most
	mostrace analyze "$bundle" | sed '/^next: /d' | diff "$answer" - || fail "$bundle: another answer"
done
# With BTF from a file, the probes report what they report with the kernel's own.
for type in ext4 f2fs; do
	for btf in own given; do
		check_rows btf-$type-$btf.most
		check_temporary btf-$type-$btf.most test.db-journal 100 "$(journals $type)"
		roles btf-$type-$btf.most 'db|rollback_journal' >$btf.roles
	done
	[ -s own.roles ] || fail "btf-$type-own.most: $(cat table.csv)"
	cmp own.roles given.roles || fail "$type: by the kernel's own BTF and by a file's: $(cat own.roles given.roles)"
done
check_kinds btf-f2fs-given.most fsync_node hot_node
check_kinds ext4-delete-bpf.most inode_table directory regular descriptor metadata_copy commit
check_kinds ext4-wal-bpf.most inode_table regular descriptor metadata_copy commit
# A checkpoint has a journal of NAT entries, with room for four times as many in blocks of 16 KiB: blocks of the NAT may not be written.
nat=$([ "$(cat "$out/f2fs-map-page.txt")" = 16384 ] || echo nat)
# shellcheck disable=SC2086 # one word, or none
check_kinds f2fs-delete-bpf.most checkpoint $nat directory regular
check_kinds f2fs-wal-bpf.most checkpoint regular

# The probes read a node's owner from the node itself.
check_kinds f2fs-delete-bpf.most fsync_node hot_node
check_kinds f2fs-wal-bpf.most fsync_node
for bundle in f2fs-*-bpf.most f2fs-*-blktrace.most f2fs-*-kernel.most; do
	mostrace events "$bundle" --format csv >events.csv
	kind=$(column kind <events.csv)
	awk -F, -v k="$kind" '$k == "node"' events.csv >strange.csv
	[ ! -s strange.csv ] || fail "$bundle: of $(wc -l <strange.csv) nodes it is not known whose they are: $(head -n 3 strange.csv)"
done

# The map that the recorder made of f2fs's metadata is what FIEMAP says there.
for list in page files fiemap inline; do cp "$out/f2fs-map-$list.txt" $list.txt; done
mostrace map f2fs-map-map.most --format csv -o map.csv
type=f2fs
check_map map.csv
echo "f2fs-map: $(wc -l <files.txt) files, $(wc -l <fiemap.txt) pieces, $(wc -l <inline.txt) inline, in blocks of $(cat page.txt) bytes"

# The calls that were recorded there return the same here. On the same filesystem they write as many bytes of each kind. Only how
# many blocks the journal copies and revokes varies between replays of one recording: some have 37 revoke blocks more, or 38 copies.
# The first commit to an empty journal writes the journal's superblock, and a replay commits before it is recorded.
same='
import json, sys
outcome = json.load(sys.stdin)
replay = outcome["replays"]["ext4"]
calls = replay["calls"].values()
assert sum(kind["made"] for kind in calls) > 100, calls
assert all(kind["made"] == kind["same"] for kind in calls) and not replay["left_out"], replay
if sys.argv[1] == "ext4":
    recorded = sum(row["a_write_bytes"] for row in outcome["by_class"])
    for row in outcome["by_class"]:
        slack = 0.1 * recorded if row["kind"] in ("metadata_copy", "revoke") else 0
        lacks = 4096 if row["kind"] == "jbd2_superblock" else 0
        assert -slack - lacks <= row["b_write_bytes"] - row["a_write_bytes"] <= slack, row
'
if [ "$(id -u)" -eq 0 ]; then
	for type in ext4 f2fs; do
		for journal in delete wal; do
			mostrace replay operations-$journal-$type.most --json 2>said >outcome.json || fail "replay: $(cat said)"
			python3 -c "$same" $type <outcome.json || fail "operations-$journal-$type.most: another replay"
		done
	done
else
	echo "the calls recorded there were not replayed, because replaying needs root"
fi

# The table of docs/FIGURES.md.
"$here/shares.sh" ./*-bpf.most ./*-tracefs.most ./*-kernel.most
