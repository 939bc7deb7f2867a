# SPDX-License-Identifier: MIT OR Apache-2.0
# A mounted f2fs is mapped as it is now, although it writes past its device's page cache, which an earlier map has
# filled.
fresh_f2fs 100
map_live empty.csv
age "$mnt" 200 posix
list_files
map_live live.csv
check_map live.csv
