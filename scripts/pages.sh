#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Writes the man pages and the shells' completions below a prefix, for example ~/.local or debian/usr.
# usage: pages.sh MOSTRACE PREFIX
set -eu
mostrace=$1 share=$2/share

mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$mostrace" man --dir "$share/man/man1"
"$mostrace" completions bash >"$share/bash-completion/completions/mostrace"
"$mostrace" completions zsh >"$share/zsh/site-functions/_mostrace"
"$mostrace" completions fish >"$share/fish/vendor_completions.d/mostrace.fish"
