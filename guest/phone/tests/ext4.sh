# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on ext4 by the recorder without the analyser: the bundles go to the host.
# A phone has none: the recorder finds the metadata itself.
rm /usr/local/bin/e2image
fresh_ext4 128 -b 4096
keep_every_source
