#!/bin/bash
# Builds nginx and the module as users do, and tests the results:
#
#   tools/builds.sh [-a] [-l]
#
# -a  builds all combinations, and some for 32 bits; by default only as many as
#     needed to cover every pair of values
# -l  lists the builds without running them
#
# The commands of README.md come first, then combinations of: dynamic or static
# linking, compiler, optimization, with and without threads, SQLite, Redis,
# PCRE, TLS.
# ONLY is a regular expression that selects lines of the list, and VERSION is
# the nginx version, by default the distribution's.

set -eu

. "$(dirname "$0")/common.sh"

out=$BUILD/builds
all=
list_only=

while getopts al option; do
    case $option in
    a)  all=yes ;;
    l)  list_only=yes ;;
    *)  exit 2 ;;
    esac
done

VERSION=${VERSION:-$(binary_version "$DIST_NGINX")}
export VERSION

# every pair of values is in one of these; gcc sees most at -O3, so that has the
# stores
pairs=(
    'static gcc -O0 threads - redis pcre -'
    'dynamic clang -O0 - sqlite - - ssl'
    'static gcc -O1 - sqlite redis - ssl'
    'dynamic clang -O1 threads - - pcre -'
    'static gcc -O2 - - - - -'
    'dynamic clang -O2 threads sqlite redis pcre ssl'
    'dynamic gcc -O3 threads sqlite redis - -'
    'static clang -O3 - - - pcre ssl'
)


combinations() {
    printf '%s\n' {dynamic,static}' '{gcc,clang}' '-O{0,1,2,3}' '\
{threads,-}' '{sqlite,-}' '{redis,-}' '{pcre,-}' '{ssl,-}
}


# uncovered COMBINATION...: the pairs of values that none of these has
uncovered() {
    awk 'BEGIN {
             split("link compiler level threads SQLite Redis PCRE TLS", column)
         }
         {
             for (i = 1; i < NF; i++) {
                 for (j = i + 1; j <= NF; j++) {
                     if (NR == FNR) {
                         have[i, $i, j, $j] = 1
                     } else if (!have[i, $i, j, $j]++) {
                         print column[i] " " $i ", " column[j] " " $j
                     }
                 }
             }
         }' <(printf '%s\n' "$@") <(combinations)
}


check_pairs() {
    local i rest missing

    missing=$(uncovered "${pairs[@]}")
    [ -z "$missing" ] || die "no build combines:"$'\n'"$missing"

    # that it found nothing means nothing unless it can find something
    for i in "${!pairs[@]}"; do
        rest=("${pairs[@]}")
        unset "rest[i]"
        [ -n "$(uncovered "${rest[@]}")" ] \
            || die "no pair is missing without \"${pairs[i]}\""
    done
}


list() {
    echo "$readme"

    if [ -z "$all" ]; then
        printf '%s\n' "${pairs[@]}"
        return
    fi

    combinations

    if [ -e "$BUILD/dist/i386/complete" ]; then
        printf '%s m32\n' "${pairs[@]}"
    fi
}


check_pairs
readme=$("$TOOLS/build-as-users.sh" -l)

[ -z "$all" ] || "$TOOLS/dist-i386.sh"

builds=$(list | grep -E -e "${ONLY:-.}") || die "no build matches ONLY=${ONLY-}"

if [ -n "$list_only" ]; then
    echo "$builds"
    exit
fi

rm -rf "$out"
mkdir -p "$out"

for version in "$VERSION" $(sed -n 's/^readme //p' <<< "$builds"); do
    "$TOOLS/fetch-nginx.sh" "$version"
done

count=$(wc -l <<< "$builds")
say "$count builds, nginx $VERSION"

# so many that nginx's own files are compiled once for each set of features
if [ -n "$all" ]; then
    awk '$1 != "readme" && NF == 8 {
             print "core", $1, "gcc -O0", $4, "- -", $7, $8
         }' <<< "$builds" | sort -u \
        | xargs -r -P "$JOBS" -I '{}' "$TOOLS/build-as-users.sh" '{}'
fi

status=0
SECONDS=0
xargs -P "$JOBS" -I '{}' "$TOOLS/build-as-users.sh" '{}' <<< "$builds" \
    || status=$?

failed=("$out"/*.failed)
[ -e "${failed[0]}" ] || failed=()

say "$count builds in $SECONDS s, ${#failed[@]} failed"
exit $status
