-- What wrk sends, for bench/performance.py:
--
--   wrk -s bench/load.lua URL -- FILE [BEFORE ...]
--
-- FILE has whole requests, each after a line with its length, and they are
-- sent in turns.  With BEFORE there are two: what stands after each of these
-- texts in the answer to the first, up to a quote, goes into the second, in the
-- place of as many runs of "@", and that is sent next.  wrk has the same
-- processors as the server, so there are no patterns: plain text is found much
-- quicker.

local requests = {}
local at = 0
local before = {}      -- what is looked for in answers
local pieces = {}      -- of the second request, around what was found
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
  missed = 0

  for i = 2, #args do
    before[#before + 1] = args[i]
  end

  if #before > 0 then
    for piece in ((requests[2] or "") .. "@"):gmatch("([^@]*)@+") do
      pieces[#pieces + 1] = piece
    end

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

  local text = due[first]
  due[first] = nil
  first = first + 1

  return text
end


-- of the second kind nothing is expected but that it is no error
function take(status, headers, body)
  local text = pieces[1]

  for i = 1, #before do
    local _, from = body:find(before[i], 1, true)

    if not from then
      if body:find('"error"', 1, true) or body:find('"tasks":[]', 1, true) then
        missed = missed + 1
      end

      return
    end

    text = text .. body:sub(from + 1, body:find('"', from + 1, true) - 1)
           .. pieces[i + 1]
  end

  last = last + 1
  due[last] = text
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
