# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on ext4 by the recorder without the analyser: the bundles go to the host.
fresh_ext4 128 -b 4096
keep_every_source
