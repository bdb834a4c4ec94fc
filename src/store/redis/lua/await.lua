#!lua flags=allow-oom
-- Registers a seat in fields of w ('+'), or takes it out ('-').
--
-- KEYS w m
-- ARGV run seat sign field...
-- Returns {1}

local w, seat = KEYS[1], ARGV[2]

if call('HGET', KEYS[2], 'run') ~= ARGV[1] then
    return {-9}
end

if ARGV[3] == '+' then
    register(w, seat, { unpack(ARGV, 4) })
    return {1}
end

local entry = ',' .. seat .. ','

for i, seats in ipairs(call('HMGET', w, unpack(ARGV, 4))) do
    if seats and seats:find(entry, 1, true) then
        set_seats(w, ARGV[i + 3], (seats:gsub(entry, ',')))
    end
end

return {1}
