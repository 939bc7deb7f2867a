# SPDX-License-Identifier: MIT OR Apache-2.0
# The causes of f2fs's checkpoints, of what garbage collection moves, and of atomic writes. Each process is a user of
# its own that asks a known number of times; the kernel's own tracepoint counts the checkpoints.

fresh_f2fs 256 -- background_gc=off
# This keeps f2fs from writing checkpoints of its own during the test.
echo 100000 >"/sys/fs/f2fs/$(basename "$loop")/cp_interval"
tracing=/sys/kernel/tracing
mount -t tracefs none $tracing 2>/dev/null || true
checkpoints=$tracing/events/f2fs/f2fs_write_checkpoint

# ioctl.pl FILE NUMBER: calls an ioctl of f2fs with an argument of 1.
cat >ioctl.pl <<'END'
open(my $file, "<", $ARGV[0]) or die "$ARGV[0]: $!";
my $argument = pack("LL", 1, 0);
ioctl($file, hex($ARGV[1]), $argument) or die "$ARGV[0]: ioctl $ARGV[1]: $!";
END
collect=4004f506
checkpoint=f507

# atomic.pl FILE COMMITS: makes atomic writes of 8 blocks of 4 KiB, whose first block begins like an SQLite database;
# then one that is aborted; then writes a block in the ordinary way.
cat >atomic.pl <<'END'
sysopen(my $file, $ARGV[0], 2) or die "$ARGV[0]: $!";
sub atomic { ioctl($file, $_[0], 0) or die "ioctl: $!" }
my $changes = 0;
sub page { syswrite($file, pack("a4096", $_[0] . $_[1] x 4096)) == 4096 or die "write: $!" }
sub pages {
	sysseek($file, 0, 0);
	$changes++;
	page("SQLite format 3\0" . pack("nC6N", 4096, 1, 1, 0, 64, 32, 32, $changes), $_[0]);
	for (2 .. 8) { page("", $_[0]) }
}
for my $round (1 .. $ARGV[1]) {
	atomic(0xf501);
	pages(chr(64 + $round));
	atomic(0xf502);
}
atomic(0xf501);
pages("x");
atomic(0xf505);
sysseek($file, 4096, 0);
page("", "y");
END

# The kernel counts checkpoints only while the command runs.
cat >counted.sh <<END
echo 1 >$checkpoints/enable
"\$@"
echo 0 >$checkpoints/enable
END

# record NAME COMMAND…: records the command and counts the checkpoints.
record() {
	name=$1
	shift
	step "record $name"
	echo >$tracing/trace
	mostrace record -d "$loop" -o "$name.most" --source blktrace -- sh counted.sh "$@" 2>record.err || fail "$(cat record.err)"
	grep -c 'finish checkpoint' $tracing/trace >"$name.checkpoints" || true
	check_bundle "$name.most"
	total=$(awk -F, -v b="$bytes" -v o="$op" 'NR > 1 && $o != "discard" { n += $b } END { print n }' events.csv)
	for by in cause_process cause_op cause_file cause_known checkpoint_reason; do
		for share in first equal; do
			mostrace analyze "$name.most" --by $by --share $share --format csv >table.csv
			sum=$(awk -F, -v b="$(column bytes <table.csv)" 'NR > 1 { n += $b } END { print n }' table.csv)
			[ "$sum" = "$total" ] || fail "$name by $by, $share: $sum bytes of $total"
		done
	done
}

# A checkpoint's last block is written on its own, after all others.
packs="kind = 'checkpoint' AND op = 'write' AND bytes = 4096"

# ask NAME COLUMNS CONDITION [SUM]: prints the values of these columns with their number of rows, or another sum.
ask() {
	mostrace query "$1.most" "SELECT $2, ${4:-count(*)} AS n FROM events WHERE $3 GROUP BY $2 ORDER BY $2" --format csv | tail -n +2
}

# expect NAME COLUMNS CONDITION LINE…: checks that `ask` prints exactly these lines.
expect() {
	name=$1 columns=$2 condition=$3
	shift 3
	ask "$name" "$columns" "$condition" >got
	printf '%s\n' "$@" | sort >wanted
	sort got | cmp -s - wanted || fail "$name: $columns where $condition:
$(cat got)
instead of
$(cat wanted)"
}

for w in 1 2 3; do
	mkdir "$mnt/w$w"
	chown $((1000 + w)) "$mnt/w$w"
done
/usr/local/bin/setpriv --reuid 1003 --clear-groups /usr/local/bin/dd if=/dev/zero of="$mnt/w3/app.db" bs=4k count=8 conv=fsync 2>/dev/null
sync

# One user's fsync needs a checkpoint because its folder is new; one calls sync; one calls the ioctl.
cat >fsync.sh <<'END'
for i in 1 2 3 4 5; do
	mkdir "$1/d$i"
	/usr/local/bin/dd if=/dev/zero of="$1/d$i/f" bs=4k count=1 conv=fsync 2>/dev/null
done
END
cat >sync.sh <<'END'
for i in 1 2 3 4; do
	echo "$i" >"$1/f$i"
	sync
done
END
cat >each.sh <<END
setpriv="/usr/local/bin/setpriv --clear-groups --reuid"
\$setpriv 1001 sh $PWD/fsync.sh $mnt/w1
\$setpriv 1002 sh $PWD/sync.sh $mnt/w2
echo >$mnt/root
perl $PWD/ioctl.pl $mnt/root $checkpoint
END
record each sh each.sh
[ "$(cat each.checkpoints)" -eq 10 ] || fail "$(cat each.checkpoints) checkpoints"
expect each cause_uid,checkpoint_reason,cause_op,cause_known,cause_path "$packs" \
	1001,node_need_cp,checkpoint,exact,/w1/d1/f,1 1001,node_need_cp,checkpoint,exact,/w1/d2/f,1 \
	1001,node_need_cp,checkpoint,exact,/w1/d3/f,1 1001,node_need_cp,checkpoint,exact,/w1/d4/f,1 \
	1001,node_need_cp,checkpoint,exact,/w1/d5/f,1 1002,sync,checkpoint,exact,,4 0,ioctl,checkpoint,exact,/root,1
# What forced a checkpoint is the call that asked for it.
expect each cause_uid,forced_by "$packs AND forced_by_pid = cause_pid" 1001,fsync,5 1002,sync,4 0,checkpoint,1
# A filter finds the same rows.
found=$(mostrace analyze each.most --where "checkpoint_reason = 'sync' AND $packs" --by checkpoint_reason --columns checkpoint_reason,requests --format csv | tail -n +2)
[ "$found" = sync,4 ] || fail "by a filter: $found"
# The other blocks of a checkpoint have the same causes.
ask each cause_uid,cause_op,cause_known "kind IN ('nat', 'sit', 'ssa', 'checkpoint') AND op = 'write'" >blocks
awk -F, '$2 != "checkpoint" || $3 != "exact"' blocks >others
{ [ ! -s others ] && [ "$(wc -l <blocks)" -eq 3 ]; } || fail "$(cat blocks)"

# All users at once: each checkpoint is attributed to those who had asked by then.
cat >once.sh <<END
setpriv="/usr/local/bin/setpriv --clear-groups --reuid"
for w in 1 2; do mkdir $mnt/w\$w/once; chown \$((1000 + w)) $mnt/w\$w/once; done
\$setpriv 1001 sh $PWD/fsync.sh $mnt/w1/once &
\$setpriv 1002 sh $PWD/sync.sh $mnt/w2/once &
wait
END
record once sh once.sh
ask once cause_uid,cause_known,checkpoint_reason "$packs" >once.csv
sed 's/^/info once: /' once.csv
[ "$(awk -F, '{ n += $4 } END { print n }' once.csv)" -eq "$(cat once.checkpoints)" ] || fail "$(cat once.csv) of $(cat once.checkpoints)"
grep -vE '^(1001,(exact|set),node_need_cp|1002,(exact|set),sync),' once.csv && fail "$(cat once.csv)"
[ "$(cut -d, -f1 once.csv | sort -u | wc -l)" -eq 2 ] || fail "$(cat once.csv)"

# Blocks that garbage collection moves keep their file, and their cause is the task that collects.
i=0
while [ $i -lt 60 ]; do
	for file in keep gone; do
		/usr/local/bin/dd if=/dev/urandom of="$mnt/$file" bs=64k count=1 seek=$i conv=notrunc,fsync 2>/dev/null
	done
	i=$((i + 1))
done
rm "$mnt/gone"
sync
record gc sh -c "for i in 1 2 3 4; do perl $PWD/ioctl.pl $mnt/keep $collect || true; done"
ask gc cause_uid,cause_comm,cause_op,cause_known,path "kind = 'regular' AND op = 'write'" >moved
sed 's/^/info gc: /' moved
{ grep -q '^0,perl,gc,exact,/keep,' moved && ! grep -v '^0,perl,gc,exact,' moved; } || fail "$(cat moved)"

# Blocks written between the two ioctls count as an atomic write; what was aborted was not written.
cat >commits.sh <<END
perl $PWD/atomic.pl $mnt/w3/app.db 3
/usr/local/bin/dd if=/dev/zero of=$mnt/w3/app.db bs=4k count=1 seek=20 conv=notrunc,fsync 2>/dev/null
END
record atomic /usr/local/bin/setpriv --clear-groups --reuid 1003 sh commits.sh
ask atomic cause_uid,cause_op,cause_known,path "kind = 'regular' AND op = 'write'" "sum(bytes)" >got
# Before 5.19 pages wait in memory for the commit: of some, only the task that made them dirty is known.
if grep -q ' f2fs_register_inmem_page' /proc/kallsyms; then sed -i 's/^1003,atomic_write,first,/1003,atomic_write,exact,/' got; fi
awk -F, -v OFS=, '{ sum[$1 OFS $2 OFS $3 OFS $4] += $5 } END { for (of in sum) print of, sum[of] }' got | sort >sums
printf '%s\n' 1003,atomic_write,exact,/w3/app.db,98304 1003,write,exact,/w3/app.db,8192 >wanted
cmp -s sums wanted || fail "$(cat got)"
mostrace analyze atomic.most | grep -q "3 SQLite transactions" || fail "$(mostrace analyze atomic.most | head -n 1)"
remove

# A checkpoint writes the quota files, and their nodes, by its own thread: their cost goes to those whose nodes were written since the
# last checkpoint, whoever asks for this one.
fresh_f2fs 256 -O extra_attr,quota -- background_gc=off
echo 100000 >"/sys/fs/f2fs/$(basename "$loop")/cp_interval"
for w in 1 2; do
	mkdir "$mnt/w$w"
	echo >"$mnt/w$w/f"
	chown -R $((1000 + w)) "$mnt/w$w"
done
cat >append.sh <<'END'
for i in 1 2 3 4 5; do /usr/local/bin/dd if=/dev/zero of="$1/f" bs=4k count=1 seek=$i conv=notrunc,fsync 2>/dev/null; done
END
sync
for w in 1 2; do
	record quota$w sh -c "/usr/local/bin/setpriv --clear-groups --reuid $((1000 + w)) sh append.sh $mnt/w$w; sync"
	mostrace analyze quota$w.most --where "kind = 'quota' AND op = 'write'" --by cause_uid,cause_known --share equal --format csv >table.csv
	awk -F, -v u=$((1000 + w)) -v b="$(column write_bytes <table.csv)" 'NR > 1 { all += $b }
		$1 == u && $2 == "proportional" { its += $b }
		END { printf "%d of %d bytes are for user %d\n", its, all, u; exit !(all && its == all) }' table.csv >said ||
		fail "quota$w: $(cat said table.csv)"
	info "quota$w: $(cat said)"
done
remove
# What the kernel's tracer still holds would be in another recorder's way.
echo >$tracing/trace
umount $tracing
