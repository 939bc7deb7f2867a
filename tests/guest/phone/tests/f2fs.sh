# SPDX-License-Identifier: MIT OR Apache-2.0
# Records SQLite on f2fs with the recorder built without the analyser. The bundles go to the host.
fresh_f2fs 128
keep_every_source

# The module reports everything without BTF and without BPF.
load
keep_sqlite kernel --source tracefs --entries kernel
unload
check_kernel
