#!lua flags=allow-oom
-- Reads what all machines that use the zone have to agree on.  The first one
-- decides; a machine that disagrees gets no seat.
--
-- KEYS meta
-- ARGV schema partitions secret wants_seat
-- Returns {schema, partitions, secret, seat or 0}

local meta = KEYS[1]

call('HSETNX', meta, 'schema', ARGV[1])
call('HSETNX', meta, 'partitions', ARGV[2])
call('HSETNX', meta, 'secret', ARGV[3])

local v = call('HMGET', meta, 'schema', 'partitions', 'secret')
local seat = 0

if ARGV[4] == '1' and v[1] == ARGV[1] and v[2] == ARGV[2] then
    seat = call('HINCRBY', meta, 'seats', 1)
end

return { tonumber(v[1]), tonumber(v[2]), v[3], seat }
