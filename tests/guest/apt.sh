# SPDX-License-Identifier: MIT OR Apache-2.0
# To be sourced: functions for a private apt state in the folder $apt, for the architecture $arch, by default amd64. The
# system's sources are not changed, and may be of another suite; packages that are installed on the system do not count.
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
arch=${arch:-amd64}
: "${apt:?}"

# private TOOL ARGUMENT…: runs a tool of apt with the private state.
private() {
	tool=$1
	shift
	"$tool" -qq -o Dir::State="$apt" -o Dir::Cache="$apt/cache" -o Dir::Etc::SourceList="$apt/sources.list" \
		-o Dir::State::status="$apt/status" -o Dir::Etc::SourceParts=/dev/null -o Acquire::Languages=none \
		-o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User="$(id -un)" "$@"
}

# mirrors SUITE: prints the mirrors that the system's own sources name for its suites; they carry the other suites too.
mirrors() {
	label=Debian
	case $1 in *-security) label=Debian-Security ;; esac
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk -v l="$label" '$1 == l && !seen[$2]++ { print $2 }'
}

# add_suite SUITE: adds the suite from the first mirror that has it.
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

# update SUITE…: fetches the suites' package lists, unless they are at most a week old or there is no network.
update() {
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	[ -z "$(find "$apt/updated" -mtime -7 2>/dev/null)" ] || return 0
	: >"$apt/found"
	for each in "$@"; do
		add_suite "$each" && continue
		# The lists from an earlier update are used.
		[ ! -e "$apt/updated" ] || return 0
		echo "apt: $each could not be had from the system's sources:" >&2
		cat "$apt/errors" >&2
		return 1
	done
	mv "$apt/found" "$apt/sources.list"
	touch "$apt/updated"
}
