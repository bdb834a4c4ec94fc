#!/bin/bash
# Runs the distribution's nginx with the module and conf/nginx.conf, and a
# worker for the tools in conf/tools.json, until Ctrl-C.  Both write only under
# build/run.  PORT is the port to listen on, 8080 by default; RUN_DIR,
# RUN_NGINX and RUN_MODULE are for the test of this script.

set -eu

. "$(dirname "$0")/common.sh"

address=127.0.0.1
port=${PORT:-8080}
prefix=${RUN_DIR:-$BUILD/run}
nginx=${RUN_NGINX:-$DIST_NGINX}
module=${RUN_MODULE:-$BUILD/$MODULE_NAME.so}
url=http://$address:$port

[[ $port =~ ^[0-9]+$ ]] || die "PORT is not a number: \"$port\""

if (exec 3<> "/dev/tcp/$address/$port") 2> /dev/null; then
    die "$address:$port is in use: stop the other program, or set PORT"
fi

mkdir -p "$prefix/logs"

# The example is to be read as one would write it, hence what is special about
# this run is added here: where to listen, and what must come before all else.
{
    echo "daemon off;"
    echo "load_module $module;"

    # The workers' default user, nobody, may not even enter the directory that
    # root cloned into.  As for anybody else, the directive would be ignored.
    [ "$(id -u)" -ne 0 ] || echo "user root;"

    sed "s/127\.0\.0\.1:8080/$address:$port/g" "$ROOT/conf/nginx.conf"
} > "$prefix/nginx.conf"

cp "$ROOT/conf/tools.json" "$prefix/tools.json"

pids=()

stop() {
    trap '' INT TERM
    # the worker first: it gives back what it has
    local i
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        kill -TERM "${pids[i]}" 2> /dev/null || true
        wait "${pids[i]}" 2> /dev/null || true
    done
}

trap stop EXIT
trap 'exit 0' INT TERM

"$nginx" -e stderr -p "$prefix/" -c "$prefix/nginx.conf" &
pids+=($!)

for ((i = 0; i < 100; i++)); do
    kill -0 "${pids[0]}" 2> /dev/null || die "nginx did not start"
    (exec 3<> "/dev/tcp/$address/$port") 2> /dev/null && break
    sleep 0.1
done

if command -v python3 > /dev/null; then
    python3 "$ROOT/examples/worker.py" "$url/worker" &
    pids+=($!)
    worker="and the demo worker examples/worker.py is running"
else
    worker="but no worker is running: the demo worker requires python3. \
Tasks stay queued"
fi

cat << END
nginx listens on $address:$port, $worker.
Ctrl-C stops everything.  In another shell, try:

  mcp() {
      local message=\$1; shift
      curl -sS -N $url/mcp -H 'Content-Type: application/json' \\
          -H 'Accept: application/json, text/event-stream' "\$@" -d "\$message"
      echo
  }
  id() { sed 's/.*"taskId":"\([^"]*\)".*/\1/'; }

  # protocol version and tools
  mcp '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
        "protocolVersion":"2025-11-25","capabilities":{},
        "clientInfo":{"name":"curl","version":"1"}}}'
  mcp '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'

  # a task: create it, get its state, wait for its result
  task=\$(mcp '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{
        "name":"count","arguments":{"to":5},"task":{}}}' | id)
  mcp '{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{
        "taskId":"'\$task'"}}'
  mcp '{"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{
        "taskId":"'\$task'"}}'

  # a session of a client that can be asked
  session=\$(mcp '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
        "protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},
        "clientInfo":{"name":"curl","version":"1"}}}' -i \\
      | sed -n 's/^Mcp-Session-Id: \([0-9a-f]*\).*/\1/p')

  # a task that asks a question, which arrives on the stream; post the answer
  task=\$(mcp '{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{
        "name":"greet","task":{}}}' | id)
  mcp '{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{
        "taskId":"'\$task'"}}' -H "Mcp-Session-Id: \$session" &
  sleep 2
  mcp '{"jsonrpc":"2.0","id":"'\$task'/name","result":{
        "action":"accept","content":{"name":"Ann"}}}'
  wait

  # cancel a task
  task=\$(mcp '{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{
        "name":"count","arguments":{"to":1000},"task":{}}}' | id)
  mcp '{"jsonrpc":"2.0","id":9,"method":"tasks/cancel","params":{
        "taskId":"'\$task'"}}'

  # a plain call, with progress
  mcp '{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{
        "name":"count","arguments":{"to":3},"_meta":{"progressToken":"p"}}}'

  # protocol revision 2026-07-28
  mcp '{"jsonrpc":"2.0","id":11,"method":"server/discover","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}}' \\
      -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: server/discover'

END

# Until one of them ends.  Ctrl-C reaches them as well, and may do so first:
# both exit with 0 when they are told to.
status=0
wait -n "${pids[@]}" || status=$?

case $status in
    0 | 130 | 143) exit 0 ;;
esac

die "nginx or the worker failed: see $prefix/error.log"
