-- What wrk sends, for bench/performance.py:
--
--   wrk -s bench/load.lua URL -- FILE [BEFORE ... | --values VALUES]
--
-- FILE has whole requests, each after a line with its length, and they are
-- sent in turns.  With BEFORE there are two: what stands after each of these
-- texts in the answer to the first, up to a quote, goes into the second, in the
-- place of as many runs of "@", and that is sent next.  wrk has the same
-- processors as the server, so there are no patterns: plain text is found much
-- quicker.
--
-- With --values there is one request, and as many runs of "@" in it as there
-- are words in each line of VALUES.  Each line is sent once, in their place.
-- After the last line the load ends, even if its time is not over.

local ffi = require("ffi")

ffi.cdef[[
  typedef struct { long sec, nsec; } load_time_t;
  int clock_gettime(int clock, load_time_t *time);
]]

local MONOTONIC = 1

local requests = {}
local at = 0
local before = {}      -- what is looked for in answers
local pieces = {}      -- of a request, around its runs of "@"
local values = {}      -- what goes between them
local lines = 0
local begin
local due = {}
local first, last = 1, 0
missed = 0     -- global, so that done() can read it
sent, us = 0, 0
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

  if args[2] == "--values" then
    split(requests[1])

    for line in io.lines(args[3]) do
      lines = lines + 1

      for word in line:gmatch("%S+") do
        values[#values + 1] = word
      end
    end

    request = once
    return
  end

  for i = 2, #args do
    before[#before + 1] = args[i]
  end

  if #before > 0 then
    split(requests[2] or "")
    request, response = follow, take
  end
end


function split(text)
  for piece in (text .. "@"):gmatch("([^@]*)@+") do
    pieces[#pieces + 1] = piece
  end
end


function request()
  at = at % #requests + 1
  return requests[at]
end


function once()
  -- the first call is not for a request: wrk only looks at the result
  if not begin then
    begin = 0
    return fill(1)
  end

  at = at + 1

  if at == 1 then
    begin = now()
  end

  -- what is asked for until the thread stops gets the last line again
  if at > lines then
    if us == 0 then
      sent, us = lines, tonumber(now() - begin)
      wrk.thread:stop()
    end

    at = lines
  end

  return fill(at)
end


function fill(line)
  local text, from = pieces[1], (line - 1) * (#pieces - 1)

  for i = 1, #pieces - 1 do
    text = text .. values[from + i] .. pieces[i + 1]
  end

  return text
end


function now()
  local time = ffi.new("load_time_t")
  ffi.C.clock_gettime(MONOTONIC, time)
  return time.sec * 1000000 + time.nsec / 1000
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
  local wrong, requests, took = 0, summary.requests, summary.duration

  for _, thread in ipairs(threads) do
    wrong = wrong + (thread:get("missed") or 0)

    if thread:get("us") > 0 then
      requests, took = thread:get("sent"), thread:get("us")
    end
  end

  local e = summary.errors
  io.write(string.format(
    "FIGURES requests=%d us=%d p50=%d p99=%d failed=%d missed=%d\n",
    requests, took, latency:percentile(50),
    latency:percentile(99), e.connect + e.read + e.write + e.status
    + e.timeout, wrong))
end
