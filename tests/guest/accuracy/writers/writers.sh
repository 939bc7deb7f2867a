# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: writers.sh COUNT FOLDER…
# Runs this many writers in each folder at once, each in a folder of its own.
count=$1
shift
for folder; do
	for w in $(seq "$count"); do sh "$(dirname "$0")/writer.sh" "$folder/w$w" & done
done
wait
