-- The end of a run. Every statement locks the job by its lease: without the lock, it writes
-- nothing.

-- The outcome of a run. A job with a cancel request settles as canceled, whatever the outcome was.
-- name: settle
WITH context AS MATERIALIZED (
    SELECT set_config('draftsman.detail', %(detail)s, true)
), owned AS MATERIALIZED (
    SELECT j.number, j.run_count,
           CASE WHEN j.cancel_requested_at IS NOT NULL THEN 'canceled' ELSE %(status)s
           END::draftsman.job_status AS status,
           j.cancel_requested_at IS NOT NULL AS canceled
      FROM draftsman.job_states j
     CROSS JOIN context
     WHERE j.number = %(job)s AND j.lease_token = %(token)s AND j.status = 'running'
       AND (NOT %(only_canceled)s OR j.cancel_requested_at IS NOT NULL)
       FOR NO KEY UPDATE OF j
), closed AS (
    UPDATE draftsman.job_runs r
       SET status = CASE WHEN m.canceled THEN 'canceled' ELSE %(run_status)s
                    END::draftsman.run_status,
           finished_at = draftsman.now(), exit_code = coalesce(%(exit_code)s, r.exit_code), error = %(error)s,
           error_class = %(error_class)s::draftsman.error_class,
           result = CASE WHEN m.canceled THEN %(result)s::jsonb END
      FROM owned m
     WHERE r.job = m.number AND r.ordinal = m.run_count AND r.status = 'running'
), settled AS (
    UPDATE draftsman.job_states j
       SET status = m.status,
           result = CASE WHEN m.status = 'completed' THEN %(result)s::jsonb END,
           result_token = CASE WHEN m.status = 'completed' THEN %(token)s::bigint END,
           last_error = coalesce(%(error)s, j.last_error),
           error_class = coalesce(%(error_class)s::draftsman.error_class, j.error_class),
           attempts = j.attempts + CASE WHEN m.canceled THEN 0 ELSE %(attempt)s END,
           retry_count = j.retry_count + CASE WHEN m.canceled THEN 0 ELSE %(retry)s END,
           next_retry_at = CASE WHEN m.status = 'retrying'
                           THEN draftsman.now() + make_interval(secs => %(delay)s) END,
           run_at = CASE WHEN m.status = 'scheduled'
                    THEN coalesce(%(until)s, draftsman.now() + make_interval(secs => %(delay)s))
                    ELSE j.run_at END,
           cancel_requested_at = CASE WHEN m.status = 'canceled'
                                 THEN coalesce(j.cancel_requested_at, draftsman.now()) END,
           cancel_requested_by = CASE WHEN m.status = 'canceled'
                                 THEN coalesce(j.cancel_requested_by, 'worker:' || j.worker_id) END,
           cancel_reason = coalesce(j.cancel_reason, CASE WHEN m.status = 'canceled'
                                                     THEN %(reason)s END),
           finished_at = CASE WHEN m.status IN ('completed', 'failed', 'dead_letter', 'canceled')
                         THEN draftsman.now() END,
           queued_at = CASE WHEN m.status = 'resumed' THEN draftsman.now() ELSE j.queued_at END,
           worker_id = NULL, lease_token = NULL, version = j.version + 1,
           updated_at = draftsman.now()
      FROM owned m
     WHERE j.number = m.number
    RETURNING j.number, j.status, j.queue, j.next_retry_at
)
SELECT e.status, e.next_retry_at,
       CASE WHEN e.status = 'resumed' THEN pg_notify('draftsman_jobs', e.queue)::text END AS notified
  FROM settled e

-- The heartbeat of the worker and its runs, which returns the runs it still owns and those with a
-- cancel request. A run that another transaction has locked is owned and gets the next heartbeat;
-- until then its lease is not renewed.
-- It renews the reservations of its jobs.
-- name: heartbeat
WITH alive AS (
    UPDATE draftsman.workers SET heartbeat_at = draftsman.now(), draining = %(draining)s
     WHERE id = %(worker)s
    RETURNING id
), held AS (
    SELECT * FROM unnest(%(jobs)s::bigint[], %(runs)s::int[], %(tokens)s::bigint[])
        AS h (job, run, token)
), beat AS MATERIALIZED (
    SELECT r.job, r.ordinal
      FROM held h
      JOIN draftsman.job_runs r ON r.job = h.job AND r.ordinal = h.run
       AND r.lease_token = h.token AND r.status = 'running'
     ORDER BY r.job
       FOR NO KEY UPDATE OF r SKIP LOCKED
), written AS (
    UPDATE draftsman.job_runs r SET heartbeat_at = draftsman.now()
      FROM beat b
     WHERE r.job = b.job AND r.ordinal = b.ordinal AND r.status = 'running'
), reserving AS MATERIALIZED (
    SELECT queue FROM draftsman.queue_reservations
     WHERE job = ANY (ARRAY(SELECT job FROM beat)) AND expires_at > draftsman.now()
       FOR NO KEY UPDATE SKIP LOCKED
), renewed AS (
    UPDATE draftsman.queue_reservations r
       SET expires_at = draftsman.now() + make_interval(secs => r.seconds)
     WHERE r.queue IN (SELECT queue FROM reserving)
)
SELECT h.token, coalesce(j.lease_token = h.token, false) AS owned,
       EXISTS (SELECT FROM beat b WHERE b.job = h.job AND b.ordinal = h.run) AS renewed,
       j.cancel_requested_at IS NOT NULL AS canceled,
       EXISTS (SELECT FROM draftsman.job_pauses p WHERE p.job = h.job) AS paused,
       EXISTS (SELECT FROM alive) AS registered
  FROM held h
  LEFT JOIN draftsman.job_states j ON j.number = h.job
 UNION ALL
SELECT 0, true, true, false, false, EXISTS (SELECT FROM alive)

-- name: runs
SELECT job, ordinal, worker_id, lease_token, params_snapshot, status, heartbeat_at, started_at,
       finished_at, exit_code, error, error_class::text, usage, result
  FROM draftsman.job_runs
 WHERE job = %(job)s
 ORDER BY ordinal

-- name: ticket_url
SELECT ticket_url FROM draftsman.job_requests WHERE number = %(job)s

-- The pull request of the job's work.
-- name: pull_request
UPDATE draftsman.job_states SET pr_url = %(url)s, updated_at = draftsman.now()
 WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'

-- The agent of a job whose request names none; false after a lost lease.
-- name: assign_agent
SELECT draftsman.assign_agent(%(job)s::bigint, %(token)s::bigint, %(agent)s::text)

-- The parameters that a run resolved, and the exit code of its program.
-- name: describe
WITH owned AS MATERIALIZED (
    SELECT number, run_count FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       FOR NO KEY UPDATE
)
UPDATE draftsman.job_runs r
   SET params_snapshot = r.params_snapshot || %(params)s::jsonb,
       exit_code = coalesce(%(exit_code)s::int, r.exit_code)
  FROM owned m
 WHERE r.job = m.number AND r.ordinal = m.run_count AND r.status = 'running'
