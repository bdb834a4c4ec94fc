#!/bin/bash
# A worker in bash, with curl and jq.
#
#     examples/worker.sh http://127.0.0.1:8080/worker

# shellcheck disable=SC2016 # dollars are for jq

url=${1-http://127.0.0.1:8080/worker}
held=                                   # taskId and lease of the current task
result=                                 # result of the last request
limit=90                                # request timeout in seconds

# rpc METHOD JQ-PROGRAM [JQ-OPTION...]: sends a request and sets $result.  The
# output of the program is merged with $held to form the parameters.  Returns 1
# if the lease is no longer valid, or on any other error.
rpc() {
    local method=$1 program=$2 request answer
    shift 2

    request=$(jq -nc "$@" --arg method "$method" \
        --argjson held "${held:-"{}"}" \
        "{jsonrpc: \"2.0\", id: 1, method: \$method,
          params: (\$held + $program)}") || return 1

    # in bash, signals interrupt only read and wait
    until IFS= read -rd '' answer < <(
              exec curl -sS --max-time "$limit" -w '\n%{http_code}' \
                  -H 'Content-Type: application/json' -d "$request" "$url")
          [[ $answer = *$'\n'[1-4]?? ]]
    do
        [ "$limit" = 90 ] || return 1   # stopping: do not retry
        nap 1                           # nginx restarts, or its store failed
    done

    answer=${answer%$'\n'*}             # a repeated worker/ask: it is open
    result=$(jq -ce '.result // (.error.data | objects
        | select(.reason == "task_state_invalid"))' <<< "$answer") && return
    jq -r '.error | "\(.code) \(.data.reason // .message)"' <<< "$answer" >&2
    return 1
}

nap() {
    sleep "$1" & wait "$!"
}

complete() {                            # complete TEXT IS-ERROR
    rpc worker/complete \
        '{result: {content: [{type: "text", text: $text}], isError: $error}}' \
        --arg text "$1" --argjson error "$2"
}

pause() {
    local i seconds=$1
    for ((i = ${seconds%.*}; i > 10; i -= 10)); do    # the lease is 30 s
        nap 10
        rpc worker/heartbeat '{}' || return
        seconds=$(jq -n "$seconds - 10")
    done
    nap "$seconds"
}

count() {
    local i to delay
    read -r to delay < <(jq -r '"\(.to) \(.delay // 1)"' <<< "$1")
    for ((i = 1; i <= to; i++)); do
        pause "$delay" || return
        rpc worker/progress '{progress: $i, total: $to, message: "at \($i)"}' \
            --argjson i "$i" --argjson to "$to" || return
    done
    complete "counted to $to" false
}

greet() {
    result=$task                        # with answers of an earlier attempt
    jq -e .inputResponses.name <<< "$task" || rpc worker/ask '{inputRequests: {
        name: {method: "elicitation/create", params: {
            mode: "form", message: "What is your name?", requestedSchema: {
                type: "object", required: ["name"],
                properties: {name: {type: "string"}}}}}}}' || return
    until jq -e .inputResponses.name <<< "$result"; do
        rpc worker/answers '{waitMs: 30000}' || return
    done
    if jq -e '.inputResponses.name.action != "accept"' <<< "$result"; then
        complete "no name, no greeting" true
    else
        complete "Hello, $(jq -r .inputResponses.name.content.name \
                           <<< "$result")!" false
    fi
}

fail() {
    if [ "$(jq -r .how <<< "$1")" = protocol ]; then
        rpc worker/fail '{error: {code: -32050, message: "broken"}}'
    else
        complete "this never works" true
    fi
}

stop() {
    kill "$!" 2> /dev/null              # sleep or curl in progress
    limit=3
    [ -z "$held" ] || rpc worker/release '{}'         # for another worker
    exit
}

trap stop INT TERM

while true; do
    held=
    rpc worker/claim '{tools: ["count", "greet", "fail"],
                       waitMs: 30000, worker: "worker.sh"}' \
        || { nap 1; continue; }
    task=$(jq -c '.tasks[]' <<< "$result")
    if [ -z "$task" ]; then
        [ "$(jq .drain <<< "$result")" = false ] || nap 1
        continue
    fi
    held=$(jq -c '{taskId, lease}' <<< "$task")
    "$(jq -r .tool <<< "$task")" "$(jq -c .arguments <<< "$task")" > /dev/null
done
