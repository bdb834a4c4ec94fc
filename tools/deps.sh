#!/bin/bash
# Installs missing Debian packages, and fetches other dependencies into build/:
# tools/deps.sh [build] [builds] [run] [check] [test] [interop] [bench]
# [instructions] [deb]

set -eu

. "$(dirname "$0")/common.sh"

packages=()

for purpose in "$@"; do
    case $purpose in

    build)
        packages+=(gcc libc6-dev libhiredis-dev libjansson-dev libpcre2-dev
                   libsqlite3-dev libssl-dev make pkg-config zlib1g-dev)
        ;;

    builds)
        # the other compiler; what was built is asked with curl
        packages+=(clang curl)
        ;;

    run)
        # the demo worker, and what the hints are written for
        packages+=(curl)
        command -v python3 > /dev/null || packages+=(python3)
        ;;

    check)
        packages+=(cppcheck shellcheck)
        command -v python3 > /dev/null || packages+=(python3)
        ;;

    test)
        # prove comes with perl, Test::Nginx runs ps, event streams and the
        # console are tried in a browser; the rest is for the examples, and
        # need not come from Debian
        packages+=(chromium curl jq openssl perl procps sqlite3 strace)
        command -v redis-server > /dev/null || packages+=(redis-tools)
        command -v node > /dev/null || packages+=(nodejs)
        command -v npm > /dev/null || packages+=(npm)
        command -v python3 > /dev/null || packages+=(python3)

        # answers are held against docs/openapi.yaml
        python3 -c 'import jsonschema, yaml' 2> /dev/null \
            || packages+=(python3-jsonschema python3-yaml)
        ;;

    interop)
        # it brings a Node of its own, npm just has to start
        command -v npm > /dev/null || packages+=(npm)
        ;;

    bench)
        # h2load is in the second
        packages+=(wrk nghttp2-client)
        command -v python3 > /dev/null || packages+=(python3)
        ;;

    instructions)
        packages+=(valgrind)
        command -v python3 > /dev/null || packages+=(python3)
        ;;

    deb)
        # everything else goes into a system of its own
        packages+=(debian-archive-keyring mmdebstrap)
        [ "$(id -u)" -eq 0 ] || packages+=(uidmap)
        ;;

    *)
        die "unknown purpose \"$purpose\""
        ;;
    esac
done

missing=()

for package in "${packages[@]}"; do
    # what another package provides counts: pkg-config is pkgconf elsewhere
    if ! dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' \
        | grep -Eq "^installed ([^ ]+ )?(.*, )?$package([ ,:]|\$)"
    then
        missing+=("$package")
    fi
done

if [ ${#missing[@]} -gt 0 ]; then
    as_root=()

    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo > /dev/null \
            || die "missing: ${missing[*]}: run as root, or install sudo"
        as_root=(sudo)
    fi

    say "installing ${missing[*]}"
    "${as_root[@]}" apt-get -qq update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends \
        install "${missing[@]}"
fi

for purpose in "$@"; do
    case $purpose in

    build)
        "$TOOLS/dist-nginx.sh"
        ;;

    test)
        "$TOOLS/fetch-test-nginx.sh"
        "$TOOLS/dist-promtool.sh"
        "$TOOLS/dist-redis.sh"
        "$TOOLS/fetch-playwright.sh"
        "$TOOLS/fetch-schema-suite.sh"

        # unit tests compile parts of nginx, and nginx-dev has only headers
        version=$(binary_version "$DIST_NGINX")
        "$TOOLS/fetch-nginx.sh" "$version"
        ln -sfn "../src/$version" "$BUILD/dist/orig"
        ;;

    bench)
        "$TOOLS/dist-nchan.sh"
        ;;
    esac
done
