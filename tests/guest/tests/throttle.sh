# SPDX-License-Identifier: MIT OR Apache-2.0
# A cgroup's limit: bios that were throttled are queued by blk-throttle's worker, which wrote nothing itself.
fresh_ext4 64 -b 4096
mkdir cgroup
mount -t cgroup2 none cgroup
echo +io >cgroup/cgroup.subtree_control
mkdir cgroup/slow
echo "$(cat "/sys/block/$(basename "$loop")/dev") wbps=2097152" >cgroup/slow/io.max
cat >write.sh <<END
echo \$\$ >$PWD/cgroup/slow/cgroup.procs
exec /usr/local/bin/dd if=/dev/zero of=$mnt/\$1 bs=64k count=32 \$2
END

# rows FILE: prints how many rows of the file are by blk-throttle's worker, by dd, and by nobody. The worker's queue is
# bound to CPUs. The flusher's is not (kworker/u…); it may write the file in its own name before dd's fsync does.
rows() {
	awk -F, -v c="$(column comm <events.csv)" -v p="$(column path <events.csv)" -v f="/$1" '
		$p != f { next }
		$c ~ /^kworker\/[0-9]/ { worker++ }
		$c == "dd" { dd++ }
		$c == "" || $c == "?" { nobody++ }
		END { print worker + 0, dd + 0, nobody + 0 }' events.csv
}

step "direct"
mostrace record -d "$loop" -o direct.most --source blktrace --sync -- sh write.sh direct oflag=direct
check_bundle direct.most
counts=$(rows direct)
[ "${counts%% *}" = 0 ] || fail "direct: by a worker, dd, nobody: $counts"
{ [ "${counts#0 }" != "0 0" ] && [ "${counts##* }" = 0 ]; } || fail "direct: by a worker, dd, nobody: $counts"

step "buffered"
mostrace record -d "$loop" -o buffered.most --source blktrace --sync -- sh write.sh buffered conv=fsync
check_bundle buffered.most
counts=$(rows buffered)
[ "${counts%% *}" = 0 ] || fail "buffered: by a worker, dd, nobody: $counts"
dirtier=$(column dirty_comm <events.csv)
awk -F, -v d="$dirtier" -v p="$(column path <events.csv)" '$p == "/buffered" && $d != "dd"' events.csv >strange.csv
[ ! -s strange.csv ] || fail "buffered: $(wc -l <strange.csv) rows that dd did not dirty: $(head -n 3 strange.csv)"
umount cgroup
remove
