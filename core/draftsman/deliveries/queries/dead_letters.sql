-- Dead letters without a target, for the leader: `core/draftsman/jobs/runs/sweep.py` has the rules of such statements.

-- part: unnotified
SELECT j.number FROM draftsman.unnotified_jobs u
  JOIN draftsman.job_states j ON j.number = u.job
 WHERE (%(only)s::bigint[] IS NULL OR u.job = ANY (%(only)s::bigint[]))
   AND u.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY u.job
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF j SKIP LOCKED

-- name: notify_candidates
-- include: unnotified

-- Dead letters without a target are sent to the fallback, once; without a fallback they are only
-- returned.
-- name: notify
WITH due AS MATERIALIZED (
-- include: unnotified
), dequeued AS (
    DELETE FROM draftsman.unnotified_jobs u USING due WHERE u.job = due.number
    RETURNING u.job
), notified AS (
    INSERT INTO draftsman.deliveries (job, channel, target, thread, thread_key, kind, dedupe_key)
    SELECT t.job, f.channel, f.target, f.thread, 'D-' || t.job || ' ' || f.channel || ':' || f.target
           || coalesce('/' || f.thread, ''), 'result', 'result'
      FROM dequeued t
     CROSS JOIN (SELECT %(channel)s::draftsman.delivery_channel AS channel,
                        %(target)s::text AS target, %(thread)s::text AS thread) f
     WHERE f.channel IS NOT NULL
     ORDER BY t.job
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
)
SELECT d.number, r.invoker_id
  FROM due d JOIN draftsman.job_requests r ON r.number = d.number
 ORDER BY d.number
