#!/bin/bash
# Builds everything that tools/test.sh needs, as OUT/prod, OUT/test and
# OUT/unit, with options other than the default:
#
#   tools/build-tests.sh [-s TREE] [-c CFLAGS] [-n CFLAGS] [-l LDFLAGS] OUT
#
# -s  nginx's tree, by default that of the distribution's nginx
# -c  compiler options for the module
# -n  compiler options for the parts of nginx that unit tests link with, if
#     different
# -l  linker options for the module

set -eu

. "$(dirname "$0")/common.sh"

tree=
cflags='-g -O1'
ngx_cflags=
ldflags=

while getopts s:c:n:l: option; do
    case $option in
    s)  tree=$OPTARG ;;
    c)  cflags=$OPTARG ;;
    n)  ngx_cflags=$OPTARG ;;
    l)  ldflags=$OPTARG ;;
    *)  exit 2 ;;
    esac
done

shift $((OPTIND - 1))
out=$1

module=(-c "$cflags" -l "$ldflags")
[ -z "$tree" ] || module+=(-s "$tree")

"$TOOLS/build-module.sh" "${module[@]}" "$out/prod"
"$TOOLS/build-module.sh" "${module[@]}" -t "$out/test"

MAKEFLAGS='' make --no-print-directory -C "$ROOT" -j "$JOBS" unit \
    UNIT_OUT="$out/unit" UNIT_OBJS="$out/test" \
    UNIT_TREE="${tree:-$BUILD/dist/orig}" \
    UNIT_CFLAGS="$cflags" UNIT_NGX_CFLAGS="${ngx_cflags:-$cflags}"
