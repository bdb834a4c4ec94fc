#!/bin/bash
# Fetches playwright-core, which drives the browser in tests of the console,
# into build/dist/playwright: with npm, in the version that
# t/browser/package-lock.json pins.  The browser is the distribution's.

set -eu

. "$(dirname "$0")/common.sh"

from=$ROOT/t/browser
dir=$BUILD/dist/playwright

if ! cmp -s "$from/package-lock.json" "$dir/.lock"; then
    say "installing the packages of t/browser/package-lock.json"
    rm -rf "$dir"
    mkdir -p "$dir"
    cp "$from/package.json" "$from/package-lock.json" "$dir/"
    npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund \
        --loglevel=error
    cp "$from/package-lock.json" "$dir/.lock"
fi
