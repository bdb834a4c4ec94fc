#!/bin/bash
# Provides redis-server for tests as build/dist/redis-server.  The program is in
# the package redis-tools, under another name; the package redis-server, which
# need not be installed, only adds a service.

set -eu

. "$(dirname "$0")/common.sh"

link=$BUILD/dist/redis-server

for name in redis-server redis-check-rdb; do
    if program=$(command -v "$name"); then
        ln -sfn "$program" "$link"

        # by the name that it is called by, it is the server
        if "$link" --version 2>&1 | grep -q '^Redis server '; then
            exit 0
        fi
    fi
done

die "redis-server was not found"
