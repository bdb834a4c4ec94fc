#!/bin/bash
# Builds the module as OBJS/ngx_http_mcp_tasks_module.so:
#
#   tools/build-module.sh [-t] [-s TREE] [-c CFLAGS] [-l LDFLAGS] OBJS
#
# -t  with failpoints and probes, for the test suite
# -s  against a source tree other than that of the distribution's nginx
# -c  compiler options to use in place of the distribution's
# -l  linker options to use in place of the distribution's

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/nginx-objs.sh"

tree=
cflags='-g -O2 -fstack-protector-strong -Wformat -Werror=format-security'
cflags+=' -D_FORTIFY_SOURCE=2'
ldflags='-Wl,-z,relro -Wl,-z,now'

# not from the environment by accident
export NGX_MCP_TASKS_TEST=

while getopts ts:c:l: option; do
    case $option in
    t)  NGX_MCP_TASKS_TEST=YES ;;
    s)  tree=$OPTARG ;;
    c)  cflags=$OPTARG ;;
    l)  ldflags=$OPTARG ;;
    *)  exit 2 ;;
    esac
done

shift $((OPTIND - 1))
objs=$1
so=$objs/$MODULE_NAME.so


if [ -z "$tree" ]; then
    "$TOOLS/dist-nginx.sh" -n
    tree=$DIST_TREE

    # NGX_CONF_FLAGS, the distribution's own: a module is compatible only if
    # some of these are the same, --with-compat among them
    . "$tree/conf_flags"

else
    # the user's tree is left as it is, and ours lacks nothing
    case $tree in
    "$BUILD"/*)
        ;;
    *)
        [ -e "$tree/src/core/nginx.h" ] \
            || die "$tree is not an nginx source tree"
        copy=$BUILD/src/copy-$(realpath "$tree" | cksum | cut -d ' ' -f 1)
        mkdir -p "$copy"
        (cd "$tree" && tar -cf - --exclude=./objs --exclude=./.git .) \
            | tar -C "$copy" -xf -
        tree=$copy
        ;;
    esac

    NGX_CONF_FLAGS=(--with-compat --with-debug --with-http_ssl_module
                    --with-http_v2_module --with-threads)
fi

nginx_configure "$tree" "$objs" "${NGX_CONF_FLAGS[@]}" \
    --with-cc-opt="$cflags" --with-ld-opt="$ldflags" \
    --add-dynamic-module="$ROOT"

# nginx knows only those headers that "config" lists, so for any other the
# objects would be stale
if [ -n "$(find "$ROOT/src" -name '*.h' -newer "$objs/$MODULE_NAME.so" \
           2> /dev/null)" ]
then
    rm -rf "${objs:?}/addon"/*/*.o
fi

nginx_make "$tree" "$objs" modules

[ -e "$so" ] || die "$so was not built"
