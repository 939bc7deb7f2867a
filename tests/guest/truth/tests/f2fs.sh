# SPDX-License-Identifier: MIT OR Apache-2.0
# f2fs, recorded by the probes and by the kernel's recorder.
patterns="aio buffered bulk churn direct dropped folders mapped overlap piped rename resize sent sqlite subpage threads truncated
	unlinked uring"
truth f2fs "$patterns"
load
truth f2fs "buffered churn direct dropped mapped rename sqlite truncated" --record "--entries kernel --source blktrace"
unload
