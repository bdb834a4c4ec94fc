#!/bin/sh
# Makes one page of console.html and of the styles and scripts that it names,
# and of the page a C source: console/embed.sh OUTPUT
#
# Run by nginx's build (see config.make), so it needs no more than a system
# that can compile nginx has: sh, awk, od, sed, sha256sum.

set -eu
export LC_ALL=C

dir=$(dirname "$0")
out=$1

fail() {
    echo "$0: $*" >&2
    exit 1
}


# parts PATTERN: the files that lines of the page name, in their order.
parts() {
    sed -n "s,^ *<$1=\"\([a-z_]*\.[a-z]*\)\">.*,$dir/\1,p" "$dir/console.html"
}


# join OUTPUT FILE...: these must not end the element that they go into.
join() {
    joined=$1
    shift
    cat "$@" > "$joined"

    if grep -Ein '</(script|style)|<!--' "$joined"; then
        fail "the text contains a tag that would end the script or style"
    fi
}


# As a source of a Content-Security-Policy: in base64.
hash() {
    sha256sum "$1" | awk '{
        for (i = 1; i <= 64; i++) {
            digit = index("0123456789abcdef", substr($1, i, 1)) - 1
            value = value * 16 + digit

            if (i % 3 == 0) {
                text = text char(int(value / 64)) char(value % 64)
                value = 0
            }
        }

        # the last digit is left, and gets two bits more
        printf "sha256-%s%s=\n", text, char(value * 4)
    }

    function char(n) {
        return substr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" \
                      "0123456789+/", n + 1, 1)
    }'
}


mkdir -p "$(dirname "$out")"
trap 'rm -f "$out".css "$out".js "$out".html "$out".new' EXIT

# shellcheck disable=SC2046 # names without spaces
join "$out.css" $(parts 'link rel="stylesheet" href')
# shellcheck disable=SC2046
join "$out.js" $(parts 'script src')

# Exactly these bytes are between the tags, or the hashes would not fit.
awk -v css="$out.css" -v js="$out.js" '
    function put(file, name,    line) {
        printf "<%s>", name
        while ((getline line < file) > 0) {
            print line
        }
        printf "</%s>\n", substr(name, 1, index(name " ", " ") - 1)
    }

    /^ *<link rel="stylesheet"/ { put(css, "style"); next }
    /^ *<script src=/ { if (!n++) put(js, "script type=\"module\""); next }
    { print }
' "$dir/console.html" > "$out.html"

csp="default-src 'none'; script-src '$(hash "$out.js")'"
csp="$csp; style-src '$(hash "$out.css")'; connect-src 'self'"
csp="$csp; img-src data:; base-uri 'none'; form-action 'none'"
csp="$csp; frame-ancestors 'none'"
csp="$csp; require-trusted-types-for 'script'; trusted-types 'none'"

{
    cat << END
/* Made by console/embed.sh of the files beside it. */


#include "ngx_mcp_console.h"


static const u_char  ngx_mcp_console_bytes[] = {
END
    od -An -v -tx1 "$out.html" | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
    cat << END
};


ngx_str_t  ngx_mcp_console_page = {
    sizeof(ngx_mcp_console_bytes),
    (u_char *) ngx_mcp_console_bytes
};


ngx_str_t  ngx_mcp_console_csp = ngx_string(
    "$csp");
END
} > "$out.new"

mv "$out.new" "$out"
