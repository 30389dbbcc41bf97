#!/usr/bin/env bash
# build.sh TOOL builds the tool that test/tools/TOOL/go.mod pins, unless the cache has it, and prints the path of the
# program. The cache is keyed by the versions of the tool and of Go: a tool that reads Go code must be built by the Go
# that the code needs. A shell program, because it runs for every make target and must cost nothing when warm.
set -euo pipefail

tool=$1
module="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$tool"

# The package is in go.mod's tool directive; the module that holds it is the longest required path that begins it.
read -r package version < <(awk '
	$1 == "tool" { package = $2 }
	{ sub(/^require /, ""); sub(/^[ \t]+/, "") }
	$2 ~ /^v[0-9]/ { versions[$1] = $2 }
	END {
		for (path in versions)
			if (index(package "/", path "/") == 1 && length(path) > length(longest)) longest = path
		print package, versions[longest]
	}' "$module/go.mod")

goversion=$(go env GOVERSION)
folder="${TIDELINE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tideline}/bin/$tool-$version-$goversion-$(go env GOOS)-$(go env GOARCH)"
program="$folder/$tool"

if [[ ! -x $program ]]; then
	mkdir -p "$folder"
	unfinished=$(mktemp "$folder/.unfinished.XXXXXX")
	trap 'rm -f "$unfinished"' EXIT
	echo "building $tool $version ..." >&2
	began=$SECONDS
	go -C "$module" build -trimpath -buildvcs=false -ldflags='-s -w' -o "$unfinished" "$package" >&2
	# Renamed when whole, so that two builds at the same time never hand out half a program.
	chmod 755 "$unfinished"
	mv "$unfinished" "$program"
	echo "built $tool $version in $((SECONDS - began)) s" >&2
fi
echo "$program"
