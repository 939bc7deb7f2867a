# SPDX-License-Identifier: MIT OR Apache-2.0
# The causes of contents on ext4, f2fs and FAT32, judged by the writers' log of all changes.
causes ext4 --mkfs "-b 4096"
causes ext4 --mkfs "-b 4096" --mount-options data=journal
causes f2fs
# FAT makes no range of a file zero, as `copied` asks.
causes vfat --mkfs "-F 32" delayed pages removed skipped stores
causes_ended
