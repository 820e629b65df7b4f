-- Claims of deliveries by the processes that send them.

-- Due deliveries of a channel: a share for each target that is not busy or paused, the targets in
-- turn, of the targets that the process serves. Urgent deliveries come first, and exclusively in a reserved target, unless another delivery
-- has been due longer by the head start. A delivery that was being sent is in doubt, unless a known
-- sender had not begun its call.
-- name: claim
WITH RECURSIVE due AS (
    (SELECT target FROM draftsman.deliveries
      WHERE channel = %(channel)s AND next_attempt_at IS NOT NULL AND target > %(after)s
      ORDER BY target
      LIMIT 1)
     UNION ALL
    SELECT (SELECT d.target FROM draftsman.deliveries d
             WHERE d.channel = %(channel)s AND d.next_attempt_at IS NOT NULL
               AND d.target > due.target
             ORDER BY d.target
             LIMIT 1)
      FROM due
     WHERE due.target IS NOT NULL
), turns AS (
    SELECT due.target, due.target = ANY (%(reserved)s::text[]) OR coalesce(
               u.next_attempt_at <= f.next_attempt_at + make_interval(secs => %(head_start)s), false)
               AS urgent
      FROM due
     CROSS JOIN LATERAL (
           SELECT next_attempt_at FROM draftsman.deliveries
            WHERE channel = %(channel)s AND target = due.target
              AND next_attempt_at <= draftsman.now()
            ORDER BY next_attempt_at
            LIMIT 1) f
      LEFT JOIN LATERAL (
           SELECT next_attempt_at FROM draftsman.deliveries
            WHERE channel = %(channel)s AND target = due.target AND urgent
              AND next_attempt_at <= draftsman.now()
            ORDER BY next_attempt_at
            LIMIT 1) u ON true
     WHERE due.target <> ALL (%(busy)s::text[])
       AND (%(served)s::text[] IS NULL OR draftsman.is_served(due.target, %(served)s::text[]))
       AND NOT EXISTS (SELECT FROM draftsman.channel_limits l
                        WHERE l.bucket IN (%(channel)s::text, %(channel)s::text || ':' || due.target)
                          AND l.paused_until > draftsman.now())
), mine AS MATERIALIZED (
    SELECT p.seq, p.next_attempt_at, nextval('draftsman.lease_tokens') AS token
      FROM turns
     CROSS JOIN LATERAL (
           (SELECT seq, next_attempt_at
              FROM (SELECT seq, next_attempt_at FROM draftsman.deliveries
                     WHERE turns.urgent AND channel = %(channel)s AND target = turns.target
                       AND urgent AND next_attempt_at <= draftsman.now()
                     ORDER BY next_attempt_at, seq
                     LIMIT %(share)s
                       FOR NO KEY UPDATE SKIP LOCKED) a)
            UNION ALL
           (SELECT seq, next_attempt_at
              FROM (SELECT seq, next_attempt_at FROM draftsman.deliveries
                     WHERE NOT turns.urgent AND channel = %(channel)s AND target = turns.target
                       AND next_attempt_at <= draftsman.now()
                     ORDER BY next_attempt_at, seq
                     LIMIT %(share)s
                       FOR NO KEY UPDATE SKIP LOCKED) b)) p
     LIMIT %(free)s
)
UPDATE draftsman.deliveries d
   SET status = 'sending',
       in_doubt = d.in_doubt OR (d.status = 'sending' AND (
           d.sender_lock_id IS NULL OR d.call_ends_at IS NOT NULL)),
       attempts = d.attempts + 1, lease_token = m.token, sender_lock_id = %(sender)s,
       next_attempt_at = draftsman.now() + make_interval(secs => %(lease)s)
  FROM mine m
 WHERE d.seq = m.seq AND d.next_attempt_at <= draftsman.now()
RETURNING d.seq, d.id, d.job, d.question, d.original, d.channel, d.target, d.thread,
          d.thread_key, d.kind, d.version, d.payload, d.attempts, d.in_doubt, d.lease_token,
          d.created_at, m.next_attempt_at AS due_at,
          d.urgent OR m.next_attempt_at <= draftsman.now() - make_interval(secs => %(head_start)s)
              AS urgent,
          greatest(0, extract(epoch FROM d.call_ends_at - draftsman.now()))::float8 AS call_left

-- Claims of a process whose session lock is free are due at once: the token is valid until another
-- process claims the delivery.
-- name: rescue
UPDATE draftsman.deliveries d
   SET next_attempt_at = draftsman.now()
  FROM (SELECT o.seq FROM draftsman.deliveries o
         WHERE o.status = 'sending' AND o.channel = ANY (%(channels)s::draftsman.channel[])
           AND o.sender_lock_id IS NOT NULL AND o.next_attempt_at > draftsman.now()
           AND NOT draftsman.is_connected(o.sender_lock_id)
         ORDER BY o.status, o.seq
         LIMIT %(limit)s
           FOR NO KEY UPDATE OF o SKIP LOCKED) g
 WHERE d.seq = g.seq

-- A call begins, or continues, for so many seconds; not after the lease expired or was replaced.
-- name: begin_call
UPDATE draftsman.deliveries
   SET call_ends_at = draftsman.now() + make_interval(secs => %(seconds)s)
 WHERE seq = %(seq)s AND lease_token = %(token)s AND status = 'sending'
   AND next_attempt_at > draftsman.now()

-- Targets with due deliveries that no process sends: those that no live worker has, or any
-- target whose delivery nobody has claimed for so long. At most 1,000 deliveries of each are counted.
-- name: unserved
WITH RECURSIVE due AS (
    (SELECT channel, target FROM draftsman.deliveries
      WHERE next_attempt_at IS NOT NULL
      ORDER BY channel, target
      LIMIT 1)
     UNION ALL
    SELECT n.channel, n.target
      FROM due
     CROSS JOIN LATERAL (
           SELECT d.channel, d.target FROM draftsman.deliveries d
            WHERE d.next_attempt_at IS NOT NULL
              AND (d.channel, d.target) > (due.channel, due.target)
            ORDER BY d.channel, d.target
            LIMIT 1) n
)
SELECT t.channel, t.target, f.count, f.seconds, f.error
  FROM (SELECT * FROM due LIMIT 1000) t
 CROSS JOIN LATERAL (
       SELECT count(*) AS count,
              extract(epoch FROM draftsman.now() - min(w.next_attempt_at))::float8 AS seconds,
              max(w.last_error) AS error
         FROM (SELECT next_attempt_at, last_error FROM draftsman.deliveries
                WHERE channel = t.channel AND target = t.target
                  AND next_attempt_at <= draftsman.now()
                ORDER BY next_attempt_at
                LIMIT 1000) w) f
 WHERE f.count > 0
   AND NOT EXISTS (SELECT FROM draftsman.channel_limits l
                    WHERE l.bucket IN (t.channel::text, t.channel || ':' || t.target)
                      AND l.paused_until > draftsman.now())
   AND (f.seconds > %(late)s
        OR EXISTS (SELECT FROM draftsman.channels c WHERE c.name = t.channel AND c.serves_targets)
           AND NOT EXISTS (
           SELECT FROM draftsman.serving_workers(%(lease)s) w
            WHERE t.channel || ':' || t.target = ANY (w.targets)))
 ORDER BY t.channel, t.target

-- Seconds until a delivery of a channel is due, NULL without any.
-- name: next_due
WITH RECURSIVE due AS (
    (SELECT target, next_attempt_at FROM draftsman.deliveries
      WHERE channel = %(channel)s AND next_attempt_at IS NOT NULL
      ORDER BY target, next_attempt_at
      LIMIT 1)
     UNION ALL
    SELECT n.target, n.next_attempt_at
      FROM due
     CROSS JOIN LATERAL (
           SELECT d.target, d.next_attempt_at FROM draftsman.deliveries d
            WHERE d.channel = %(channel)s AND d.next_attempt_at IS NOT NULL
              AND d.target > due.target
            ORDER BY d.target, d.next_attempt_at
            LIMIT 1) n
)
SELECT extract(epoch FROM min(greatest(d.next_attempt_at, l.paused_until)) - draftsman.now())::float8
  FROM (SELECT * FROM due
         WHERE %(served)s::text[] IS NULL OR draftsman.is_served(due.target, %(served)s::text[])
         LIMIT 1000) d
 CROSS JOIN LATERAL (
       SELECT max(paused_until) AS paused_until FROM draftsman.channel_limits
        WHERE bucket IN (%(channel)s::text, %(channel)s::text || ':' || d.target)) l
