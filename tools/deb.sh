#!/bin/bash
# Builds the Debian package of debian/ into build/deb, in a temporary system
# without network, and checks it with lintian:
#
#   tools/deb.sh [-t] [SUITE]
#
# -t  then runs t/deb.t, in a temporary system with the distribution's nginx
#
# SUITE is a Debian suite such as bookworm, by default the machine's own.

set -eu

. "$(dirname "$0")/common.sh"

out=$BUILD/deb
package=libnginx-mod-http-mcp-tasks


# in the system to build in
inside() {
    local src=$DEB_ROOT/build/src id
    mkdir -p "$src"

    (cd "$ROOT" && tar -cf - debian config config.make console src conf docs \
                       examples README.md CHANGELOG.md LICENSE) \
        | tar -C "$src" --no-same-owner -xf -

    # packages for several suites must not be taken for one another
    # shellcheck disable=SC2153 # it is set there
    id=$(. "$DEB_ROOT/etc/os-release" && echo "$VERSION_ID")
    sed -i "1s/)/~deb$id)/" "$src/debian/changelog"
    rm -f "$out"/*~deb"${id}"_*.deb

    if ! chroot "$DEB_ROOT" sh -c \
        'cd /build/src && dpkg-buildpackage -b -us -uc' > "$out/build.log" 2>&1
    then
        tail -n 20 "$out/build.log" >&2
        die "the build failed: see ${out#"$ROOT/"}/build.log"
    fi

    say "lintian"
    chroot "$DEB_ROOT" sh -c 'cd /build && lintian --allow-root --info \
        --fail-on error,warning ./*.changes'

    cp "$DEB_ROOT"/build/*.deb "$out/"
    (cd "$DEB_ROOT/build" && ls "${package}_"*.deb) > "$out/built"
}


if [ "${1-}" = --inside ]; then
    inside
    exit
fi

test=

if [ "${1-}" = -t ]; then
    test=yes
    shift
fi

suite=${1:-$(. /etc/os-release && echo "${VERSION_CODENAME-}")}

mkdir -p "$out"
say "building $package for $suite"
"$TOOLS/deb-root.sh" "$suite" build \
    build-essential,libjansson-dev,libsqlite3-dev,lintian,nginx-dev \
    "$0" --inside

deb=$out/$(cat "$out/built")
say "built ${deb#"$ROOT/"}"

if [ -n "$test" ]; then
    TESTS=t/deb.t MCP_TASKS_DEB=$deb "$TOOLS/deb-root.sh" "$suite" test \
        curl,libjansson4,libsqlite3-0,nginx,python3 "$TOOLS/test.sh" "$BUILD"
fi
