-- Jobs whose time has come, for the leader: `core/draftsman/jobs/runs/sweep.py` has the rules of such statements.

-- part: promotable
SELECT j.number FROM draftsman.job_states j
 WHERE j.status IN ('scheduled', 'retrying')
   AND coalesce(j.next_retry_at, j.run_at) <= draftsman.now()
   AND (%(only)s::bigint[] IS NULL OR j.number = ANY (%(only)s::bigint[]))
   AND j.number <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY coalesce(j.next_retry_at, j.run_at)
 LIMIT %(limit)s
   FOR NO KEY UPDATE SKIP LOCKED

-- name: promote_candidates
-- include: promotable

-- name: promote
WITH due AS MATERIALIZED (
-- include: promotable
), context AS MATERIALIZED (
    SELECT set_config('draftsman.actor', 'system', true)
), updated AS (
    UPDATE draftsman.job_states j
       SET status = CASE WHEN j.status = 'scheduled' AND j.run_count > 0 THEN 'resumed'
                    ELSE 'queued' END::draftsman.job_status,
           next_retry_at = NULL, queued_at = draftsman.now(), version = j.version + 1,
           updated_at = draftsman.now()
      FROM due d
     CROSS JOIN context
     WHERE j.number = d.number AND j.status IN ('scheduled', 'retrying')
    RETURNING j.number, j.queue
)
SELECT number, pg_notify('draftsman_jobs', queue)::text FROM updated
