#!/bin/bash
# Compares the module's performance with nginx itself, with nchan, and with
# servers made with the TypeScript SDK: see docs/performance.md.  QUICK=1 is a
# short run; ONLY is a list of measures.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/interop-env.sh"

out=$BUILD/bench
module=$BUILD/$MODULE_NAME.so

# nginx would take a variable of this name for sockets to inherit
unset NGINX

if [[ ,${ONLY:-fanout}, = *,fanout,* ]]; then
    say "event streams"
    status=0
    JSON=$out/fanout.json ROUNDS=${ROUNDS:-2} python3 "$ROOT/bench/fanout.py" \
        "$DIST_NGINX" "$module" "$BUILD/dist/nchan.so" "$out/bin/fanout" \
        "$out/fanout" > "$out/fanout.txt" || status=$?

    # 1: something does not hold, which is told again in the table
    [ "$status" -le 1 ] || exit "$status"
fi

say "requests"
exec python3 "$ROOT/bench/performance.py" "$DIST_NGINX" "$module" \
    "$BUILD/test/$MODULE_NAME.so" "$out/fanout.json" "$INTEROP_NODE/node" \
    "$INTEROP/sdk-tasks.mjs" "$out/performance"
