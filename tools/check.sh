#!/bin/bash
# Runs static analysis and style checks.  Runs all of them before it fails.

set -eu

. "$(dirname "$0")/common.sh"

cd "$ROOT"
shopt -s nullglob

# complain() sets the status at the end of a pipe
shopt -s lastpipe

status=0

folders=(src src/*/ src/*/*/)
sources=(src/*.c src/*/*.c src/*/*/*.c)
code=("${sources[@]}" src/*.h src/*/*.h src/*/*/*.h
      t/unit/*.[ch] t/lib/*.c tools/*.c bench/*.c)
scripts=(tools/*.sh console/*.sh src/*/*/*.sh examples/*.sh .ci/run)
lua=(src/*/*/lua/*.lua)
page=(console/*.html console/*.css console/*.js t/browser/*.mjs)
texts=("${code[@]}" "${scripts[@]}" "${lua[@]}" "${page[@]}" config config.make
       Makefile)

warnings=(
    -Wall -Wextra -Wno-unused-parameter -Werror
    -Wcast-align -Wduplicated-branches -Wduplicated-cond -Wformat=2
    -Wimplicit-fallthrough -Winit-self -Wjump-misses-init -Wlogical-op
    -Wmissing-declarations -Wmissing-prototypes -Wnested-externs
    -Wold-style-definition -Wpointer-arith -Wredundant-decls -Wshadow
    -Wstrict-prototypes -Wvla
)


# complain MESSAGE: shows what grep found, if anything
complain() {
    local found
    found=$(cat)

    if [ -n "$found" ]; then
        echo "$found"
        echo "$1" >&2
        status=1
    fi
}


# A system header before nginx's: ngx_config.h sets the size of off_t and what
# is declared at all, so that files would not agree on their types.
system_first() {
    awk 'FNR == 1 { early = "" }
         /^#include [<"](ngx_|lib)/ && early { print early; early = "" }
         /^#include [<"](ngx_|lib)/ { nextfile }
         /^#include </ && !early { early = FILENAME ":" FNR ":" $0 }' "$@"
}


# The production build and the test build see different code.  Optimized, as
# some warnings need the flow to be analysed.
for objs in "$BUILD/prod" "$BUILD/test"; do
    say "compiler warnings: $(basename "$objs")"

    includes=("${folders[@]/#/-I}" -isystem "$objs")
    for dir in core event event/modules event/quic os/unix http \
               http/modules http/v2 http/v3
    do
        includes+=(-isystem "$DIST_TREE/src/$dir")
    done

    for source in "${sources[@]}"; do
        gcc -std=gnu99 -O2 "${warnings[@]}" "${includes[@]}" \
            -c -o /dev/null "$source" || status=1
    done
done

say "layers"

tools/layers.py --self-test || status=1
tools/layers.py . "$BUILD/prod" "$BUILD/test" || status=1

say "cppcheck"

# It is not shown nginx's headers, so it cannot know what their macros expand
# to, nor that a callback's prototype is not ours to choose.
cppcheck --quiet --std=c99 --language=c --platform=unix64 -j "$JOBS" \
    --enable=warning,performance,portability --inline-suppr \
    --error-exitcode=1 --template=gcc \
    --suppress=missingInclude --suppress=missingIncludeSystem \
    --suppress=unusedStructMember --suppress=unknownMacro \
    -DNGX_MCP_TEST=1 -DNGX_PTR_SIZE=8 \
    "${folders[@]/#/-I}" src || status=1

say "shellcheck"

# SC1091: sourced files are checked by themselves
shellcheck -e SC1091 "${scripts[@]}" || status=1

say "style"

grep -nE '^.{81,}' "${code[@]}" "${scripts[@]}" "${lua[@]}" "${page[@]}" \
    config \
    | complain "lines of more than 80 columns"
grep -nP '\t' "${code[@]}" "${scripts[@]}" "${lua[@]}" "${page[@]}" config \
    | complain "tabs"
grep -nE '[[:space:]]+$' "${texts[@]}" | complain "space at the end of a line"
grep -nE '(^|[^:])//' "${code[@]}" \
    | grep -vE '"[^"]*//[^"]*"' | complain "comments other than /* */"
system_first "${code[@]}" \
    | complain "system headers before those of nginx"
if [ -z "$(printf '#include <%s.h>\n' time ngx_core | system_first)" ] \
    || [ -n "$(printf '#include <%s.h>\n' ngx_core time | system_first)" ]
then
    complain "the order of headers is not seen" <<< tools/check.sh
fi
# such a cleanup outlives the element of a batch, which it may refer to
grep -n 'ngx_http_cleanup_add(' "${sources[@]}" \
    | grep -v '^src/http/ngx_mcp_rpc_batch.c:' \
    | complain "ngx_http_cleanup_add() instead of ngx_mcp_cleanup_add()"
grep -nE '(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\b' \
    console/*.js | complain "markup or code made of text"

exit $status
