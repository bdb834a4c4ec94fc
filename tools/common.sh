# shellcheck shell=bash
# Sourced by every script here: paths and messages.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$ROOT/build
TOOLS=$ROOT/tools
MODULE_NAME=ngx_http_mcp_tasks_module
JOBS=$(nproc)

# The distribution's nginx, as tools/dist-nginx.sh lays it out.
DIST_NGINX=$BUILD/dist/nginx
DIST_TREE=$BUILD/dist/src

export ROOT BUILD TOOLS MODULE_NAME JOBS DIST_NGINX DIST_TREE

# Messages must not depend on the user's language: some are parsed.
export LC_ALL=C.UTF-8


say() {
    echo "== $*"
}


die() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}


# The version in a source tree's own header, such as 1.22.1.
tree_version() {
    sed -n 's/^#define NGINX_VERSION *"\(.*\)"$/\1/p' "$1/src/core/nginx.h"
}


binary_version() {
    "$1" -v 2>&1 | sed -n 's,^nginx version: nginx/\([0-9.]*\).*,\1,p'
}
