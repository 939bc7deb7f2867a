# SPDX-License-Identifier: MIT OR Apache-2.0
# The module is loaded, read and unloaded 50 times during IO; if it is built in, the device is opened, read and closed.
rounds=50
! is_debug || rounds=20
fresh_ext4 128 -b 4096
worst=0
fio --name=load --directory="$mnt" --size=8m --bs=4k --rw=randrw --direct=0 --fsync=8 --numjobs=2 --time_based --runtime=1000 >fio.log 2>&1 &
load=$!

# has BYTES: succeeds if the stream has at least this many.
has() {
	[ "$(wc -c <stream)" -ge "$1" ]
}

for round in $(seq $rounds); do
	step "round $round"
	start=$(date +%s)
	load dev="$(basename "$loop")" names=all
	record_start stream
	wait_for "round $round: $(wc -c <stream) bytes, $(cat "$class"/entries) entries; $(tail -n 3 fio.log)" has 4000
	# The reader is killed while it uses the module; closing the device stops the probes.
	kill "$reader"
	wait "$reader" || true
	unload
	took=$(($(date +%s) - start))
	[ $took -le $worst ] || worst=$took
done
info "the longest of $round rounds: $worst s"
kill -0 $load || fail "fio ended: $(cat fio.log)"
kill $load
wait $load || true
remove
check_kernel
