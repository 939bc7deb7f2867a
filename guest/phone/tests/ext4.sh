# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on ext4 by the recorder without the analyser: the bundles go to the host.
# A phone has none: the recorder finds the metadata itself.
rm /usr/local/bin/e2image
fresh_ext4 128 -b 4096
keep_every_source

# The module tells all of it without BTF and without BPF.
load
keep_sqlite kernel --source ftrace --entries kernel
unload
check_kernel
