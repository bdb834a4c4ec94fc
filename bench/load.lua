-- What wrk sends, for bench/performance.py:
--
--   wrk -s bench/load.lua URL -- FILE [PATTERN]
--
-- FILE has whole requests, each after a line with its length, and they are
-- sent in turns.  With PATTERN there are two: wherever it matches the answer to
-- the first, what it captures goes into the second, in the place of as many
-- runs of "@", and that is sent next.

local requests = {}
local at = 0
local pattern
local due = {}
local first, last = 1, 0
missed = 0     -- global, so that done() can read it
local threads = {}


function setup(thread)
  table.insert(threads, thread)
end


function init(args)
  local file = assert(io.open(args[1], "rb"))

  for length in file:lines() do
    requests[#requests + 1] = file:read(tonumber(length))
    file:read(1)
  end

  file:close()
  pattern = args[2]
  missed = 0

  if pattern then
    request, response = follow, take
  end
end


function request()
  at = at % #requests + 1
  return requests[at]
end


function follow()
  if first > last then
    return requests[1]
  end

  local found = due[first]
  due[first] = nil
  first = first + 1

  local n = 0
  return (requests[2]:gsub("@+", function()
    n = n + 1
    return found[n]
  end))
end


-- of the second kind nothing is expected but that it is no error
function take(status, headers, body)
  local found = { body:match(pattern) }

  if #found > 0 then
    last = last + 1
    due[last] = found
  elseif body:find('"error"', 1, true) or body:find('"tasks":[]', 1, true) then
    missed = missed + 1
  end
end


function done(summary, latency)
  local wrong = 0

  for _, thread in ipairs(threads) do
    wrong = wrong + (thread:get("missed") or 0)
  end

  local e = summary.errors
  io.write(string.format(
    "FIGURES requests=%d us=%d p50=%d p99=%d failed=%d missed=%d\n",
    summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), e.connect + e.read + e.write + e.status
    + e.timeout, wrong))
end
