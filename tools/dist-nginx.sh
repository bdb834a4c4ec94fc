#!/bin/bash
# Provides the distribution's nginx: build/dist/nginx, the executable, and
# build/dist/src, the source tree of package nginx-dev to build modules
# against.
#
# Installed packages are used directly.  Missing ones are unpacked under build/
# and not installed, because the nginx package starts a service on port 80, and
# nginx-dev depends on about a hundred packages that are not needed here.
#
# tools/dist-nginx.sh [-n]: -n downloads nothing

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"

dist=$BUILD/dist
unpacked=$dist/root
tree=usr/share/nginx/src
offline=

if [ "${1-}" = -n ]; then
    offline=yes
fi


unpack() {
    if [ -n "$offline" ]; then
        die "$1 is missing: run \"make deps\" first," \
            "or \"make NGINX_SRC=DIR\""
    fi

    apt_unpack own "$unpacked" "$1"
}


mkdir -p "$dist"

# sbin is not in everybody's path
nginx=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx || true)

if [ -z "$nginx" ]; then
    nginx=$unpacked/usr/sbin/nginx

    if [ ! -x "$nginx" ]; then
        unpack nginx
    fi
fi

version=$(binary_version "$nginx")

[ -n "$version" ] || die "$nginx does not run"

if [ ! -e "$DIST_TREE/conf_flags" ] \
   || [ "$(tree_version "$DIST_TREE")" != "$version" ]
then
    rm -rf "$DIST_TREE"

    if [ -e "/$tree/conf_flags" ] \
       && [ "$(tree_version "/$tree")" = "$version" ]
    then
        # a copy: ./configure writes a Makefile into the tree
        cp -a "/$tree" "$DIST_TREE"

    else
        if [ ! -e "$unpacked/$tree/conf_flags" ]; then
            unpack nginx-dev
        fi

        ln -s "root/$tree" "$DIST_TREE"
    fi
fi

if [ "$(tree_version "$DIST_TREE")" != "$version" ]; then
    die "$nginx has version $version, but nginx-dev has version" \
        "$(tree_version "$DIST_TREE"): use NGINX_SRC=DIR"
fi

ln -sfn "$nginx" "$DIST_NGINX"
