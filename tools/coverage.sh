#!/bin/bash
# Runs all tests with an instrumented module in the distribution's nginx, then
# prints the share of lines of src/ that unit tests or suites executed.

set -eu

. "$(dirname "$0")/common.sh"

out=$BUILD/coverage

"$TOOLS/build-tests.sh" -c '-g -O0 --coverage' -l --coverage "$out"

# counts of an earlier run
find "$out" -name '*.gcda' -delete

# workers write their counts when they exit: they must be given the time to,
# and be allowed to write where root compiled, as Test::Nginx does for root
status=0
"$TOOLS/test.sh" "$out" || status=$?

# A line counts as run if it was in any of the builds.  From here, as unit
# tests are compiled by relative paths and gcov reads the sources.
cd "$ROOT"
find "$out" \( -path '*/addon/*.gcno' -o -path '*/obj/src/*.gcno' \) -print0 \
    | xargs -0 -n 1 gcov -t 2> /dev/null \
    | awk -F: -v src="$ROOT/src/" '
        $2 + 0 == 0 && $3 == "Source" {
            file = $4
            sub(/^.*\/src\//, "src/", file)
            ours = (file ~ /\/ngx_(mcp|http_mcp_tasks)_[^\/]*\.[ch]$/ \
                    && (getline line < (src substr(file, 5))) >= 0)
            close(src substr(file, 5))
            next
        }
        ours && $2 + 0 > 0 {
            gsub(/[ *]/, "", $1)
            if ($1 == "-") next
            key = file ":" $2 + 0
            if (!(key in run)) { run[key] = 0; lines[file]++ }
            if ($1 !~ /^[#=]/ && !run[key]) { run[key] = 1; hit[file]++ }
        }
        END {
            for (file in lines) {
                printf "%-50s %6d %6d %6.1f%%\n", file, hit[file],
                       lines[file], 100 * hit[file] / lines[file]
                h += hit[file]
                n += lines[file]
            }
            printf "%-50s %6d %6d %6.1f%%\n", "total", h, n,
                   n ? 100 * h / n : 0
        }' \
    | sort \
    | (printf '\n%-50s %6s %6s %7s\n' file run lines share; cat)

exit $status
