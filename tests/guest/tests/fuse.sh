# SPDX-License-Identifier: MIT OR Apache-2.0
# Two users write through a daemon of FUSE to files of ext4: each has caused what was written for it, and the daemon dirtied it.

# wrote CONDITION: prints the bytes written of rows of which this is so.
wrote() {
	mostrace analyze fuse.most --by op --where "op = 'write' AND $1" --format csv >by.csv
	at=$(column write_bytes <by.csv)
	awk -F, -v at="$at" '$1 == "write" { bytes = $at } END { print bytes + 0 }' by.csv
}

# check CONDITION BYTES
check() {
	bytes=$(wrote "$1")
	[ "$bytes" -eq "$2" ] || fail "$1: $bytes and not $2: $(mostrace analyze fuse.most --by cause_uid,cause_comm,cause_known,path --format csv)"
}

check_causes() {
	check "path = '/lower/one' AND kind = 'regular' AND cause_uid = 10001 AND cause_comm = 'dd' AND cause_known = 'exact'" 1966080
	check "path = '/lower/two' AND kind = 'regular' AND cause_uid = 10002 AND cause_comm = 'dd' AND cause_known = 'exact'" 786432
	# The daemon waited for the first of these writes since before the recording.
	check "path = '/lower/early' AND kind = 'regular' AND cause_uid = 10004 AND cause_comm = 'dd' AND cause_known = 'exact'" 16384
	check "path = '/lower/beside' AND kind = 'regular' AND cause_uid = 10003" 262144
	check "path IN ('/lower/one', '/lower/two') AND kind = 'regular' AND dirty_comm = 'through'" 2752512
	[ "$(wrote "class = 'journal' AND cause_uid IN (10001, 10002)")" -gt 0 ] || fail "the journal is nobody's"
	# What closing a file changes is the daemon's own: such a request names no thread.
	check "kind = 'regular' AND cause_comm = 'through'" 0
}

cat >work.sh <<END
touch go
cat done
as() { /usr/local/bin/setpriv --reuid=\$1 --clear-groups sh -c "\$2"; }
as 10001 'dd if=/dev/zero of=through/one bs=64k count=30 conv=fsync 2>/dev/null' &
as 10002 'dd if=/dev/zero of=through/two bs=64k count=12 conv=fsync 2>/dev/null' &
wait
as 10002 'for n in 1 2 3; do echo >through/gone; rm through/gone; done; sync -f through/two 2>/dev/null || sync'
as 10003 'dd if=/dev/zero of=mnt/lower/beside bs=64k count=4 conv=fsync 2>/dev/null'
END
# Of a thread that serves two requests at a time, nothing is said: what it did for one is not the other one's.
check_mixed() {
	[ "$(wrote "class = 'data' AND cause_comm = 'through'")" -gt 0 ] || fail "no two requests were served at a time"
	check "path = '/lower/one' AND cause_uid = 10002 OR path = '/lower/two' AND cause_uid = 10001" 0
}

# record [splice | mixed]: how the daemon serves its requests.
record() {
	step "record $*"
	fresh_ext4 64
	mkdir -p "$mnt/lower" through
	chmod 777 "$mnt/lower"
	through "$mnt/lower" through "$@" &
	daemon=$!
	until grep -q " $PWD/through fuse " /proc/mounts; do sleep 0.1; done
	rm -rf fuse.most go done
	mkfifo -m 666 done
	/usr/local/bin/setpriv --reuid=10004 --clear-groups sh -c 'exec 3>through/early; dd if=/dev/zero bs=4k count=1 >&3 2>/dev/null; until [ -e go ]; do sleep 0.1; done
		dd if=/dev/zero bs=4k count=4 conv=fsync >&3 2>/dev/null; echo >done' &
	early=$!
	until [ -s "$mnt/lower/early" ]; do sleep 0.1; done
	bundle=fuse.most
	lossless fuse.most mostrace record -d "$loop" -o fuse.most --entries bpf --sync -- sh work.sh
	wait $early
	umount through
	wait $daemon
	remove
}

if [ -e /dev/fuse ]; then
	for how in "" splice mixed; do
		# shellcheck disable=SC2086 # no word, or one
		record $how
		[ "$how" != mixed ] || check_mixed
		[ "$how" = mixed ] || check_causes
	done
	keep fuse.most
else
	info "no FUSE here"
fi
