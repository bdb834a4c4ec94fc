#!/bin/bash
# Installs third-party MCP clients, if missing, and runs them against the
# distribution's nginx with the module: see t/interop/README.md.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/interop-env.sh"

export PATH=$INTEROP_NODE:$PATH

# nginx would take a variable of this name for sockets to inherit
unset NGINX

exec node "$INTEROP/run.mjs" "$DIST_NGINX" "$BUILD/$MODULE_NAME.so" \
    "$BUILD/interop"
