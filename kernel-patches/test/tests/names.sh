# SPDX-License-Identifier: MIT OR Apache-2.0
# Names of up to 255 bytes are kept if they are asked for; otherwise the entry says that there is one.
fresh_ext4 64 -b 4096
load dev="$(basename "$loop")"
put "temp,[k]?eep*" names
long=$(printf '%0251d' 1)
record_start names.stream
for name in "$long.tmp" "$long.txt" kXeep other; do echo x >"$mnt/$name"; done
sync
record_stop
check_nothing_lost
for name in "$long.tmp" kXeep; do grep -q "$name" names.stream || fail "$name not kept"; done
for name in "$long.txt" other; do ! grep -q "$name" names.stream || fail "$name was not asked for"; done
remove
unload
check_kernel
