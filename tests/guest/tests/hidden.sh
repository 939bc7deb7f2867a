# SPDX-License-Identifier: MIT OR Apache-2.0
# Android's init sets kernel.kptr_restrict to 2. A recording must have what it has at 0, and the setting must be 2 again afterwards,
# also if the recorder is killed. Where it cannot be lowered, the kernel's types lead to the functions from 6.4 on; before, what
# cannot be known must stay unknown.
setting=/proc/sys/kernel/kptr_restrict

# is VALUE: true if the setting has it.
is() {
	read -r value <$setting
	[ "$value" = "$1" ]
}

# recorded NAME OPTION…: records SQLite, and prints for how many percent of the written bytes path, dirtier and cause are known.
recorded() {
	bundle=$1.most
	shift
	step "record $bundle"
	mostrace record -d "$loop" -o "$bundle" --sync "$@" -- \
		mostrace workload sqlite --transactions 50 --overwrite "$mnt/app.db" >rec.log 2>rec.err || fail "$(cat rec.err)"
	known=
	for column in path dirty_pid cause_pid; do
		known="$known${known:+, }ROUND(100.0 * SUM(CASE WHEN $column IS NOT NULL THEN bytes ELSE 0 END) / SUM(bytes))"
	done
	mostrace query "$bundle" "SELECT $known FROM events WHERE op = 'write'" --format csv | sed 1d
}

# same WHAT SHARES EXPECTED: fails if one of the shares is smaller. Two recordings differ by some requests.
same() {
	info "$1: path, dirtier, cause $2 %, expected $3 %"
	echo "$2,$3" | awk -F, '{ for (i = 1; i <= 3; i++) if ($i < $(i + 3) - 5) exit 1 }' || fail "$1: $2, expected $3"
}

for type in ext4 f2fs; do
	fresh_$type 128
	echo 0 >$setting
	expected=$(recorded $type-0)
	echo 2 >$setting
	same "$type at 2" "$(recorded $type-2)" "$expected"
	is 2 || fail "the setting is $value after recording"
	# In many containers the setting cannot be changed.
	mount --bind /proc/sys /proc/sys
	mount -o remount,bind,ro /proc/sys
	found=$(recorded $type-ro --entries bpf)
	mostrace doctor >doctor.txt
	umount /proc/sys
	if grep -q "known by the kernel's types" doctor.txt; then
		same "$type by types" "$found" "$expected"
		grep -q '^auto takes: .* entries from bpf$' doctor.txt || fail "doctor: $(cat doctor.txt)"
	else
		case $(uname -r) in 5.* | 6.[0-3].*) ;; *) fail "the types lead to no function: $(cat doctor.txt)" ;; esac
		grep -q '^auto takes: .* entries from tracefs$' doctor.txt || fail "doctor: $(cat doctor.txt)"
		grep -q 'the kernel hides its symbols' $type-ro.most/manifest.json || fail "no word of it in the manifest"
		mostrace events $type-ro.most --format csv >events.csv
		origin=$(column origin <events.csv)
		awk -F, -v o="$origin" 'NR > 1 && $o !~ /^(unknown|empty|journal|)$/' events.csv >strange.csv
		[ ! -s strange.csv ] || fail "$(wc -l <strange.csv) rows of an origin that cannot be known: $(head -n 3 strange.csv)"
	fi
	[ $type = f2fs ] || remove
done

# Killed while the setting is low, or a moment later, until it was low five times.
low=0 try=0
while [ $low -lt 5 ] && [ $((try += 1)) -le 20 ]; do
	step "kill $try"
	mostrace record -d "$loop" -o killed.most --no-snapshot -- sleep 60 >/dev/null 2>&1 &
	pid=$!
	while is 2 && [ -e /proc/$pid/exe ] && [ ! -e killed.most/manifest.json ]; do :; done
	is 2 || low=$((low + 1))
	kill -9 $pid
	wait $pid || true
	tries=0
	until is 2; do
		[ $((tries += 1)) -le 100 ] || fail "the setting is $value after try $try"
		sleep 0.1
	done
	killall sleep 2>/dev/null || true
	rm -rf killed.most
done
info "killed while the setting was low: $low of $try"
[ $low -gt 0 ] || fail "the recorder was never killed while the setting was low"

# What a killed recorder and its killed guard leave.
for lock in /run/mostrace /dev/.mostrace; do [ ! -d $lock ] || echo 2 >$lock/kptr_restrict; done
echo 1 >$setting
mostrace record -d "$loop" -o left.most --no-snapshot --source tracefs --entries tracefs -- true
is 2 || fail "what was left is not put back: $value"
grep -q 'kptr_restrict, which a killed recorder had left' left.most/manifest.json || fail "no word of it in the manifest"
echo 0 >$setting
remove
