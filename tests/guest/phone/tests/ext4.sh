# SPDX-License-Identifier: MIT OR Apache-2.0
# Records SQLite on ext4 with the recorder built without the analyser. The bundles go to the host.
# A phone has no e2image: the recorder finds the metadata itself.
rm /usr/local/bin/e2image
fresh_ext4 128 -b 4096
keep_every_source

# The module reports everything without BTF and without BPF.
load
keep_sqlite kernel --source tracefs --entries kernel
unload
check_kernel
