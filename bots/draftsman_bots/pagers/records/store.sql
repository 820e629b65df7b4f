-- Events of the alerts of questions.

-- Whether an event of a pager is new, and the newest of its question.
-- name: record
SELECT draftsman.record_pager_event(%(pager)s::text, %(id)s::text, %(job)s::bigint,
    %(question)s::int, %(kind)s::text, %(occurred_at)s::timestamptz)

-- The question of an alert, by the id of its job.
-- name: question
SELECT q.job, q.ordinal
  FROM draftsman.job_requests j
  JOIN draftsman.job_questions q ON q.job = j.number AND q.ordinal = %(question)s::int
 WHERE j.id = %(id)s::uuid
