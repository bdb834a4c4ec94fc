#!/bin/bash
# Unpacks the official test suite of JSON Schema into build/dist/schema-suite:
# the tests of 2020-12.  The npm package @json-schema-org/tests only refers to
# a commit on GitHub; Debian's package of Test::JSON::Schema::Acceptance
# contains the files.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"

# a released suite: the package does not change
suite=trixie
package=libtest-json-schema-acceptance-perl

dir=$BUILD/dist/schema-suite

mkdir -p "$BUILD/dist"

if [ ! -e "$dir/ref.json" ]; then
    rm -rf "$dir" "$dir.part"
    apt_unpack "$suite" "$dir.part" "$package"

    found=$(find "$dir.part" -type d -path '*/tests/draft2020-12')
    [ -n "$found" ] || die "$package has no tests of 2020-12"

    mv "$found" "$dir"
    rm -r "$dir.part"
fi
