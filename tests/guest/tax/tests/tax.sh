# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures what a recording of one filesystem costs calls that have nothing to do with it, as scripts/bench-tax.sh does. With
# a clock that counts instructions (`make bench-tax`), a nanosecond is an instruction.
turns=3

fresh_ext4 64 -b 4096
traced=$loop
truncate -s 64M other.img
/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 other.img >mkfs.log 2>&1 || fail "$(cat mkfs.log)"
other=$(losetup -f)
losetup "$other" other.img
mkdir other
mount -t ext4 -o noatime "$other" other

# measure MODE COMMAND…: adds what the command prints to the results.
measure() {
	mode=$1
	shift
	step "$mode"
	"$@" >times.txt 2>record.err || fail "$(cat record.err)"
	sed "s/^/$mode	/" times.txt >>results
}

# under_record OPTION…: measures under a recording.
under_record() {
	rm -rf t.most
	mostrace record -q -d "$traced" -o t.most --no-snapshot --source bpf --entries bpf "$@" -- bench-tax "$PWD/other"
}

for _ in $(seq $turns); do
	measure nothing bench-tax "$PWD/other"
	measure entries under_record --causes none
	measure causes under_record
done
# median MODE NAME
median() {
	awk -F'\t' -v m="$1" -v n="$2" '$1 == m && $3 == n { print $2 }' results | sort -n | sed -n "$((turns / 2 + 1))p"
}
info "$(printf '%-32s %8s %8s %7s %8s %7s' ns nothing entries ratio causes ratio)"
cut -f3 results | awk '!seen[$0]++' >names
while read -r name; do
	info "$(echo "$(median nothing "$name") $(median entries "$name") $(median causes "$name")" |
		awk -v n="$name" '{ printf "%-32s %8.0f %8.0f %7.3f %8.0f %7.3f", n, $1, $2, $2 / $1, $3, $3 / $1 }')"
done <names
umount other
losetup -d "$other"
remove
