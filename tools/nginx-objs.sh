# shellcheck shell=bash
# Sourced: configures a source tree for an objects directory outside of it, and
# builds there.  Several objects directories may share one tree.


# nginx_configure TREE OBJS ARGUMENT...: again only if something changed.
nginx_configure() {
    local tree=$1 objs=$2 configure=./configure stamp
    shift 2

    # a clone of nginx's repository keeps it elsewhere than a release does
    [ -e "$tree/configure" ] || configure=auto/configure

    stamp="$tree $* NGX_MCP_TASKS_TEST=${NGX_MCP_TASKS_TEST-}
        NGX_MCP_TASKS_SQLITE=${NGX_MCP_TASKS_SQLITE-}
        NGX_MCP_TASKS_REDIS=${NGX_MCP_TASKS_REDIS-} $(
        cksum "$ROOT/config" "$ROOT/config.make" "$ROOT/src/sources" \
              "$tree/src/core/nginx.h")"

    if [ -e "$objs/Makefile" ] \
       && [ "$(cat "$objs/configured" 2> /dev/null)" = "$stamp" ]
    then
        return
    fi

    say "configuring nginx $(tree_version "$tree") in ${objs#"$ROOT/"}"
    rm -rf "$objs"
    mkdir -p "$objs"

    if ! (cd "$tree" && "$configure" --builddir="$objs" "$@") \
        > "$objs.log" 2>&1
    then
        tail -n 20 "$objs.log" >&2
        die "configure failed: see ${objs#"$ROOT/"}.log"
    fi

    mv "$objs.log" "$objs/configure.log"
    echo "$stamp" > "$objs/configured"
}


# nginx_make TREE OBJS TARGET
nginx_make() {
    # MAKEFLAGS: the caller may be make, with options that are not for nginx
    MAKEFLAGS='' make --no-print-directory -s -C "$1" -f "$2/Makefile" \
        -j "$JOBS" "$3"
}
