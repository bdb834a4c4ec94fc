#!/bin/bash
# Installs the module into nginx's modules directory:
# tools/install.sh [DESTDIR]

set -eu

. "$(dirname "$0")/common.sh"

"$TOOLS/dist-nginx.sh" -n

dir=$("$DIST_NGINX" -V 2>&1 \
      | sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p')

[ -n "$dir" ] || die "nginx -V shows no modules path"

install -D -m 644 "$BUILD/$MODULE_NAME.so" "${1-}$dir/$MODULE_NAME.so"
echo "installed ${1-}$dir/$MODULE_NAME.so"
