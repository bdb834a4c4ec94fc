#!/bin/bash
# Unpacks Test::Nginx, which is in Debian since forky, under build/perl.  Its
# dependencies come from the machine's own suite, because those written in C
# must match the machine's perl.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"

perl_dir=$BUILD/perl
depends=(
    libalgorithm-diff-perl libclone-perl libencode-locale-perl
    libexporter-tiny-perl libhttp-date-perl libhttp-message-perl
    libio-html-perl libio-pty-perl libipc-run-perl liblist-moreutils-perl
    liblist-moreutils-xs-perl liblwp-mediatypes-perl libnet-http-perl
    libspiffy-perl libtest-base-perl libtest-longstring-perl
    libtext-diff-perl libtimedate-perl libtry-tiny-perl liburi-perl
    libwww-perl
)


installed() {
    perl -e 'for (@INC) { exit 0 if -e "$_/Test/Nginx/Socket.pm" } exit 1'
}


if [ -e "$perl_dir/complete" ] || installed; then
    exit 0
fi

rm -rf "$perl_dir"
apt_unpack own "$perl_dir" "${depends[@]}"
apt_unpack forky "$perl_dir" libtest-nginx-perl

. "$TOOLS/perl-env.sh"

# it runs nginx as soon as it is loaded
TEST_NGINX_BINARY=$DIST_NGINX perl -MTest::Nginx::Socket -e 'exit 0' \
    || die "Test::Nginx does not load"

touch "$perl_dir/complete"
