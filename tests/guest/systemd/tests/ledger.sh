# SPDX-License-Identifier: MIT OR Apache-2.0
# The ledger's unit as it is installed, with its few rights: what a program writes is its own in the ledger, also after the ledger was
# killed. Only the length of an hour differs.

unit=/etc/systemd/system/mostrace-ledger.service

step "the rights"
systemd-analyze security --offline=true --threshold=40 "$unit" >rights || fail "$(tail -n 3 rights)"
info "$(tail -n 1 rights)"

# As Debian has it: with it, who has not CAP_SYSLOG sees no address in kallsyms.
echo 1 >/proc/sys/kernel/kptr_restrict
fresh_ext4 64
umount "$mnt"
mkdir -p /var
mount "$loop" /var
mkdir -p "$unit.d"
cat >"$unit.d/hour.conf" <<-END
	[Service]
	ExecStart=
	$(sed -n 's/^ExecStart=\(.*\) --every 1h/ExecStart=\1 --every 5s/p' "$unit")
	StandardError=append:/tmp/out/ledger.log
END
systemctl daemon-reload

# begun N: waits until the ledger has begun N times.
begun() {
	until [ "$(grep -c 'is watched' /tmp/out/ledger.log)" -ge "$1" ]; do
		# It is activating while systemd waits before it starts it again.
		case $(systemctl is-active mostrace-ledger) in
		active | activating) sleep 1 ;;
		*) fail "it ended: $(cat /tmp/out/ledger.log)" ;;
		esac
	done
}

# written LEDGER: prints how many bytes it says that dd caused to be written.
written() {
	mostrace ledger show "$1" --by command --format csv >table.csv
	bytes=$(column write_bytes <table.csv)
	awk -F, -v bytes="$bytes" '$1 == "dd" { print $bytes }' table.csv
}

# has LEDGER BYTES: waits until it says so many.
has() {
	until [ "$(written "$1" || true)" -ge "$2" ] 2>/dev/null; do
		sleep 1
		[ "$1" = /var/lib/mostrace ] || cp /var/lib/mostrace/*.parquet "$1/" 2>/dev/null || true
	done
}

step "start"
systemctl start mostrace-ledger
begun 1
pid=$(systemctl show --property=MainPID --value mostrace-ledger)
grep -q '^NoNewPrivs:.*1$' "/proc/$pid/status" || fail "it may gain rights: $(cat "/proc/$pid/status")"

step "write"
/usr/local/bin/dd if=/dev/zero of=/var/one bs=4096 count=500 conv=fsync 2>/dev/null
step "the running hour"
has /var/lib/mostrace $((500 * 4096))
# A killed ledger loses its running hour, which a copy does not have.
step "an hour that is over"
mkdir copy
has copy $((500 * 4096))

step "kill"
systemctl kill --signal=KILL mostrace-ledger
begun 2
# These pages are written by another process than the one that dirtied them.
/usr/local/bin/dd if=/dev/zero of=/var/two bs=4096 count=300 2>/dev/null
sync

step "stop"
systemctl stop mostrace-ledger
[ "$(systemctl show --property=Result --value mostrace-ledger)" = success ] || fail "$(systemctl status mostrace-ledger)"
all=$(written /var/lib/mostrace)
cp table.csv /tmp/out/ledger.csv
[ "${all:-0}" -ge $((800 * 4096)) ] || fail "dd wrote ${all:-0} bytes: $(cat table.csv /tmp/out/ledger.log)"
info "dd wrote $all bytes; data alone are $((800 * 4096))"
umount /var
losetup -d "$loop"
