#!/bin/bash
# Runs unit tests and suites in one prove, whose summary comes last:
#
#   tools/test.sh OUT [NGINX]
#
# OUT contains the test build in test/, the production build in prod/, and the
# unit tests in unit/; the tests write all their files there.  TESTS, if set,
# is the list of tests to run instead of all.  PROVE_FLAGS is passed to prove;
# the default runs two files at once, because most tests spend most of their
# time waiting.  NGINX is an executable to use instead of the distribution's.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/perl-env.sh"

out=$1
cd "$ROOT"
shopt -s nullglob

export MCP_TASKS_BUILD=$out
export MCP_TASKS_NGINX=${2:-$DIST_NGINX}
export MCP_TASKS_MODULE=$out/prod/$MODULE_NAME.so
export MCP_TASKS_TEST_MODULE=$out/test/$MODULE_NAME.so
export MCP_TASKS_PROMTOOL=$BUILD/dist/promtool
export MCP_TASKS_REDIS=$BUILD/dist/redis-server
export MCP_TASKS_PLAYWRIGHT=$BUILD/dist/playwright

export TEST_NGINX_BINARY=$MCP_TASKS_NGINX
export TEST_NGINX_LOAD_MODULES=$MCP_TASKS_TEST_MODULE
export TEST_NGINX_SERVROOT=$out/servroot


# Below the range that the kernel takes ports of outgoing connections from.
free_port() {
    perl -MIO::Socket::INET -e '
        for (1 .. 1000) {
            my $port = 20000 + int rand 12000;

            # the one after it as well: Test::Nginx may take it for streams
            my @free = grep {
                IO::Socket::INET->new(LocalPort => $_, Listen => 1,
                                      LocalAddr => "0.0.0.0")
            } $port, $port + 1;

            if (@free == 2) { print $port; exit 0 }
        }
        exit 1'
}


# nginx would take a variable of this name for sockets to inherit
unset NGINX

port=$(free_port) || die "no free port"
export TEST_NGINX_PORT=$port

if [ -n "${TESTS-}" ]; then
    read -r -a tests <<< "$TESTS"
else
    tests=()
    for test in t/unit/*.c; do
        name=$(basename "$test" .c)
        [[ $name == lib* ]] || tests+=("${out#"$ROOT/"}/unit/$name")
    done
    tests+=(t/*.t)
fi

[ ${#tests[@]} -gt 0 ] || die "no test files found"

# shellcheck disable=SC2086 # several options
exec prove ${PROVE_FLAGS:--j2} "${tests[@]}"
