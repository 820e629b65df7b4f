-- Existence and locks of jobs.

-- The first of these numbers that no job has which the viewer may see.
-- name: missing
SELECT min(n)
  FROM unnest(%(jobs)s::bigint[]) AS w (n)
 WHERE (SELECT number FROM draftsman.job_requests WHERE number = n AND
-- visible job: number
       ) IS NULL

-- Locks a job before what belongs to it; the next statement then reads committed data.
-- name: lock
SELECT number FROM draftsman.job_states WHERE number = %(job)s FOR NO KEY UPDATE

-- name: lock_jobs
SELECT number FROM draftsman.job_states WHERE number = ANY (%(jobs)s::bigint[]) ORDER BY number
   FOR NO KEY UPDATE

-- Locks the job of a run, so that the transaction has its lease.
-- name: lock_run
SELECT number FROM draftsman.job_states
 WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
   FOR NO KEY UPDATE

-- What the trace of a job begins with.
-- name: submission
SELECT id, overrides ->> 'traceparent' FROM draftsman.job_requests WHERE number = %(job)s

-- Locked jobs, and their cancellation.

-- name: lock_to_cancel
SELECT j.number, j.type, j.status, r.invoker_id, j.worker_id, j.run_count,
       j.cancel_requested_at IS NOT NULL AS canceling
  FROM draftsman.job_states j
  JOIN draftsman.job_requests r ON r.number = j.number
 WHERE j.number = %(job)s
   FOR NO KEY UPDATE OF j

-- A running job is requested to stop; its worker is notified, and learns of it with its next fenced
-- write.
-- name: request_cancel
SELECT draftsman.request_cancel(
    %(job)s::bigint, %(by)s::text, %(reason)s::text, %(detail)s::jsonb)

-- Cancels an unfinished job, with its open question and its open run.
-- name: cancel_now
SELECT draftsman.cancel_job(%(job)s::bigint, %(by)s::text, %(reason)s::text)

-- Jobs whose time has come, for the leader: `core/draftsman/jobs/runs/sweep.py` has the rules of such statements.

-- part: promote_due
SELECT min(coalesce(next_retry_at, run_at)) FROM draftsman.job_states
 WHERE status IN ('scheduled', 'retrying')

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
