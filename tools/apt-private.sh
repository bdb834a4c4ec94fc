# shellcheck shell=bash
# Sourced: a private apt under build/apt.  It fetches packages that the
# machine's suite lacks, or that need not be installed, without root and
# without changing the system's apt.  Signatures are checked.
#
# A profile is either "own", the machine's own sources, or the name of another
# suite, fetched from the mirror that the machine already uses.  SUITE:ARCH is
# that suite for another architecture.

APT_DIR=$BUILD/apt
APT_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg


apt_private() {
    local profile=$1 tool=$2 dir=$APT_DIR/$1 options
    shift 2

    options=(
        -o "Dir::State::lists=$dir/lists"
        -o "Dir::Cache=$dir/cache"
        -o Dir::Cache::pkgcache=
        -o "APT::Sandbox::User=$(id -un)"
    )

    if [ "$profile" != own ]; then
        options+=(
            -o "Dir::Etc::sourcelist=$dir/sources.list"
            -o Dir::Etc::sourceparts=/dev/null
            -o Dir::Etc::preferences=/dev/null
            -o Dir::Etc::preferencesparts=/dev/null
        )
    fi

    # what is installed here says nothing about another architecture
    if [[ $profile == *:* ]]; then
        options+=(
            -o "APT::Architecture=${profile#*:}"
            -o "APT::Architectures=${profile#*:}"
            -o Dir::State::status=/dev/null
        )
    fi

    "$tool" "${options[@]}" "$@"
}


# The address of the Debian archive that the machine is set up with.  It is
# known to apt only once the lists are there, hence the "own" profile first.
apt_mirror() {
    # shellcheck disable=SC2016 # apt expands them
    apt_private own apt-get indextargets \
        --format '$(ORIGIN)|$(LABEL)|$(CREATED_BY)|$(REPO_URI)' \
        | sed -n 's/^Debian|Debian|Packages|//p' | head -n 1
}


apt_update() {
    local profile=$1 dir=$APT_DIR/$1 mirror

    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"

    if [ "$profile" != own ]; then
        apt_ready own
        mirror=$(apt_mirror)

        if [ -z "$mirror" ]; then
            die "the apt sources of this machine name no Debian mirror"
        fi

        printf '%s [signed-by=%s] %s %s main\n' \
            deb "$APT_KEYRING" "$mirror" "${profile%:*}" \
            deb-src "$APT_KEYRING" "$mirror" "${profile%:*}" \
            > "$dir/sources.list"
    fi

    say "reading the package lists: $profile"
    apt_private "$profile" apt-get -qq update \
        || die "cannot read the package lists: $profile"
    touch "$dir/updated"
}


apt_ready() {
    if [ ! -e "$APT_DIR/$1/updated" ]; then
        apt_update "$1"
    fi
}


# Runs one apt-get command in a directory.  Lists kept from an earlier day
# may name files that the mirror has since replaced: then reads them anew.
apt_fetch() {
    local profile=$1 dir=$2
    shift 2

    mkdir -p "$dir"
    apt_ready "$profile"

    if ! (cd "$dir" && apt_private "$profile" apt-get -qq "$@"); then
        apt_update "$profile"
        (cd "$dir" && apt_private "$profile" apt-get -qq "$@") \
            || die "cannot fetch: $*"
    fi
}


# Downloads packages and unpacks them into a directory.
apt_unpack() {
    local profile=$1 dir=$2 debs deb
    shift 2

    debs=$(mktemp -d "$APT_DIR.XXXXXX")
    say "fetching $*"
    apt_fetch "$profile" "$debs" download "$@"

    mkdir -p "$dir"
    for deb in "$debs"/*.deb; do
        dpkg -x "$deb" "$dir"
    done

    rm -r "$debs"
}
