# SPDX-License-Identifier: MIT OR Apache-2.0
# ext4, recorded by the probes and by the kernel's recorder.
patterns="buffered churn direct dropped folders handover mapped overlap rename resize sqlite subpage threads truncated unlinked"
truth ext4 "$patterns"
load
truth ext4 "$patterns" --record "--entries kernel --source blktrace"
unload
