# SPDX-License-Identifier: MIT OR Apache-2.0
# The counters of an NVMe drive itself: those in a recording's manifest, in what `analyze` says and in a ledger are those that nvme-cli
# prints. The drive is the one of serial number 1.

# smart NAME FILE: prints the value of the counter in nvme-cli's JSON.
smart() {
	tr -d '" \t' <"$2" | tr ',{}' '\n' | sed -n "s/^$1://p"
}

# manifest BUNDLE WHEN NAME: prints the value of the counter before or after.
manifest() {
	sed -n "/\"health\"/,/^  }/p" "$1/manifest.json" | sed -n "/\"$2\"/,/}/p" | sed -n "s/.*\"$3\": \([0-9]*\).*/\1/p"
}

# same WHEN BUNDLE FILE: the manifest's counters of then are those of nvme-cli.
same() {
	for pair in critical_warning:critical_warning available_spare:avail_spare percentage_used:percent_used \
		data_units_read:data_units_read data_units_written:data_units_written host_read_commands:host_read_commands \
		host_write_commands:host_write_commands media_errors:media_errors; do
		name=${pair%:*}
		ours=$(manifest "$2" "$1" "$name") theirs=$(smart "${pair#*:}" "$3")
		# A recording that begins reads the superblock.
		if [ "$name" = host_read_commands ] && [ "$ours" -ge "$theirs" ] && [ "$ours" -le $((theirs + 16)) ]; then ours=$theirs; fi
		{ [ -n "$theirs" ] && [ "$ours" = "$theirs" ]; } || fail "$1: ${pair%:*} is $ours, nvme-cli says $theirs: $(cat "$3" "$2/manifest.json")"
	done
}

disk=/dev/$(grep -lx "1 *" /sys/block/nvme*n*/device/serial | head -n 1 | cut -d/ -f4)
[ -b "$disk" ] || fail "there is no NVMe drive: $(ls /dev)"
nvme version
step "mkfs"
/usr/local/bin/mke2fs -q -t ext4 -E lazy_itable_init=0 "$disk"
mnt=$PWD/mnt
mkdir -p "$mnt"
mount -t ext4 -o noatime "$disk" "$mnt"
# Counters of 0 units are not reported: this makes some.
dd if=/dev/zero of="$mnt/fill" bs=1M count=8 conv=fsync 2>/dev/null
dd if="$mnt/fill" of=/dev/null bs=1M iflag=direct 2>/dev/null
sync

step "record on the drive"
nvme smart-log -o json "$disk" >before
mostrace record -d "$disk" -o run.most --sync -- mostrace workload sqlite --transactions 200 --overwrite "$mnt/test.db"
same before run.most before
# The snapshot, which is taken after the reading, reads the drive but writes nothing.
nvme smart-log -o json "$disk" >after
for name in data_units_written host_write_commands media_errors; do
	[ "$(manifest run.most after $name)" = "$(smart $name after)" ] || fail "$name: $(cat after run.most/manifest.json)"
done
grown=$((($(manifest run.most after data_units_written) - $(manifest run.most before data_units_written)) * 512000))
bytes=$(mostrace analyze run.most --by op --format csv >ops.csv; awk -F, -v c="$(column write_bytes <ops.csv)" '$1 == "write" { print $c }' ops.csv)
info "the drive received $grown bytes, the recording has $bytes"
# A unit is 512,000 bytes, and each reading is rounded up.
{ [ $((grown - bytes)) -lt 1024000 ] && [ $((bytes - grown)) -lt 1024000 ]; } || fail "$grown, $bytes"
mostrace analyze run.most --full >analysis
grep -q "^drive .*${disk#/dev/} itself (nvme): $grown bytes received to write, 0 % of its life used, $(smart avail_spare after) % spare left, 0 media errors in its life" analysis ||
	fail "$(head -n 30 analysis)"

step "record on a loop device that lies on it"
truncate -s 32M "$mnt/disk.img"
loop=$(losetup -f)
losetup "$loop" "$mnt/disk.img"
mostrace record -d "$loop" -o loop.most -- dd if=/dev/zero of="$loop" bs=4k count=10 conv=fsync
grep -q '"disk": "'"${disk#/dev/}"'"' loop.most/manifest.json || fail "$(cat loop.most/manifest.json)"
losetup -d "$loop"

step "record in segments"
mostrace record -d "$disk" -o cut.most --segment 2s -w 5
[ -n "$(manifest cut.0001.most before data_units_written)" ] || fail "$(cat cut.0001.most/manifest.json)"
[ -z "$(manifest cut.0001.most after data_units_written)" ] || fail "$(cat cut.0001.most/manifest.json)"
last=$(printf '%s\n' cut.*.most | tail -n 1)
[ -n "$(manifest "$last" after data_units_written)" ] || fail "$(cat "$last/manifest.json")"

step "a disk without counters"
fresh_ext4 32
mostrace record -d "$loop" -o none.most -- dd if=/dev/zero of="$mnt/x" bs=4k count=1 conv=fsync
! grep -q '"health"' none.most/manifest.json || fail "$(cat none.most/manifest.json)"
remove

step "ledger"
mostrace ledger start ledger -d "$disk" --every 5s --segment 1s -w 16
nvme smart-log -o json "$disk" >end
mostrace ledger show ledger --hours --format csv >hours.csv
units=$(tail -n 1 hours.csv | cut -d, -f"$(column drive_data_units_written <hours.csv)")
[ "$units" = "$(smart data_units_written end)" ] || fail "$units: $(cat hours.csv end)"
mostrace ledger status ledger >said
grep -q "the drive itself: 0 % of its life used, $(smart avail_spare end) % spare left" said || fail "$(cat said)"
info "ledger: $(cat said)"
