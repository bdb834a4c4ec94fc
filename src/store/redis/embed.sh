#!/bin/sh
# Makes a C source of the scripts in lua/: src/store/redis/embed.sh OUTPUT
#
# Run by nginx's build (see config.make), so it needs no more than a system
# that can compile nginx has: sh, awk, od, sed.

set -eu
export LC_ALL=C

dir=$(dirname "$0")/lua
out=$1

# in the order of ngx_mcp_redis_script_e
scripts="create commit remove claim watch await attach open"


# strip FILE: without comments, indentation and empty lines.
strip() {
    sed -e 's/^ *//' -e '/^--/d' -e '/^$/d' "$1"
}


mkdir -p "$(dirname "$out")"
trap 'rm -f "$out".new' EXIT

{
    cat << END
/* Made by src/store/redis/embed.sh of the files in lua/. */


#include "ngx_mcp_redis_script.h"
END

    for name in $scripts; do
        printf '\n\nstatic const u_char  ngx_mcp_redis_text_%s[] = {\n' "$name"

        # the first line has the flags of the script
        {
            head -n 1 "$dir/$name.lua"
            strip "$dir/common.lua"
            sed 1d "$dir/$name.lua" | strip -
        } | od -An -v -tx1 | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'

        echo '};'
    done

    printf '\n\nngx_mcp_redis_script_t  ngx_mcp_redis_scripts[] = {\n'

    for name in $scripts; do
        text=ngx_mcp_redis_text_$name
        printf '    { ngx_string("%s"),\n' "$name"
        printf '      { sizeof(%s), (u_char *) %s }, "" },\n' "$text" "$text"
    done

    echo '};'
} > "$out.new"

mv "$out.new" "$out"
