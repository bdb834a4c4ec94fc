#!lua flags=allow-oom
-- Removes a task with everything that belongs to it, if its revision is the
-- expected one.
--
-- KEYS t r x i d q c m w k z
-- ARGV run id revision o state bytes session flags
-- flags: 1 has a progress token, 2 publish to all machines
-- Returns {1}; {0, head}: another revision; {0}: no such task

local t, k, c, m, w = KEYS[1], KEYS[10], KEYS[7], KEYS[8], KEYS[9]
local id, o, flags = ARGV[2], ARGV[4], tonumber(ARGV[8])
local state, owner_tasks, owner_bytes = 's' .. ARGV[5], 'n' .. o, 'b' .. o

local v = call('HMGET', m, 'run', 'seq', 'n', 'b', state,
               owner_tasks, owner_bytes)

if v[1] ~= ARGV[1] then
    return {-9}
end

local revision = call('GETRANGE', t, 0, 7)

if revision == '' then
    return {0}
end

if revision ~= ARGV[3] then
    return { 0, call('GETRANGE', t, 0, HEAD - 1) }
end

call('UNLINK', t, KEYS[2], KEYS[3])
call('ZREM', KEYS[4], id)
call('ZREM', KEYS[5], id)

if state == 's1' then
    call('ZREM', KEYS[6], id)
end

-- a key that is not used repeats t
if c ~= t then
    call('ZREM', c, id)
end

if ARGV[7] ~= '' then
    call('ZREM', KEYS[11], id)
end

-- a newer task may have the same token
if flags % 2 == 1 and call('GET', k) == id then
    call('UNLINK', k)
end

-- the removal has a number of its own, greater than the last change's
local seq, bytes, on = (v[2] or 0) + 1, tonumber(ARGV[6]), (v[6] or 0) - 1

if on > 0 then
    call('HSET', m, 'seq', seq, 'n', (v[3] or 0) - 1, 'b', (v[4] or 0) - bytes,
         state, (v[5] or 0) - 1, owner_tasks, on,
         owner_bytes, (v[7] or 0) - bytes)
else
    call('HSET', m, 'seq', seq, 'n', (v[3] or 0) - 1, 'b', (v[4] or 0) - bytes,
         state, (v[5] or 0) - 1)
    call('HDEL', m, owner_tasks, owner_bytes)
end

local message = 't' .. id .. pack('>I8', seq)
local found

if ARGV[7] ~= '' then
    found = wake(w, message, '', 't' .. id, 'o' .. o, 'a', 's' .. ARGV[7])
else
    found = wake(w, message, '', 't' .. id, 'o' .. o, 'a')
end

if found[2] then
    set_seats(w, 't' .. id, ',')
end

if flags >= 2 then
    call('SPUBLISH', sub(w, 1, -2) .. 'all', message)
end

return {1}
