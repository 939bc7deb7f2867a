#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: check.sh OUT        what the guest left, held against the truth
exec python3 "$(dirname "$0")/compare.py" "${MOSTRACE:-mostrace}" "$1"
