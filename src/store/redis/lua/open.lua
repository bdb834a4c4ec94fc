#!lua flags=allow-oom
-- Announces the server that a connection was opened to.  All other scripts
-- refuse until this has been done after a failover or a restart.
--
-- KEYS m w
-- ARGV run
-- Returns {epoch}

local m, w, run = KEYS[1], KEYS[2], ARGV[1]
local v = call('HMGET', m, 'run', 'epoch')

if v[1] == run then
    return { tonumber(v[2]) }
end

-- a command that is sent again may reach another server than it was meant for
if not call('INFO', 'server'):find('run_id:' .. run, 1, true) then
    return {-9}
end

-- a full synchronization may have brought w here
call('UNLINK', w)
call('HSET', m, 'run', run)

-- A short hash without long values is searched field by field, which takes a
-- third of the time of a script.  A value of more than 64 bytes prevents that.
call('HSETNX', m, 'about', 'the counters of a partition of a zone of '
                           .. 'nginx-mcp-tasks, see src/store/redis')

return { call('HINCRBY', m, 'epoch', 1) }
