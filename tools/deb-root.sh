#!/bin/bash
# Runs a command with a temporary Debian system, without changing the machine's
# own:
#
#   tools/deb-root.sh SUITE NAME PACKAGES COMMAND...
#
# The command runs on the host system, as root in its own namespaces: it sees
# no other processes and no network except its own loopback, and may chroot to
# $DEB_ROOT, a fresh system of that suite with these packages (separated by
# commas).  The system is removed when the command ends.  The caller must be
# root or have subordinate user ids (/etc/subuid, package uidmap).
#
# An archive of the system is kept as build/apt/SUITE-NAME.tar.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"


# inside: with a shell for its first process
if [ "$1" = --inside ]; then
    trap 'exit 130' INT TERM
    shift

    # devices cannot be made by everybody
    tar -C "$DEB_ROOT" --numeric-owner --exclude='./dev/*' -xf "$DEB_TAR"

    for device in full null random tty urandom zero; do
        touch "$DEB_ROOT/dev/$device"
        mount --bind "/dev/$device" "$DEB_ROOT/dev/$device"
    done

    mount -t proc proc "$DEB_ROOT/proc"
    ln -s /proc/self/fd "$DEB_ROOT/dev/fd"

    chroot "$DEB_ROOT" ip link set lo up

    "$@"
    exit
fi


suite=$1
name=$2
packages=$3
shift 3

as_root=()

if [ "$(id -u)" -ne 0 ]; then
    as_root=(--user --map-root-user --map-auto)
fi

DEB_TAR=$APT_DIR/$suite-$name.tar

if [ "$(cat "$DEB_TAR.for" 2> /dev/null)" != "$packages" ]; then
    apt_ready own
    mirror=$(apt_mirror)

    [ -n "$mirror" ] \
        || die "the apt sources of this machine name no Debian mirror"

    say "fetching a Debian system: $suite, $packages"
    rm -f "$DEB_TAR.for"

    hooks=/usr/share/mmdebstrap/hooks/maybe-merged-usr
    source="deb [signed-by=$APT_KEYRING] $mirror $suite main"

    if ! mmdebstrap --quiet --variant=apt --include="$packages" \
        --aptopt='Acquire::Languages "none"' --hook-dir="$hooks" \
        "$suite" "$DEB_TAR" "$source" > "$DEB_TAR.log" 2>&1
    then
        tail -n 20 "$DEB_TAR.log" >&2
        die "cannot create the Debian system: see ${DEB_TAR#"$ROOT/"}.log"
    fi

    echo "$packages" > "$DEB_TAR.for"
fi

mkdir -p "$BUILD/deb"
DEB_ROOT=$(mktemp -d "$BUILD/deb/root.XXXXXX")
chmod 755 "$DEB_ROOT"

# by then it has no mounts any more
remove() {
    if [ ${#as_root[@]} -gt 0 ]; then
        unshare "${as_root[@]}" rm -rf "$DEB_ROOT"
    else
        rm -rf --one-file-system "$DEB_ROOT"
    fi
}

trap remove EXIT
trap 'exit 130' INT TERM

export DEB_TAR DEB_ROOT

unshare "${as_root[@]}" --mount --pid --net --ipc --uts --fork --kill-child \
    "$0" --inside "$@"
