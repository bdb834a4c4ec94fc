#!/bin/bash
# Unpacks the nchan module for the distribution's nginx as build/dist/nchan.so,
# for the benchmarks that compare it with this module.
#
# nchan creates the directory /var/lib/nginx/body whenever nginx starts, and
# changes its owner to the user that nginx runs as.  Its directive for another
# directory does not work ("is duplicate").  That would change the system, or
# fail, so the path in this copy is replaced by one of the same length below
# nginx's prefix.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"

file=usr/lib/nginx/modules/ngx_nchan_module.so
unpacked=$BUILD/dist/root
copy=$BUILD/dist/nchan.so
version=$(binary_version "$DIST_NGINX")

# it fits only the nginx that it was made for
if [ -e "$copy" ] && [ "$(cat "$copy.for")" = "$version" ]; then
    exit 0
fi

if [ -e "/$file" ]; then
    module=/$file
else
    apt_unpack own "$unpacked" libnginx-mod-nchan
    module=$unpacked/$file
fi

LC_ALL=C sed 's,/var/lib/nginx/body,./nchan_client_body,g' "$module" > "$copy"
echo "$version" > "$copy.for"
