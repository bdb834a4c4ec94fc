#!/bin/bash
# Runs all tests under AddressSanitizer and UndefinedBehaviorSanitizer, and
# fails if there is any report, even if no test failed.
#
# nginx itself is built without UBSan, because it relies on undefined behavior
# in places, such as memcpy() of zero bytes from NULL, which this project
# cannot fix.  The module, and what it inlines from nginx's headers, is built
# with both.

set -eu

. "$(dirname "$0")/common.sh"

out=$BUILD/asan
reports=$out/reports

asan='-g -O1 -fno-omit-frame-pointer -fsanitize=address'
ubsan='-fsanitize=undefined -fno-sanitize-recover=all'

# every pool allocation by itself, or an overrun within a pool goes unseen
palloc=-DNGX_DEBUG_PALLOC=1


# options NAME REPORTS LEAKS: an object that sets the sanitizers' options.
# They are linked in since nginx clears its environment before it starts
# another executable, and since only nginx is not to be checked for leaks: it
# leaves to exit() what belongs to its last cycle.
options() {
    gcc -g -fPIC -DREPORTS="\"$2\"" -DLEAKS="\"$3\"" \
        -c -o "$out/$1.o" "$TOOLS/sanitizers.c"
}


# A run without reports means nothing unless a fault makes one.
canary() {
    local name=$1 dir=$out/canary/$1
    mkdir -p "$dir"

    options "canary-$name" "$dir" 1
    cat > "$dir/$name.c"
    # shellcheck disable=SC2086 # several options
    gcc $asan $ubsan -w -o "$dir/$name" "$dir/$name.c" "$out/canary-$name.o"

    if "$dir/$name" > /dev/null 2>&1; then
        die "the sanitizers did not detect \"$name\""
    fi

    # shellcheck disable=SC2144 # there is one, or none
    [ -e "$dir"/*san.[0-9]* ] || die "no report about \"$name\""
}


rm -rf "$reports" "$out/canary"
mkdir -p "$reports"

canary overrun << 'END'
#include <stdlib.h>
int main(int argc, char **argv) { char *p = malloc(8); return p[7 + argc]; }
END

canary undefined << 'END'
int main(int argc, char **argv) { int n = 0x7fffffff; return (n + argc) & 1; }
END

canary leak << 'END'
#include <stdlib.h>
void *volatile p;
int main(void) { p = malloc(8); p = 0; return 0; }
END

say "the sanitizers detect an overrun, an overflow and a leak"

version=$(binary_version "$DIST_NGINX")
tree=$BUILD/src/$version

options nginx "$reports" 0
options unit "$reports" 1

"$TOOLS/build-nginx.sh" -c "$asan $palloc" \
    -l "-fsanitize=address,undefined $out/nginx.o" "$tree" "$out/nginx"

UNIT_LIBS="$out/unit.o" "$TOOLS/build-tests.sh" -s "$tree" \
    -c "$asan $ubsan $palloc" -n "$asan $palloc" \
    -l '-fsanitize=address,undefined' "$out"

# what kills everything again and again takes its time here
export MCP_TASKS_RESTARTS=${MCP_TASKS_RESTARTS-30}
export CUTS=${CUTS-800}

status=0
"$TOOLS/test.sh" "$out" "$out/nginx/nginx" || status=$?

for report in "$reports"/*; do
    if [ -e "$report" ]; then
        echo "== ${report#"$ROOT/"}"
        head -n 40 "$report"
        status=1
    fi
done

exit $status
