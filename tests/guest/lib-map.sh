# SPDX-License-Identifier: MIT OR Apache-2.0
# Compares the map with what the kernel reports for every file: FIEMAP, or FIBMAP on FAT.

# list_files [FIND-CONDITION…]: lists the files of the filesystem at $mnt and what the kernel reports for them:
#   files.txt    inode, links, size, path             of all files
# fiemap.txt   sector, sectors, owner, offset       of those that match the condition, merged; by default
#                                                     all but symbolic links, on FAT regular files
#   inline.txt   sector of the block, owner           of files stored inside their inode
#   page.txt     size of a page, which is that of a block of f2fs
# The owner is the inode number; on FAT, where the kernel invents inode numbers, the path.
list_files() {
	# FIBMAP works only for regular files.
	[ "$type" != vfat ] || set -- -type f
	[ $# -gt 0 ] || set -- ! -type l
	step "list files"
	page >page.txt
	numbered >files.txt
	(cd "$mnt" && find . -xdev -type d) | sed 's,^\.$,/,; s,^\.,,; s, ,\\x20,g' | sort -u >directories.txt
	numbered "$@" >mappable.txt
	(cd "$mnt" && find . -xdev "$@" -print0 | xargs -0 /usr/local/bin/filefrag -e -b512 -v) >frag.txt
	read_fiemap
}

numbered() {
	(cd "$mnt" && find . -xdev "$@" -print0 | xargs -0 stat -c '%i %h %s %n') | sed 's, \./, /,; s, \.$, /,'
}

# read_fiemap: parses frag.txt, which has the files in the order of mappable.txt.
read_fiemap() {
	step "read what the kernel said"
	awk -v fat="$([ "$type" = vfat ] && echo 1 || echo 0)" -v page="$(cat page.txt)" '
		FNR == NR {
			owner[NR] = $1
			if (fat) { sub(/^[0-9]+ [0-9]+ [0-9]+ /, ""); gsub(/ /, "\\x20"); owner[NR] = $0 }
			next
		}
		/^File size of / { file++; next }
		/^ *[0-9]+: *[0-9]+\.\./ {
			flags = $NF
			gsub(/[.:]+/, " ")
			# filefrag prints bytes for inline files.
			if (flags ~ /inline/) { print int($4 / page) * page / 512, owner[file] >"inline.raw"; next }
			if (flags ~ /unknown_loc|delalloc/) next
			# On f2fs these blocks are preallocated and have no place on the disk yet.
			if (flags ~ /unwritten/ && ($4 == 0 || $4 > 8589934592)) next
			print $4, $6, owner[file], $2 * 512
		}
		END { print file + 0 >"count.txt" }
	' mappable.txt frag.txt >fiemap.raw
	[ "$(cat count.txt)" = "$(wc -l <mappable.txt)" ] || fail "filefrag spoke of $(cat count.txt) files of $(wc -l <mappable.txt)"
	touch inline.raw
	sort -n inline.raw >inline.txt
	rm inline.raw
	joined <fiemap.raw >fiemap.txt
}

# joined: sorts `sector sectors owner offset`, which come once for each hard link, and merges runs that continue on the
# disk and in the file.
joined() {
	sort -n | uniq | awk '
		{ if (NR > 1 && $1 == sector + sectors && $3 == owner && $4 == offset + sectors * 512) { sectors += $2; next }
		  if (NR > 1) printf "%.0f %.0f %s %.0f\n", sector, sectors, owner, offset
		  sector = $1; sectors = $2; owner = $3; offset = $4 }
		END { if (NR > 0) printf "%.0f %.0f %s %.0f\n", sector, sectors, owner, offset }'
}

# of_map KINDS <map.csv: prints rows of these kinds (an extended regular expression) as `sector sectors owner offset`.
of_map() {
	awk -F, -v kinds="^($1)$" -v fat="$([ "$type" = vfat ] && echo 1 || echo 0)" '
		NR > 1 && $4 ~ kinds {
			owner = $5
			if (fat) {
				owner = $0
				sub(/^[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,/, "", owner)
				gsub(/"/, "", owner)
				gsub(/ /, "\\x20", owner)
			}
			print $1, $2, owner, $6
		}'
}

# same EXPECTED FOUND WHAT: fails if the files differ.
same() {
	cmp -s "$1" "$2" || {
		diff "$1" "$2" >differences.txt || true
		fail "$3: $(grep -c '^-[^-]' differences.txt) only of the kernel's, $(grep -c '^+[^+]' differences.txt) only of the map's:
$(sed -n 4,15p differences.txt)"
	}
}

# check_map MAP.CSV [KINDS]: compares the map with list_files, block for block in both directions, and every name.
check_map() {
	step "check $1"
	kinds=${2:-regular|directory}
	[ "$type" != vfat ] || kinds=regular
	of_map "$kinds" <"$1" | to_size | joined >map.txt
	[ -s fiemap.txt ] || fail "$1: the kernel names no blocks"
	same fiemap.txt map.txt "$1"
	check_inline "$1"
	check_names "$1"
}

# to_size: FIBMAP ends with the file, the map with the file's last cluster.
to_size() {
	[ "$type" = vfat ] || { cat; return; }
	awk 'FNR == NR { s = $3; sub(/^[0-9]+ [0-9]+ [0-9]+ /, ""); gsub(/ /, "\\x20"); size[$0] = s; next }
		{ left = int((size[$3] - $4 + 511) / 512)
		  if (left <= 0) next
		  print $1, ($2 < left ? $2 : left), $3, $4 }' files.txt -
}

# check_inline: a file stored inside its inode must be in a node block of that inode.
check_inline() {
	of_map '.*node' <"$1" | awk -v page="$(cat page.txt)" '{ for (at = $1; at < $1 + $2; at += page / 512) print at, $3 }' | sort -u >nodes.txt
	sort -u inline.txt >inline.sorted
	comm -23 inline.sorted nodes.txt >missing.txt
	[ ! -s missing.txt ] || fail "$1: $(wc -l <missing.txt) inline files are not in a node of theirs: $(head -n 5 missing.txt)"
}

# check_names: every path in the map is a path of that inode. On f2fs, where each inode has a node, every inode is in
# the map; on FAT, where FIBMAP does not report directories, every directory is.
check_names() {
	if [ "$type" = vfat ]; then
		of_map directory <"$1" | awk '{ print $3 }' | sort -u >named.txt
		same directories.txt named.txt "$1: directories"
		return 0
	fi
	# The quota files of f2fs have no name.
	awk -F, '$4 == "quota" { print $5 }' "$1" | sort -u >quota.txt
	awk -F, 'FILENAME == "quota.txt" { quota[$1]; next }
	FNR > 1 && $5 != "" && !($5 in quota) && $4 ~ /^(regular|directory|symlink|.*node)$/ {
		inode = $5
		sub(/^[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,/, "")
		gsub(/"/, "")
		print inode, $0 }' quota.txt "$1" | sort -u >named.txt
	awk '{ inode = $1; sub(/^[0-9]+ [0-9]+ [0-9]+ /, ""); print inode, $0 }' files.txt | sort -u >paths.txt
	comm -23 named.txt paths.txt >wrong.txt
	[ ! -s wrong.txt ] || fail "$1: $(wc -l <wrong.txt) names are not the kernel's: $(head -n 5 wrong.txt)"
	[ "$type" = f2fs ] || return 0
	cut -d' ' -f1 named.txt | sort -u >known.txt
	cut -d' ' -f1 paths.txt | sort -u | comm -23 - known.txt >missing.txt
	[ ! -s missing.txt ] || fail "$1: $(wc -l <missing.txt) inodes of the kernel's are not in the map: $(head -n 5 missing.txt | tr '\n' ' ')"
}

# map_live FILE: maps the mounted device.
map_live() {
	step "map to $1"
	mostrace map "$loop" --format csv -o "$1"
}
