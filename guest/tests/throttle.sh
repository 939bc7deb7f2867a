# SPDX-License-Identifier: MIT OR Apache-2.0
# A cgroup's limit: bios that were held back are queued by blk-throttle's worker, which wrote nothing.
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

# Rows of the file: those by blk-throttle's worker, those by dd, those by nobody. Its workqueue is bound to CPUs; the
# flusher, which may come to the file before dd's fsync does and writes in its own name, is not (kworker/u…).
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
[ "${counts#0 }" != "0 0" ] && [ "${counts##* }" = 0 ] || fail "direct: by a worker, dd, nobody: $counts"

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
