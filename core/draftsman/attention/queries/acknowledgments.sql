-- Acknowledgments and snoozes of questions.

-- name: acknowledge
SELECT holder, until FROM draftsman.acknowledge_question(%(job)s::bigint, %(question)s::int,
    %(source)s::draftsman.channel, %(actor_id)s::text, %(person)s::text, %(seconds)s::float8)

-- name: snooze
SELECT draftsman.snooze_question(%(job)s::bigint, %(question)s::int,
    %(source)s::draftsman.channel, %(actor_id)s::text, %(person)s::text, %(seconds)s::float8)

-- The acknowledgment and the snoozes of a question that hold.
-- name: delays
SELECT a.person, a.expires_at, true AS acknowledged
  FROM draftsman.question_acknowledgments a
 WHERE a.job = %(job)s AND a.question = %(question)s AND a.expires_at > draftsman.now()
 UNION ALL
SELECT s.person, s.expires_at, false
  FROM draftsman.question_snoozes s
 WHERE s.job = %(job)s AND s.question = %(question)s AND s.expires_at > draftsman.now()
 ORDER BY acknowledged DESC, person

-- Whether an event of a pager is new, and the newest of its question.
-- name: record_page
SELECT draftsman.record_pager_event(%(pager)s::text, %(id)s::text, %(job)s::bigint,
    %(question)s::int, %(kind)s::text, %(occurred_at)s::timestamptz)

-- The question of an alert, by the id of its job.
-- name: paged
SELECT q.job, q.ordinal
  FROM draftsman.job_requests j
  JOIN draftsman.job_questions q ON q.job = j.number AND q.ordinal = %(question)s::int
 WHERE j.id = %(id)s::uuid
