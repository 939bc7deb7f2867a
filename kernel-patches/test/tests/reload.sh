# SPDX-License-Identifier: MIT OR Apache-2.0
# Loaded, read and unloaded again and again, while there is IO.
fresh_ext4 128 -b 4096
worst=0
fio --name=load --directory="$mnt" --size=8m --bs=4k --rw=randrw --direct=0 --fsync=8 --numjobs=2 --time_based --runtime=1000 >fio.log 2>&1 &
load=$!
sleep 3
for i in $(seq "$(cat /lib/rounds)"); do
	step "$i"
	start=$(date +%s)
	insmod /lib/mostrace.ko dev="$(basename "$loop")" names=all
	# Empty at once: the reader opens it when it runs.
	: >stream
	cat /dev/mostrace >>stream &
	reader=$!
	for _ in $(seq 150); do
		[ "$(wc -c <stream)" -lt 4000 ] || break
		usleep 200000
	done
	[ "$(wc -c <stream)" -ge 4000 ] || fail "round $i: $(wc -c <stream) bytes in $(($(date +%s) - start)) s, $(cat $class/entries) entries, fio: $(kill -0 $load && echo runs): $(tail -n 3 fio.log); $(ps)"
	# Killed with the module in use; closing stops the probes.
	kill "$reader"
	wait "$reader" || true
	rmmod mostrace
	took=$(($(date +%s) - start))
	[ $took -le $worst ] || worst=$took
done
info "the longest of $i rounds: $worst s"
kill -0 $load || fail "fio ended: $(cat fio.log)"
kill $load
wait $load || true
remove
check_kernel
