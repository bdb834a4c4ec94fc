#!/bin/bash
# Unpacks the distribution's packages for 32-bit builds into build/dist/i386,
# without installing them.  If that is not possible, build/dist/i386/complete
# does not exist.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"
. "$TOOLS/i386-env.sh"

suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")

packages=(
    libc6 libc6-dev libcrypt-dev libcrypt1 libgcc-s1
    "libgcc-$(gcc -dumpversion)-dev" libjansson-dev libjansson4 libpcre2-8-0
    libpcre2-dev libsqlite3-0 libsqlite3-dev libssl-dev libssl3 linux-libc-dev
    zlib1g zlib1g-dev libhiredis-dev
)

# the libraries of hiredis have their version in their names
while read -r package; do
    packages+=("$package")
done < <(dpkg-query -W -f '${Depends}\n' libhiredis-dev \
         | grep -oE 'libhiredis[a-z0-9.-]+')


fetch() {
    [ "$(uname -m)" = x86_64 ] || die "this machine is not an x86_64"

    apt_unpack "$suite:i386" "$I386_ROOT" "${packages[@]}"
    . "$TOOLS/i386-env.sh"

    echo 'int main(void) { return sizeof(long) != 4; }' > "$I386_ROOT/x.c"
    # shellcheck disable=SC2086 # several options
    gcc $I386_CC_OPT -o "$I386_ROOT/x" "$I386_ROOT/x.c" $I386_LD_OPT
    "$I386_ROOT/x" || die "32-bit executables do not run here"

    touch "$I386_ROOT/complete"
}


if [ -e "$I386_ROOT/complete" ]; then
    exit 0
fi

rm -rf "$I386_ROOT"

(fetch) &
wait $! || say "no builds for 32 bits"
