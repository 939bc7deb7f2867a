# SPDX-License-Identifier: MIT OR Apache-2.0
# The causes of contents on ext4 and f2fs, judged by the writers' log of all changes.
causes ext4 --mkfs "-b 4096"
causes ext4 --mkfs "-b 4096" --mount-options data=journal
causes f2fs
causes_ended
