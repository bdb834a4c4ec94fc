#!lua flags=allow-oom
-- Reads a task, and registers a seat for its changes in the same step.
--
-- KEYS t r x w m
-- ARGV run seat field...
-- Returns {1, t, r or '', x}; {0}: no such task

if call('HGET', KEYS[5], 'run') ~= ARGV[1] then
    return {-9}
end

local record = call('GET', KEYS[1])

if ARGV[2] ~= '' then
    local fields = {}

    -- nothing would remove the registration for a task that is gone
    for i = 3, #ARGV do
        if record or sub(ARGV[i], 1, 1) ~= 't' then
            fields[#fields + 1] = ARGV[i]
        end
    end

    register(KEYS[4], ARGV[2], fields)
end

if not record then
    return {0}
end

return { 1, record, call('GET', KEYS[2]) or '', call('HGETALL', KEYS[3]) }
