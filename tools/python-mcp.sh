#!/bin/bash
# Fetches the MCP SDK for Python, which includes FastMCP, and a Python that runs
# it, from Debian's suite sid into build/python-mcp: "python" there runs it.
# Nothing is installed.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/apt-private.sh"

profile=sid:$(dpkg --print-architecture)
dir=$BUILD/python-mcp

# dependencies that a server does not need
without='debconf|tzdata|ca-certificates|openssl|openssl-provider-legacy'
without+='|libc-gconv-modules-extra|media-types|netbase|readline-common'

if [ ! -x "$dir/python" ]; then
    rm -rf "$dir"
    apt_ready "$profile"

    mapfile -t packages < <(
        apt_private "$profile" apt-get -s -qq --no-install-recommends \
            install python3-mcp \
            | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vxE "$without")

    if [ "${#packages[@]}" -eq 0 ]; then
        die "sid has no python3-mcp that can be installed"
    fi

    apt_unpack "$profile" "$dir" "${packages[@]}"

    # its own C library, too: the system's may be too old
    libs=$(echo "$dir"/usr/lib/*-linux-gnu)
    loader=$(echo "$libs"/ld-linux-*)
    python=$(echo "$dir"/usr/bin/python3.[0-9]*[0-9])

    cat > "$dir/python.new" <<END
#!/bin/sh
PYTHONHOME=$dir/usr PYTHONPATH=$dir/usr/lib/python3/dist-packages \\
    exec $loader --library-path $libs $python "\$@"
END

    chmod +x "$dir/python.new"
    "$dir/python.new" -c 'import mcp.server.fastmcp'
    mv "$dir/python.new" "$dir/python"
fi

"$dir/python" -c 'import importlib.metadata as m; print(m.version("mcp"))'
