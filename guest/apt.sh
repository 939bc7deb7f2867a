# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced: an apt of its own in the folder $apt, for the architecture $arch, by default amd64. The system's sources stay as they are, and may be of another suite;
# what the system has installed does not count.
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
arch=${arch:-amd64}

# private TOOL ARGUMENT…
private() {
	tool=$1
	shift
	"$tool" -qq -o Dir::State="$apt" -o Dir::Cache="$apt/cache" -o Dir::Etc::SourceList="$apt/sources.list" \
		-o Dir::State::status="$apt/status" -o Dir::Etc::SourceParts=/dev/null -o Acquire::Languages=none \
		-o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User="$(id -un)" "$@"
}

# mirrors SUITE: those that the system's own sources name for its own suites; they have the others beside them.
mirrors() {
	label=Debian
	case $1 in *-security) label=Debian-Security ;; esac
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk -v l="$label" '$1 == l && !seen[$2]++ { print $2 }'
}

# add_suite SUITE: from the first mirror that has it.
add_suite() {
	echo "apt: the system's sources name no mirror for $1 (/etc/apt; after apt-get update)" >"$apt/errors"
	for mirror in $(mirrors "$1"); do
		echo "deb [signed-by=$keyring] $mirror $1 main" | cat "$apt/found" - >"$apt/trying"
		if private apt-get update -o Dir::Etc::SourceList="$apt/trying" -o APT::Update::Error-Mode=any \
			2>"$apt/errors"; then
			mv "$apt/trying" "$apt/found"
			return 0
		fi
	done
	return 1
}

# update SUITE…: their lists, a week old at most where the network is there.
update() {
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	[ -z "$(find "$apt/updated" -mtime -7 2>/dev/null)" ] || return 0
	: >"$apt/found"
	for each in "$@"; do
		add_suite "$each" && continue
		# Kept from an earlier time.
		[ ! -e "$apt/updated" ] || return 0
		echo "apt: $each could not be had from the system's sources:" >&2
		cat "$apt/errors" >&2
		return 1
	done
	mv "$apt/found" "$apt/sources.list"
	touch "$apt/updated"
}
