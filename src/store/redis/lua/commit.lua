#!lua flags=allow-oom
-- Replaces the head of a task, if its revision is the expected one.
--
-- KEYS t r x d q c m w z
-- ARGV run id token revision o head flags deadline queue_base old_state
--      new_state growth max_owner_bytes tool session has_result result
--      {field value}...
-- flags: 1 CHANGED, 2 TURNED, 4 MOVED, 8 REQUEUED, 16 recent, 32 announced
-- session, 64 publish to all machines
-- Returns {1, changed or 0, queue_seq or 0}; {2, head}: was done before;
-- {0, head}: another revision; {0}: no such task; {-3}: limit of the owner's
-- bytes

local t, x, q, m, w = KEYS[1], KEYS[3], KEYS[5], KEYS[7], KEYS[8]
local id, o, head, tool = ARGV[2], ARGV[5], ARGV[6], ARGV[14]
local from, to = 's' .. ARGV[10], 's' .. ARGV[11]
local owner_bytes = 'b' .. o

local v = call('HMGET', m, 'run', 'seq', 'b', from, to, owner_bytes)

if v[1] ~= ARGV[1] then
    return {-9}
end

local revision = call('GETRANGE', t, 0, 7)

if revision == '' then
    return {0}
end

if revision ~= ARGV[4] then
    local current = call('GETRANGE', t, 0, HEAD - 1)

    return { has_token(sub(current, 233, 280), ARGV[3]) and 2 or 0, current }
end

local growth, limit = tonumber(ARGV[12]), tonumber(ARGV[13])
local b, ob = (v[3] or 0) + growth, (v[6] or 0) + growth

if growth > 0 and limit > 0 and ob > limit then
    return {-3}
end

local flags = tonumber(ARGV[7])
local changed, requeued = flags % 2 == 1, bit.band(flags, 8) ~= 0
local seq, number = tonumber(v[2] or 0), sub(head, 17, 24)

if changed or requeued then
    seq = seq + 1

    local new = pack('>I8', seq)

    head = sub(head, 1, 16)
           .. (changed and new or number)
           .. (bit.band(flags, 2) ~= 0 and new or sub(head, 25, 32))
           .. (bit.band(flags, 4) ~= 0 and new or sub(head, 33, 40))
           .. (requeued and new or sub(head, 41, 48))
           .. sub(head, 49)

    if changed then
        number = new
    end
end

call('SETRANGE', t, 0, head)

if ARGV[16] == '1' then
    call('SET', KEYS[2], ARGV[17])
end

if ARGV[18] then
    for i = 18, #ARGV, 2 do
        if ARGV[i + 1] == '' then
            call('HDEL', x, ARGV[i])
        else
            call('HSET', x, ARGV[i], ARGV[i + 1])
        end
    end
end

if ARGV[8] ~= '' then
    call('ZADD', KEYS[4], ARGV[8], id)
else
    call('ZREM', KEYS[4], id)
end

-- only queued tasks are in a queue
local claimable = false

if ARGV[9] ~= '' then
    if requeued then
        claimable = call('ZADD', q, ARGV[9] + seq, id) == 1
    else
        claimable = call('ZADD', q, 'NX',
                         ARGV[9] + unpack_at('>I8', head, 41), id) == 1
    end

elseif from == 's1' then
    call('ZREM', q, id)
end

if changed and bit.band(flags, 16) ~= 0 then
    call('ZADD', KEYS[6], seq, id)
end

local announced = bit.band(flags, 32) ~= 0

if announced then
    call('ZADD', KEYS[9], (unpack_at('>I8', number)), id)
end

if from ~= to then
    if growth ~= 0 then
        call('HSET', m, 'seq', seq, 'b', b, owner_bytes, ob,
             from, (v[4] or 0) - 1, to, (v[5] or 0) + 1)
    else
        call('HSET', m, 'seq', seq, from, (v[4] or 0) - 1,
             to, (v[5] or 0) + 1)
    end

elseif growth ~= 0 then
    call('HSET', m, 'seq', seq, 'b', b, owner_bytes, ob)

elseif changed or requeued then
    call('HSET', m, 'seq', seq)
end

local message = 't' .. id .. number
tool = claimable and tool or ''

if changed and announced then
    wake(w, message, tool, 't' .. id, 'o' .. o, 'a', 's' .. ARGV[15])

elseif changed then
    wake(w, message, tool, 't' .. id, 'o' .. o, 'a')

elseif announced then
    wake(w, message, tool, 's' .. ARGV[15])

elseif claimable then
    wake(w, message, tool)
end

if flags >= 64 then
    call('SPUBLISH', sub(w, 1, -2) .. 'all', message)
end

return { 1, changed and seq or 0, requeued and seq or 0 }
