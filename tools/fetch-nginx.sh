#!/bin/bash
# Unpacks nginx's own sources, without the distribution's patches, into
# build/src/VERSION: tools/fetch-nginx.sh VERSION

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"

version=$1
tree=$BUILD/src/$version

if [ -e "$tree/configure" ]; then
    exit 0
fi

case $version in
1.22.1)  suite=bookworm ;;
1.26.3)  suite=trixie ;;
*)       suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}") ;;
esac

[ -n "$suite" ] || die "no suite known to have nginx $version"

download=$BUILD/src/download-$version

say "fetching the sources of nginx $version"

# apt checks the archive's signature and each file's digest
apt_fetch "$suite" "$download" source --download-only "nginx/$suite"

archive=("$download/nginx_$version.orig.tar."*[!c])
[ -e "${archive[0]}" ] || die "$suite has no nginx $version"

rm -rf "$tree" "$tree.part"
mkdir "$tree.part"
tar -C "$tree.part" --strip-components=1 -xf "${archive[0]}"
mv "$tree.part" "$tree"
rm -r "$download"
