#!lua
-- Creates a task.  Without allow-oom: a full server refuses it at once.
--
-- KEYS t x i d q c m w k
-- ARGV run id token o max_tasks max_owner_tasks max_owner_bytes bytes head
--      rest deadline queue_base tool flags {field value}...
-- flags: 1 has a progress token, 2 recent
-- Returns {1, seq}; {2, seq}: was done before; {0}: the id is in use;
-- {-1}, {-2}, {-3}: limit of tasks, of the owner's tasks, of its bytes

local t, d, q, m, w = KEYS[1], KEYS[4], KEYS[5], KEYS[7], KEYS[8]
local id, o, bytes, tool = ARGV[2], ARGV[4], tonumber(ARGV[8]), ARGV[13]
local owner_tasks, owner_bytes = 'n' .. o, 'b' .. o

local v = call('HMGET', m, 'run', 'seq', 'n', 'b', 's1',
               owner_tasks, owner_bytes)

if v[1] ~= ARGV[1] then
    return {-9}
end

local old = call('GETRANGE', t, 48, 279)

if old ~= '' then
    if has_token(sub(old, 185), ARGV[3]) then
        return {2, (unpack_at('>I8', old))}
    end

    return {0}
end

local seq, n, b = (v[2] or 0) + 1, (v[3] or 0) + 1, (v[4] or 0) + bytes
local on, ob = (v[6] or 0) + 1, (v[7] or 0) + bytes

local max_tasks, max_owner_tasks, max_owner_bytes
    = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

if max_owner_tasks > 0 and on > max_owner_tasks then
    return {-2}
end

if max_owner_bytes > 0 and ob > max_owner_bytes then
    return {-3}
end

if max_tasks > 0 and n > max_tasks then
    return {-1}
end

local head, flags, number = ARGV[9], tonumber(ARGV[14]), pack('>I8', seq)

-- changed; queue_seq and seq
call('SET', t, sub(head, 1, 16) .. number .. sub(head, 25, 40) .. number
               .. number .. sub(head, 57) .. ARGV[10])

if ARGV[15] then
    call('HSET', KEYS[2], unpack(ARGV, 15))
end

call('ZADD', KEYS[3], seq, id)

if ARGV[11] ~= '' then
    call('ZADD', d, ARGV[11], id)
end

local claimable = ARGV[12] ~= ''

if claimable then
    call('ZADD', q, ARGV[12] + seq, id)
end

if flags >= 2 then
    call('ZADD', KEYS[6], seq, id)
end

if flags % 2 == 1 then
    call('SET', KEYS[9], id)
end

call('HSET', m, 'seq', seq, 'n', n, 'b', b, 's1', (v[5] or 0) + 1,
     owner_tasks, on, owner_bytes, ob)

wake(w, 't' .. id .. number, claimable and tool or '', 'o' .. o, 'a')

return {1, seq}
