#!/bin/bash
# How fast the module is, beside nginx itself, nchan, and servers made with the
# TypeScript SDK: see docs/performance.md.  QUICK=1 is a short look, ONLY a list
# of what to measure.

set -u

. "$(dirname "$0")/common.sh"
. "$TOOLS/interop-env.sh"

out=$BUILD/bench
fanout=$out/fanout.json

# nginx would take a variable of this name for sockets to inherit
unset NGINX

# what does not hold there is told again below
case ,${ONLY:-fanout}, in
*,fanout,*)
    say "event streams, beside nchan"
    JSON=$fanout ROUNDS=${ROUNDS:-2} "$ROOT/bench/fanout.py" "$DIST_NGINX" \
        "$BUILD/$MODULE_NAME.so" "$BUILD/dist/nchan.so" "$out/bin/fanout" \
        "$out/fanout" > "$out/fanout.txt"
    [ $? -le 1 ] || exit 2
    ;;
esac

say "all the rest"
exec "$ROOT/bench/performance.py" "$DIST_NGINX" "$BUILD/$MODULE_NAME.so" \
    "$BUILD/test/$MODULE_NAME.so" "$fanout" "$node/node" \
    "$tests/sdk-tasks.mjs" "$out/performance" \
    "$ROOT/docs/images/performance.svg"
