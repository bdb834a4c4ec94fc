#!/bin/bash
# Builds nginx itself, without the module, as OBJS/nginx, for builds that
# cannot use the distribution's executable:
#
#   tools/build-nginx.sh [-c CFLAGS] [-l LDFLAGS] TREE OBJS

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/nginx-objs.sh"

cflags='-g -O1'
ldflags=

while getopts c:l: option; do
    case $option in
    c)  cflags=$OPTARG ;;
    l)  ldflags=$OPTARG ;;
    *)  exit 2 ;;
    esac
done

shift $((OPTIND - 1))

nginx_configure "$1" "$2" --with-compat --with-debug --with-threads \
    --with-http_ssl_module --with-http_v2_module \
    --with-http_auth_request_module --with-http_realip_module \
    --with-http_stub_status_module --with-http_slice_module \
    --with-poll_module --with-select_module \
    --with-cc-opt="$cflags" --with-ld-opt="$ldflags"

nginx_make "$1" "$2" binary
