// What Redis does in one step, as Lua: a script is atomic, and reads one clock, that of the store.
// Keys come as KEYS and all are of one hash slot; everything that is written has an end. Texts only;
// redis-link.ts sends them and reads what they return.

/** What stands before the scripts that ask for the time: milliseconds since the epoch. */
const NOW = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`;

/** Lets a sorted set of expiries end with its last member. */
const EXPIRE_WITH_LAST = `
local function expire_with_last(key, more)
  local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIREAT', key, last[2] + 1000)
    if more then redis.call('PEXPIREAT', more, last[2] + 1000) end
  end
end
`;

/**
 * KEYS version, replicas, ended, words; ARGV replica, milliseconds that a replica counts as there, mark, most,
 * the last word that was read, most words. Returns version, replicas, now, hashes with their expiries in turn,
 * and words with their places in turn. Those that were read are forgotten; those that are shown are not yet,
 * because this answer may be lost.
 */
export const POLL = `${NOW}
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
local ended = redis.call('ZRANGEBYSCORE', KEYS[3], ARGV[3], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', ARGV[5])
local words = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[6])
return {redis.call('GET', KEYS[1]) or '', redis.call('ZCARD', KEYS[2]), now, ended, words}
`;

/** KEYS version, expiries, texts, lifted. Returns version, ids and texts in turn, lifted ids. */
export const REVOCATIONS = `${NOW}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
  redis.call('HDEL', KEYS[3], id)
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
return {redis.call('GET', KEYS[1]) or '', redis.call('HGETALL', KEYS[3]), redis.call('ZRANGE', KEYS[4], 0, -1)}
`;

/**
 * KEYS version, expiries, texts, lifted; ARGV id, text, milliseconds left, most, new version, its
 * milliseconds, channel. Returns 0 where there is no room.
 */
export const ADD_REVOCATION = `${NOW}${EXPIRE_WITH_LAST}
if redis.call('ZSCORE', KEYS[4], ARGV[1]) or redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 1 end
if redis.call('ZCOUNT', KEYS[2], now, '+inf') >= tonumber(ARGV[4]) then return 0 end
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
expire_with_last(KEYS[2], KEYS[3])
redis.call('SET', KEYS[1], ARGV[5], 'PX', ARGV[6])
redis.call('PUBLISH', ARGV[7], '')
return 1
`;

/** KEYS as above; ARGV id, milliseconds left, new version, its milliseconds, channel. */
export const LIFT_REVOCATION = `${NOW}${EXPIRE_WITH_LAST}
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('ZADD', KEYS[4], now + ARGV[2], ARGV[1])
expire_with_last(KEYS[4])
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
redis.call('PUBLISH', ARGV[5], '')
return 1
`;

/** KEYS ended; ARGV hash, milliseconds left, most. Past the bound the oldest are forgotten. */
export const END_SESSION = `${NOW}${EXPIRE_WITH_LAST}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[3])
expire_with_last(KEYS[1])
return 1
`;

/**
 * KEYS replicas, words of each that is told; ARGV most, milliseconds that a replica counts as there, and with no
 * room, milliseconds left, channel, then replica and word in turn. Returns how many were told, and -1 where one
 * that is there has no room: then none is. One step for all, so that words to all have one order everywhere; a
 * place is a time in microseconds, because a place that was read must not come again.
 */
export const ENQUEUE_MESSAGES = `${NOW}
local there = {}
for i = 2, #KEYS do
  local silent = now - (redis.call('ZSCORE', KEYS[1], ARGV[2 * i + 2]) or 0)
  local has_room = redis.call('ZCARD', KEYS[i]) < tonumber(ARGV[1])
  if silent <= tonumber(ARGV[2]) and has_room then there[#there + 1] = i
  elseif silent <= tonumber(ARGV[3]) then return -1 end
end
for _, i in ipairs(there) do
  local last = redis.call('ZREVRANGE', KEYS[i], 0, 0, 'WITHSCORES')
  redis.call('ZADD', KEYS[i], math.max((last[2] or 0) + 1, now * 1000), ARGV[2 * i + 3])
  redis.call('PEXPIRE', KEYS[i], ARGV[4])
end
if #there > 0 then redis.call('PUBLISH', ARGV[5], '') end
return #there
`;

/** KEYS replicas; ARGV milliseconds that a replica counts as there, most. Returns their names. */
export const REPLICAS = `${NOW}
return redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[1], '+inf', 'LIMIT', 0, ARGV[2])
`;

/**
 * KEYS uses; ARGV count, milliseconds of a step, steps of a window. A window that slides in steps, as
 * memory-limits.ts counts it: one step more than a window has is kept, so that it errs towards refusing.
 * Returns 0 for a use that was counted, else milliseconds until one more fits.
 */
export const TAKE = `${NOW}
local length, steps = tonumber(ARGV[2]), tonumber(ARGV[3])
local step = math.floor(now / length)
local fields = redis.call('HGETALL', KEYS[1])
local total, kept = 0, {}
for i = 1, #fields, 2 do
  local at = tonumber(fields[i])
  if at < step - steps then redis.call('HDEL', KEYS[1], fields[i])
  else
    total = total + tonumber(fields[i + 1])
    kept[#kept + 1] = {at, tonumber(fields[i + 1])}
  end
end
if total < tonumber(ARGV[1]) then
  redis.call('HINCRBY', KEYS[1], step, 1)
  redis.call('PEXPIRE', KEYS[1], math.ceil(length * (steps + 2)))
  return 0
end
table.sort(kept, function(a, b) return a[1] < b[1] end)
for _, use in ipairs(kept) do
  total = total - use[2]
  if total < tonumber(ARGV[1]) then
    return math.max(1, math.ceil((use[1] + steps + 1) * length - now))
  end
end
return math.ceil(length * steps)
`;
