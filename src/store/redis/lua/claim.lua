#!lua flags=allow-oom
-- Claims the best task of several queues.
--
-- KEYS d c m w s q...
-- ARGV run lease_token ring now wall lease_time worker seat flags tool...
-- flags: 1 recent
-- Returns {1, id, t, x}; {2, id, t, x}: claimed before with this lease token;
-- {0}: none, and the seat was registered under all tools, unless it is ''
--
-- Only this script cannot declare the task that it finds.  It reads all of the
-- task's keys before the first write: if they are being moved to another node
-- of a cluster, reading fails, and nothing was changed.

local d, m, w, s = KEYS[1], KEYS[3], KEYS[4], KEYS[5]
local token, now, worker = ARGV[2], tonumber(ARGV[4]), ARGV[7]
local prefix = sub(m, 1, -2)

local v = call('HMGET', m, 'run', 'seq', 's1', 's2')

if v[1] ~= ARGV[1] then
    return {-9}
end

local last = call('HGET', s, ARGV[3])

if last and sub(last, 1, 8) == token then
    local id = sub(last, 9)
    local record = call('GET', prefix .. 't' .. id)

    if record then
        return { 2, id, record, call('HGETALL', prefix .. 'x' .. id) }
    end
end


-- the conditions of ngx_mcp_task_claimable() and ngx_mcp_task_due()
local function claimable(head)
    local state, attempt = head:byte(57, 58)

    return state == 1 and attempt < 255
           and sub(head, 89, 96) == NEVER
           and now < unpack_at('>I8', head, 81)
           and now < unpack_at('>I8', head, 97)
end


-- as ngx_mcp_after(); also returns the time as a number
local function after(delay)
    if delay == 4294967295 then
        return NEVER, math.huge
    end

    return pack('>I8', now + delay), now + delay
end


-- the first of each queue, and the number of entries that were skipped in it
local ids, scores, skipped = {}, {}, {}

local function look(i)
    local skip = skipped[i]

    if #KEYS == 6 then
        ids[6] = call('ZRANGE', KEYS[6], skip, skip)[1]
        return
    end

    local first = call('ZRANGE', KEYS[i], skip, skip, 'WITHSCORES')

    ids[i], scores[i] = first[1], tonumber(first[2] or math.huge)
end

for i = 6, #KEYS do
    skipped[i] = 0
    look(i)
end

local best, id, head

for _ = 1, MAX do
    best = 6

    for i = 7, #KEYS do
        if scores[i] < scores[best] then
            best = i
        end
    end

    id = ids[best]

    if not id then
        break
    end

    -- the head and the owner's hash
    head = call('GETRANGE', prefix .. 't' .. id, 0, HEAD + 15)

    if head ~= '' and claimable(head) then
        break
    end

    id = nil
    skipped[best] = skipped[best] + 1
    look(best)
end

if not id then
    if ARGV[8] ~= '' then
        local fields = {}

        for i = 10, #ARGV do
            fields[i - 9] = 'q' .. ARGV[i]
        end

        register(w, ARGV[8], fields)
    end

    return {0}
end

local t, x = prefix .. 't' .. id, prefix .. 'x' .. id
local others, at = call('HGETALL', x), nil

-- as ngx_mcp_task_apply() for EV_CLAIM
local revision, version = unpack_at('>I8I8', head)
local lease, run_timeout = unpack_at('>I4xxxxI4', head, 169)
local lease_time, seq = tonumber(ARGV[6]), (v[2] or 0) + 1

local step, step_end = after(lease_time > 0 and lease_time or lease)
local phase, phase_end = after(run_timeout)

call('SETRANGE', t, 0, pack('>I8I8I8c32BBc5Bc8I8c8c8c8I8c8c8c12I4',
     revision + 1, version + 1, seq, sub(head, 25, 56),
     2, head:byte(58) + 1, sub(head, 59, 63), 1, sub(head, 65, 72),
     ARGV[5], sub(head, 81, 88), step, phase, now, sub(head, 113, 120),
     token, sub(head, 129, 140), #worker))

for i = 1, #others, 2 do
    if others[i] == 'w' then
        at = i
    end
end

if worker ~= '' then
    call('HSET', x, 'w', worker)
    at = at or #others + 1
    others[at], others[at + 1] = 'w', worker

elseif at then
    call('HDEL', x, 'w')
    table.remove(others, at)
    table.remove(others, at)
end

call('ZREM', KEYS[best], id)

local deadline = math.min(step_end, phase_end, (unpack_at('>I8', head, 81)))

if deadline < 2^63 then
    call('ZADD', d, deadline, id)
else
    call('ZREM', d, id)
end

if ARGV[9] == '1' then
    call('ZADD', KEYS[2], seq, id)
end

call('HSET', m, 'seq', seq, 's1', (v[3] or 0) - 1, 's2', (v[4] or 0) + 1)
call('HSET', s, ARGV[3], token .. id)

wake(w, 't' .. id .. pack('>I8', seq), '',
     't' .. id, 'o' .. sub(head, 321), 'a')

return { 1, id, call('GET', t), others }
