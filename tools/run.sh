#!/bin/bash
# Runs the distribution's nginx with the module and conf/nginx.conf in the
# foreground.  All that it writes goes under build/run.

set -eu

. "$(dirname "$0")/common.sh"

address=127.0.0.1
port=8080
prefix=$BUILD/run
url=http://$address:$port/mcp

if (exec 3<> "/dev/tcp/$address/$port") 2> /dev/null; then
    die "$address:$port is in use: stop what listens there first"
fi

mkdir -p "$prefix/logs"

# load_module has to come before all else, and the example is to be read as
# one would write it, hence here.
directives="daemon off; load_module $BUILD/$MODULE_NAME.so;"

# The workers' default user, nobody, may not even enter the directory that
# root cloned into.  As for anybody else, the directive would be ignored.
if [ "$(id -u)" -eq 0 ]; then
    directives+=" user root;"
fi

cat << END
nginx listens on $address:$port; Ctrl-C stops it.  In another shell, try:

  mcp() {
      local message=\$1; shift
      curl -sS $url -H 'Content-Type: application/json' \\
          -H 'Accept: application/json, text/event-stream' "\$@" -d "\$message"
  }

  mcp '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
        "protocolVersion":"2025-11-25","capabilities":{},
        "clientInfo":{"name":"curl","version":"1"}}}'
  mcp '{"jsonrpc":"2.0","id":2,"method":"ping"}'
  mcp '{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}}' \\
      -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: server/discover'

END

exec "$DIST_NGINX" -e stderr -p "$prefix/" -c "$ROOT/conf/nginx.conf" \
    -g "$directives"
