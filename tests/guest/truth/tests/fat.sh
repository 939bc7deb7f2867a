# SPDX-License-Identifier: MIT OR Apache-2.0
# FAT, recorded by the probes and by the kernel's recorder. It has no holes to punch.
patterns="aio buffered bulk churn direct dropped folders mapped overlap piped rename sent sqlite subpage threads unlinked uring"
truth vfat "$patterns" --mkfs "-F 32"
load
truth vfat "buffered churn direct dropped mapped rename sqlite" --mkfs "-F 32" --record "--entries kernel --source blktrace"
unload
