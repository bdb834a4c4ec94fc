#!/bin/bash
# Unpacks nginx's own sources, without the distribution's patches, into
# build/src/VERSION:
#
#   tools/fetch-nginx.sh VERSION
#   tools/fetch-nginx.sh -n
#
# -n  the newest version in Debian's suites; prints it, followed by newer
#     versions that are listed but cannot be fetched

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"

# where a newer version than that of the machine's own suite may be
newest_suites=(sid experimental)


# The versions of nginx in a suite, without Debian's revision.
suite_versions() {
    apt_ready "$1"
    apt_private "$1" apt-cache showsrc nginx 2> /dev/null \
        | sed -n 's/^Version: \(.*\)-[^-]*$/\1/p'
}


suite_of() {
    local suite
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")

    case $1 in
    1.22.1)  echo bookworm; return ;;
    1.26.3)  echo trixie; return ;;
    esac

    for suite in $suite "${newest_suites[@]}"; do
        if suite_versions "$suite" | grep -Fxq "$1"; then
            echo "$suite"
            return
        fi
    done
}


fetch() {
    local version=$1 tree=$BUILD/src/$1 suite download archive

    # a clone of nginx's repository has no ./configure
    if [ -e "$tree/src/core/nginx.h" ]; then
        return
    fi

    suite=$(suite_of "$version" | tail -n 1)
    [ -n "$suite" ] || die "no Debian suite is known to contain nginx $version"

    download=$BUILD/src/download-$version
    rm -rf "$download"

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
}


# A mirror may list a source package that it does not have.
fetch_newest() {
    local suite versions version missed=()

    for suite in trixie "${newest_suites[@]}"; do
        apt_ready "$suite" >&2
    done

    versions=$(for suite in trixie "${newest_suites[@]}"; do
                   suite_versions "$suite"
               done | sort -rVu)

    for version in $versions; do
        if "$0" "$version" >&2; then
            echo "$version" "${missed[@]}"
            return
        fi

        missed+=("$version")
    done

    die "no Debian suite contains the sources of nginx"
}


case ${1-} in
-n)  fetch_newest ;;
*)   fetch "$1" ;;
esac
