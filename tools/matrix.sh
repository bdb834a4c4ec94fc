#!/bin/bash
# Runs all tests with nginx versions built from their own sources, and with
# several workers: VERSIONS="..." tools/matrix.sh

set -eu

. "$(dirname "$0")/common.sh"

failed=()

# suites that start nginx without saying how many workers honour this
export MCP_TASKS_WORKERS=4

for version in ${VERSIONS:-1.22.1 1.26.3}; do
    out=$BUILD/matrix/$version
    tree=$BUILD/src/$version

    "$TOOLS/fetch-nginx.sh" "$version"
    "$TOOLS/build-nginx.sh" "$tree" "$out/nginx"
    "$TOOLS/build-tests.sh" -s "$tree" "$out"

    say "nginx $version, $MCP_TASKS_WORKERS workers"
    "$TOOLS/test.sh" "$out" "$out/nginx/nginx" || failed+=("$version")
done

[ ${#failed[@]} -eq 0 ] || die "failed with nginx ${failed[*]}"
