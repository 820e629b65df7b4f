-- Seconds until the earliest due job, schedule, expiring question, pending decision, reminder, step of a
-- ladder or place of a limit; NULL when there is none. A waiting occurrence is due when the previous job of its schedule has finished.
-- name: next_due
SELECT extract(epoch FROM least(
           (SELECT min(coalesce(next_retry_at, run_at)) FROM draftsman.job_states
             WHERE status IN ('scheduled', 'retrying')),
           (SELECT min(fire_at) FROM draftsman.schedules
             WHERE fire_at IS NOT NULL AND paused_at IS NULL),
           (SELECT f.due_at FROM draftsman.schedule_fires f
              JOIN draftsman.schedules s ON s.id = f.schedule AND s.paused_at IS NULL
              LEFT JOIN draftsman.job_states j ON j.number = s.last_job
             WHERE f.status = 'waiting'
               AND (j.number IS NULL
                    OR j.status IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))
             LIMIT 1),
           (SELECT min(expires_at) FROM draftsman.job_questions WHERE status = 'open'),
           (SELECT min(applies_at) FROM draftsman.pending_decisions),
           (SELECT min(expires_at) FROM draftsman.queue_reservations),
           (SELECT min(remind_at) FROM draftsman.question_times WHERE remind_at IS NOT NULL),
           (SELECT min(due_at) FROM draftsman.question_ladders WHERE due_at IS NOT NULL),
           (SELECT since FROM draftsman.unnotified_jobs ORDER BY job LIMIT 1),
           (SELECT min(due_at) FROM draftsman.postponed_work),
           (SELECT min(due_at) FROM draftsman.pending_cancels),
           (SELECT min(next_at) FROM draftsman.limit_buckets WHERE next_at IS NOT NULL))
       - draftsman.now())::float8
