#!/bin/bash
# Runs all tests with several nginx versions, built from their original
# sources, and with several worker processes: VERSIONS="..." tools/matrix.sh
#
# The default is 1.22.1, 1.26.3 and the newest version in Debian's suites.

set -eu

. "$(dirname "$0")/common.sh"

failed=()

# suites that start nginx without saying how many workers honour this
export MCP_TASKS_WORKERS=4

missed=

if [ -z "${VERSIONS-}" ]; then
    newest=$("$TOOLS/fetch-nginx.sh" -n)
    read -r newest missed <<< "$newest"
    VERSIONS=$(printf '%s\n' 1.22.1 1.26.3 "$newest" | sort -Vu)
fi

# all of them first: what cannot be fetched is known before hours of tests
for version in $VERSIONS; do
    "$TOOLS/fetch-nginx.sh" "$version"
done

for version in $VERSIONS; do
    out=$BUILD/matrix/$version
    tree=$BUILD/src/$version

    "$TOOLS/build-nginx.sh" "$tree" "$out/nginx"
    "$TOOLS/build-tests.sh" -s "$tree" "$out"

    say "nginx $version, $MCP_TASKS_WORKERS workers"
    "$TOOLS/test.sh" "$out" "$out/nginx/nginx" || failed+=("$version")
done

[ ${#failed[@]} -eq 0 ] || die "failed with nginx ${failed[*]}"

# shellcheck disable=SC2086 # several
say "passed with nginx" $VERSIONS

if [ -n "$missed" ]; then
    say "not tested: nginx $missed, because the mirror lacks its sources"
fi
