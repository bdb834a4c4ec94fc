#!/bin/bash
# Lays out the nchan module that belongs to the distribution's nginx, as
# build/dist/nchan.so, for the benchmark that compares it with ours.
#
# It creates the directory /var/lib/nginx/body whenever nginx starts, gives it
# to the user that nginx runs as, and its directive for another place is out
# of order ("is duplicate").  That would touch the system, or fail, so our copy
# has a name of the same length there, below nginx's prefix.

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
