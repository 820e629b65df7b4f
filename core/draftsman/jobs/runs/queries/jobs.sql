-- Existence and locks of jobs.

-- The first of these numbers that no job has.
-- name: missing
SELECT min(n)
  FROM unnest(%(jobs)s::bigint[]) AS w (n)
 WHERE (SELECT number FROM draftsman.job_requests WHERE number = n) IS NULL

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
