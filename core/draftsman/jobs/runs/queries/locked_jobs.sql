-- Locked jobs, and their cancellation.

-- name: lock
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
