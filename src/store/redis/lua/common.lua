-- Prepended to every script.
--
-- A record begins with a head of 320 bytes, see ngx_mcp_redis_record.h.
-- Numbers in it are big-endian and less than 2^53; NEVER and tokens are only
-- compared, so they stay strings.

local call, sub = redis.call, string.sub
local pack, unpack_at = struct.pack, struct.unpack

local HEAD = 320
local NEVER = '\255\255\255\255\255\255\255\255'

-- loops are limited to this: no script may block the server
local MAX = 64


-- whether the operation is one of the last 8 of the 48 bytes of tokens
local function has_token(tokens, token)
    for i = 1, #tokens, 6 do
        if sub(tokens, i, i + 5) == token then
            return true
        end
    end

    return false
end


-- Who waits is not replicated: seats are connected to this server only.
local function set_seats(w, field, seats)
    redis.set_repl(redis.REPL_NONE)

    if seats == ',' then
        call('HDEL', w, field)
    else
        call('HSET', w, field, seats)
    end

    redis.set_repl(redis.REPL_ALL)
end


-- Adds the seat to fields of w.
local function register(w, seat, fields)
    if #fields == 0 then
        return
    end

    local found = call('HMGET', w, unpack(fields))
    local entry = ',' .. seat .. ','

    for i, seats in ipairs(found) do
        if not seats then
            set_seats(w, fields[i], entry)

        elseif not seats:find(entry, 1, true) then
            set_seats(w, fields[i], seats .. seat .. ',')
        end
    end
end


-- Sends a claim's wake-up to the first seat that receives it.  Seats are taken
-- out when they are tried: the one that receives it registers again.
local function offer(w, prefix, tool, seats)
    local n = 0

    for seat in seats:gmatch('%d+') do
        n = n + 1
        seats = sub(seats, #seat + 2)

        if call('SPUBLISH', prefix .. 'n' .. seat, 'q' .. tool) > 0
           or n == MAX
        then
            break
        end
    end

    set_seats(w, 'q' .. tool, seats)
end


-- Sends the message once to each seat in the fields of w.  These stay
-- registered, except a seat without a receiver: its machine is gone.  If there
-- are too many seats, all machines get one message instead.
local function publish(w, prefix, message, fields, found)
    local told, n, gone = {}, 0, false

    for i = 2, #fields do
        for seat in (found[i] or ''):gmatch('%d+') do
            if not told[seat] then
                told[seat] = true
                n = n + 1
            end
        end
    end

    if n > MAX then
        call('SPUBLISH', prefix .. 'all', message)
        return
    end

    for seat in pairs(told) do
        if call('SPUBLISH', prefix .. 'n' .. seat, message) == 0 then
            for i = 2, #fields do
                if found[i] then
                    found[i] = found[i]:gsub(',' .. seat .. ',', ',')
                end
            end

            gone = true
        end
    end

    if gone then
        for i = 2, #fields do
            if found[i] then
                set_seats(w, fields[i], found[i])
            end
        end
    end
end


-- Wakes one seat that waits for work of the tool ('': none), and all seats in
-- the other fields of w.  Mostly nobody waits: one command finds out.  Returns
-- the seats that were found.
local function wake(w, message, tool, ...)
    local fields = { 'q' .. tool, ... }
    local found = call('HMGET', w, unpack(fields))
    local prefix = sub(w, 1, -2)

    for i = 2, #fields do
        if found[i] then
            publish(w, prefix, message, fields, found)
            break
        end
    end

    if tool ~= '' and found[1] then
        offer(w, prefix, tool, found[1])
    end

    return found
end
