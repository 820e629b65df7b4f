-- Rate limits of channels.

-- Takes from all buckets or from none, and then returns the seconds until the next attempt.
-- name: make_buckets
INSERT INTO draftsman.channel_limits (bucket)
SELECT bucket FROM unnest(%(buckets)s::text[]) AS b (bucket) ORDER BY bucket
    ON CONFLICT DO NOTHING

-- name: consume_tokens
WITH held AS MATERIALIZED (
    SELECT l.bucket, a.every, greatest(l.paused_until,
               l.free_at - make_interval(secs => a.every * (a.burst - 1))) AS open_at
      FROM unnest(%(buckets)s::text[], %(every)s::float8[], %(bursts)s::int[])
           AS a (bucket, every, burst)
      JOIN draftsman.channel_limits l ON l.bucket = a.bucket
     ORDER BY l.bucket
       FOR NO KEY UPDATE OF l
), closed AS MATERIALIZED (
    SELECT max(open_at) AS until FROM held WHERE open_at > draftsman.now()
), consumed AS (
    UPDATE draftsman.channel_limits l
       SET free_at = greatest(l.free_at, draftsman.now()) + make_interval(secs => h.every)
      FROM held h
     CROSS JOIN closed c
     WHERE l.bucket = h.bucket AND c.until IS NULL
)
SELECT extract(epoch FROM until - draftsman.now())::float8 FROM closed

-- A retry-after applies to every process.
-- name: pause
INSERT INTO draftsman.channel_limits AS l (bucket, paused_until, reason)
VALUES (%(bucket)s, draftsman.now() + make_interval(secs => %(seconds)s), %(reason)s)
    ON CONFLICT (bucket) DO UPDATE
       SET paused_until = greatest(l.paused_until, excluded.paused_until),
           reason = excluded.reason

-- Methods that a chat refused, and that are not used for a while.
-- name: paused
SELECT bucket, extract(epoch FROM paused_until - draftsman.now())::float8 AS seconds, reason
  FROM draftsman.channel_limits
 WHERE paused_until > draftsman.now() + make_interval(secs => %(least)s) AND reason IS NOT NULL
 ORDER BY bucket
 LIMIT %(limit)s

-- Deliveries that were attempted during the pause are delayed by it; those claimed by another
-- process stay as they are.
-- name: resume
WITH opened AS (
    UPDATE draftsman.channel_limits SET paused_until = draftsman.now()
     WHERE bucket = %(bucket)s AND paused_until > draftsman.now()
    RETURNING bucket
)
UPDATE draftsman.deliveries SET next_attempt_at = draftsman.now()
 WHERE seq = ANY (ARRAY(
       SELECT seq FROM draftsman.deliveries
        WHERE channel = %(channel)s AND next_attempt_at > draftsman.now()
          AND status IN ('pending', 'unconfirmed') AND EXISTS (SELECT FROM opened)
        ORDER BY seq FOR NO KEY UPDATE))
