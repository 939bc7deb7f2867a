# SPDX-License-Identifier: MIT OR Apache-2.0
# The map of an aged ext4, mounted and then unmounted, equals what FIEMAP reports for every file.
fresh_ext4 512
age "$mnt" 1500 posix
list_files
map_live live.csv
check_map live.csv
unmount
mostrace map disk.img --format csv -o after.csv
check_map after.csv
info "$(wc -l <files.txt) files in $(wc -l <fiemap.txt) pieces"
