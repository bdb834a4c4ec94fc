#!/bin/bash
# Builds the Debian package of debian/ into build/deb, in a throw-away system
# of that suite and without network, and asks lintian what it thinks of it:
#
#   tools/deb.sh SUITE
#
# Prints the package's name as its last line.

set -eu

. "$(dirname "$0")/common.sh"

# --inside: see below
if [ "$1" = --inside ]; then
    src=$DEB_ROOT/build/src
    mkdir -p "$src"

    (cd "$ROOT" && tar -cf - debian config src conf docs examples \
                       README.md CHANGELOG.md LICENSE) \
        | tar -C "$src" --no-same-owner -xf -

    # packages of several suites must not be mistaken for each other
    id=$(. "$DEB_ROOT/etc/os-release" && echo "$VERSION_ID")
    sed -i "1s/)/~deb$id)/" "$src/debian/changelog"

    if ! chroot "$DEB_ROOT" sh -ec '
        export DEB_BUILD_OPTIONS=terse
        cd /build/src
        dpkg-buildpackage -b -us -uc' > "$BUILD/deb/build.log" 2>&1
    then
        tail -n 20 "$BUILD/deb/build.log" >&2
        die "the build failed: see build/deb/build.log"
    fi

    say "lintian"
    chroot "$DEB_ROOT" sh -c 'cd /build && lintian --fail-on error,warning \
        --allow-root --info *.changes'

    cp "$DEB_ROOT"/build/*.deb "$BUILD/deb/"
    exit
fi

suite=$1
package=libnginx-mod-http-mcp-tasks

mkdir -p "$BUILD/deb"
rm -f "$BUILD"/deb/*.deb

say "building $package for $suite"
"$TOOLS/deb-root.sh" "$suite" build \
    build-essential,libjansson-dev,lintian,nginx-dev "$0" --inside

ls "$BUILD/deb/${package}_"*.deb
