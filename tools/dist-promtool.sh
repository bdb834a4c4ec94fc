#!/bin/bash
# Provides promtool, which validates the metrics and alerts, as
# build/dist/promtool: the installed one, or the one from the package
# prometheus, which is unpacked and not installed.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"

unpacked=$BUILD/dist/prometheus
link=$BUILD/dist/promtool

if [ -x "$link" ]; then
    exit 0
fi

if command -v promtool > /dev/null; then
    promtool=$(command -v promtool)
else
    apt_unpack own "$unpacked" prometheus

    # all else is large, and nobody needs it
    promtool=$BUILD/dist/promtool.bin
    mv "$unpacked/usr/bin/promtool" "$promtool"
    rm -r "$unpacked"
fi

ln -sfn "$promtool" "$link"
