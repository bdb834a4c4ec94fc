#!/bin/bash
# Builds nginx and the module with one set of options, and tests the result:
#
#   tools/build-as-users.sh 'readme VERSION'
#   tools/build-as-users.sh 'OPTIONS [m32]'
#   tools/build-as-users.sh 'core OPTIONS'
#   tools/build-as-users.sh -l
#   tools/build-as-users.sh -c
#
# OPTIONS are LINK COMPILER LEVEL THREADS SQLITE REDIS PCRE SSL.
#
# The first form runs the commands of README.md, with only the paths changed.
# The second builds the nginx version in VERSION, which tools/builds.sh sets;
# "-" means that a feature is left out.  The third builds nginx alone; other
# builds then use its objects.  -l lists the builds that use README.md's
# commands, and -c prints these commands.

set -eu

. "$(dirname "$0")/common.sh"
. "$TOOLS/nginx-objs.sh"

out=$BUILD/builds

# builds run beside each other
export JOBS=1

# the caller may be make, and may have settings of its own
unset CC CFLAGS LDFLAGS MAKEFLAGS MFLAGS NGINX
unset NGX_MCP_TASKS_REDIS NGX_MCP_TASKS_SQLITE NGX_MCP_TASKS_TEST

# parts of nginx that have nothing to do with the module
without=()

for part in auth_basic autoindex browser charset empty_gif fastcgi geo grpc \
            limit_conn limit_req memcached mirror referer scgi split_clients \
            ssi upstream_hash upstream_ip_hash upstream_keepalive \
            upstream_least_conn upstream_random upstream_zone userid uwsgi
do
    without+=("--without-http_${part}_module")
done


# name_of BUILD: what its directory is called
name_of() {
    tr -s ' ' - <<< "${1// -/ }" | sed 's/-$//'
}


# The commands that README.md has for nginx's sources.
readme_commands() {
    awk '/^## / { section = ($0 == "## Installing") }
         /^```/ { if (block ~ /--add-dynamic-module=/) printf "%s", block
                  inside = (section && $0 == "```sh"); block = ""; next }
         inside { block = block $0 "\n" }' "$ROOT/README.md"
}


# Its commands change to a directory of this name.
readme_tree() {
    readme_commands | sed -n 's/^cd \(nginx-[0-9.]*\)$/\1/p'
}


# build_readme VERSION
build_readme() {
    local commands tree path

    commands=$(readme_commands)
    tree=$(readme_tree)

    [ -n "$tree" ] || die "README.md has no build instructions"

    for path in /path/to/nginx-mcp-tasks /etc/nginx/modules/; do
        [[ $commands == *" "*"$path"* ]] \
            || die "README.md does not mention \"$path\""
    done

    cp -a "$BUILD/src/$1" "$dir/$tree"
    mkdir "$dir/modules"

    commands=${commands//\/path\/to\/nginx-mcp-tasks/$ROOT}
    commands=${commands//\/etc\/nginx\/modules\//$dir/modules/}

    (cd "$dir" && sh -e -x -c "$commands")

    # and the nginx that it is for
    make -s -C "$dir/$tree"

    binary=$dir/$tree/objs/nginx
    module=$dir/modules/$MODULE_NAME.so
}


# build_combination LINK COMPILER LEVEL THREADS SQLITE REDIS PCRE SSL [m32]
build_combination() {
    local cc_opt ld_opt='' options=() core tree=$BUILD/src/$VERSION

    link=$1 threads=$4 sqlite=$5 redis=$6 pcre=$7

    # debugging symbols take their time, and change no warning
    cc_opt="$3 -g0"

    [ "$4" = - ] || options+=(--with-threads)
    [ "$7" = - ] && options+=(--without-pcre --without-http_rewrite_module)
    [ "$8" = - ] || options+=(--with-http_ssl_module)
    [ "$link" = static ] || options+=(--with-compat)

    if [ "${9-}" = m32 ]; then
        . "$TOOLS/i386-env.sh"
        cc_opt+=" $I386_CC_OPT"
        ld_opt=$I386_LD_OPT
    fi

    if [ -n "$only_core" ]; then
        :
    elif [ "$link" = static ]; then
        options+=(--add-module="$ROOT")
    else
        options+=(--add-dynamic-module="$ROOT")
    fi

    export NGX_MCP_TASKS_SQLITE=YES
    [ "$sqlite" != - ] || NGX_MCP_TASKS_SQLITE=NO

    export NGX_MCP_TASKS_REDIS=YES
    [ "$redis" != - ] || NGX_MCP_TASKS_REDIS=NO

    nginx_configure "$tree" "$dir/objs" --with-cc="$2" \
        --with-cc-opt="$cc_opt" --with-ld-opt="$ld_opt" \
        "${without[@]}" "${options[@]}"

    # but not what has the arguments of ./configure in it
    core=$out/$(name_of "core $1 gcc -O0 $4 - - $7 $8")

    if [ -e "$core/complete" ] && [ $# -eq 8 ]; then
        cp -r "$core/objs/src" "$dir/objs/"
        rm "$dir/objs/src/core/nginx.o"
    fi

    nginx_make "$tree" "$dir/objs" binary

    binary=$dir/objs/nginx
    module=

    if [ "$link" = dynamic ] && [ -z "$only_core" ]; then
        nginx_make "$tree" "$dir/objs" modules
        module=$dir/objs/$MODULE_NAME.so
    fi
}


# configure ZONE TOOL [REDIS]: what the module is asked for
configure() {
    {
        [ -z "$module" ] || echo "load_module $module;"

        # nobody else can enter this directory
        [ "$(id -u)" -ne 0 ] || echo "user root;"

        cat << END
daemon off;
pid nginx.pid;
error_log stderr notice;

events { }

http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;

    ${3-}
    mcp_tasks_zone zone=tasks:2m $1;

    server {
        listen unix:$run/socket;

        location /mcp {
            mcp_tasks zone=tasks;
            mcp_tasks_tools $ROOT/conf/tools.json;
        }

        location /gateway {
            mcp_tasks zone=tasks;
            mcp_tasks_pass /upstream;
            mcp_tasks_tool "$2";
        }

        location = /upstream {
            internal;
            proxy_pass http://127.0.0.1:1;
        }

        location /worker { mcp_tasks_worker zone=tasks; }
        location /status { mcp_tasks_status zone=tasks; }
        location /console/ { mcp_tasks_console zone=tasks admin; }
    }
}
END
    } > "$run/nginx.conf"
}


# takes NAME: nginx accepts the configuration
takes() {
    "${nginx[@]}" -t > "$run/said" 2>&1 \
        || { cat "$run/said"; die "$1 is refused"; }
    grep -E '\[(warn|alert)\]' "$run/said" && die "$1 causes a warning"
    echo "$1 is accepted"
}


# refuses NAME MESSAGE: nginx does not, and says why
refuses() {
    if "${nginx[@]}" -t > "$run/said" 2>&1; then
        die "$1 is accepted, but was not built in"
    fi

    grep -F "$2" "$run/said" \
        || { cat "$run/said"; die "$1 is refused for another reason"; }
}


start() {
    local i

    "${nginx[@]}" > "$run/log" 2>&1 &
    pid=$!

    for ((i = 0; i < 100; i++)); do
        [ ! -S "$run/socket" ] || return 0
        sleep 0.1
    done

    cat "$run/log"
    die "nginx does not start"
}


stop() {
    local i

    kill -QUIT "$pid"

    for ((i = 0; i < 100; i++)); do
        kill -0 "$pid" 2> /dev/null || break
        sleep 0.1
    done

    [ "$i" -lt 100 ] || { cat "$run/log"; die "nginx does not stop"; }

    wait "$pid" || { cat "$run/log"; die "nginx failed"; }
    pid=

    ! grep -E '\[(warn|error|crit|alert|emerg)\]' "$run/log" \
        || die "nginx logged errors"
}


# ask PATH [JSON]
ask() {
    curl -sS --max-time 10 --unix-socket "$run/socket" \
        -H 'Content-Type: application/json' "http://localhost$1" \
        ${2:+-d "$2"}
}


# call NAME PARAMS
call() {
    ask "/${3-mcp}" '{"jsonrpc":"2.0","id":1,"method":"'"$1"'","params":'"$2}"
}


# member NAME: the value of it in what is read, a string
member() {
    sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"
}


# A worker does a task; with a store it is there after a restart.
use() {
    local task id lease

    start
    id=$(call tools/call '{"name":"count","arguments":{"to":1},"task":{}}' \
         | member taskId)
    task=$(call worker/claim '{"tools":["count"],"waitMs":1000}' worker)
    lease=$(member lease <<< "$task")

    [ "$(member taskId <<< "$task")" = "$id" ] \
        || die "the task was not claimed: $task"

    call worker/complete '{"taskId":"'"$id"'","lease":"'"$lease"'",
        "result":{"content":[{"type":"text","text":"done"}]}}' worker
    call tasks/result '{"taskId":"'"$id"'"}' | grep '"done"' \
        || die "there is no result"
    ask /status | grep -o '"created":1,' || die "there is no status"
    ask /console/ | grep -c '<!DOCTYPE html>' || die "there is no console"
    stop

    [ -n "$1" ] || return 0

    start
    call tasks/result '{"taskId":"'"$id"'"}' | grep '"done"' \
        || die "the store lost its task"
    stop
}


clean() {
    [ -z "${pid-}" ] || kill -KILL "$pid"
    rm -rf "$run"
}


try() {
    local store=

    # short: it is the path of a socket
    run=$(mktemp -d)
    trap clean EXIT

    nginx=("$binary" -e stderr -p "$run/" -c "$run/nginx.conf")

    configure '' tool
    takes "the configuration"

    configure "store=sqlite:$run/tasks.db" tool

    if [ "$threads" != - ] && [ "$sqlite" != - ]; then
        takes "a store"
        store=yes
    elif [ "$redis" != - ]; then
        refuses "a store" 'available stores: "redis"'
    else
        refuses "a store" "available stores: none"
    fi

    configure 'store=redis:db' tool \
        "mcp_tasks_redis db { server unix:$run/redis; }"

    if [ "$redis" != - ]; then
        takes "a Redis server"
    else
        refuses "a Redis server" 'unknown directive "mcp_tasks_redis"'
    fi

    configure '' '~^tool'

    if [ "$pcre" != - ]; then
        takes "a regular expression"
    else
        refuses "a regular expression" "requires PCRE library"
    fi

    configure "${store:+store=sqlite:$run/tasks.db}" tool
    use "$store"
}


case $1 in
-l)
    tree=$(readme_tree)
    [ -n "$tree" ] || die "README.md has no build instructions"
    printf 'readme %s\n' "${tree#nginx-}" "$VERSION" | sort -u
    exit
    ;;

-c)
    readme_commands
    exit
    ;;
esac

read -r -a words <<< "$1"

only_core=

if [ "${words[0]}" = core ]; then
    only_core=yes
    words=("${words[@]:1}")
fi

name=$(name_of "$1")
dir=$out/$name
mkdir -p "$dir"

one() {
    if [ "${words[0]}" = readme ]; then
        # nginx's defaults, with SQLite and hiredis if they are there
        link=dynamic threads=- sqlite=sqlite redis=redis pcre=pcre
        build_readme "${words[1]}"
    else
        build_combination "${words[@]}"
    fi

    if [ -n "$only_core" ]; then
        touch "$dir/complete"
    else
        try
    fi
}

# another shell: "set -e" has no effect in a condition
(one) > "$dir.log" 2>&1 &

if wait $!; then
    [ -n "$only_core" ] || rm -r "$dir"
    echo "$name: $SECONDS s"

else
    touch "$dir.failed"
    grep -E -A 5 -m 3 'error:|\.sh: ' "$dir.log" || tail -n 20 "$dir.log"
    echo "$name: failed, see ${dir#"$ROOT/"}.log" >&2
    exit 1
fi
