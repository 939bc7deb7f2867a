# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on f2fs by the recorder without the analyser: the bundles go to the host.
fresh_f2fs 128
keep_every_source

# The module tells all of it without BTF and without BPF.
load
keep_sqlite kernel --source ftrace --entries kernel
unload
check_kernel
