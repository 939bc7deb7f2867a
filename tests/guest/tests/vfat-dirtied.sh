# SPDX-License-Identifier: MIT OR Apache-2.0
# Several blocks of FAT share a page: who dirtied one of them first is its dirtier, and nobody is if that was before the recording.
fresh_vfat 64 -- "umask=0"
# What is dirty must wait for the recording.
writeback_off

as() {
	/usr/local/bin/setpriv --reuid "$1" --clear-groups sh -c "$2"
}

# record NAME FIRST COMMAND: makes a file as user FIRST, then records the command.
record() {
	as "$2" "echo >$mnt/$1-by-$2"
	step "record $1"
	mostrace record -d "$loop" -o "$1.most" --source bpf --entries bpf --files all --no-snapshot -- sh -c "$3"
	check_bundle "$1.most"
	# The blocks of folders and of the table of clusters belong to no file.
	mostrace events "$1.most" --columns op,sector,bytes,path,dirty_uid --format csv | awk -F, '$1 == "write" && $4 == "" { print $5 + 0 "" ($5 == "" ? "?" : "") }' | sort | uniq -c >dirtiers
	info "$1: $(tr -s ' \n' ' ' <dirtiers)"
}

set_of() {
	awk '{ print $2 }' dirtiers | sort | tr '\n' ' '
}

user="/usr/local/bin/setpriv --clear-groups --reuid"
# If the kernel has written out what was dirty before the recording, as it may once more when it was told not to, it is made again.
for try in 1 2 3; do
	rm -rf before.most
	record before 1001 "$user 1002 sh -c 'echo >$mnt/before-by-1002'; sync"
	[ "$(set_of)" != "0? " ] || break
	info "try $try: not all was dirty before the recording"
done
[ "$(set_of)" = "0? " ] || fail "dirtied before the recording: $(cat dirtiers)"
# All of these names are in the same block.
for try in 1 2 3; do
	touch "$mnt/a" "$mnt/b"
	rm -rf both.most
	record both 1001 "sync; $user 1003 mv $mnt/a $mnt/c; $user 1004 mv $mnt/b $mnt/d; sync"
	case $(set_of) in 0?*) break ;; esac
	info "try $try: nothing was dirty before the recording"
done
[ "$(set_of)" = "0? 1003 " ] || fail "dirtied by two: $(cat dirtiers)"
remove
