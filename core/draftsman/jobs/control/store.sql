-- Cancel and retry of jobs.

-- name: pause
SELECT draftsman.pause_job(%(job)s::bigint, %(reason)s::text, %(by)s::text, %(event)s::text)

-- name: unpause
SELECT draftsman.unpause_job(%(job)s::bigint, %(by)s::text, %(event)s::text)

-- name: has_control_event
SELECT EXISTS (
       SELECT FROM draftsman.events e
        WHERE e.job = %(job)s::bigint AND e.kind = ANY ('{job_paused,job_unpaused,job_dismissed,job_undismissed}')
          AND e.payload ->> 'event' = %(event)s::text)

-- The paused jobs before a number, newest first; the pause of an ended job is removed by the leader.
-- name: paused
SELECT job FROM draftsman.job_pauses
 WHERE job < %(before)s AND
-- visible job: job
 ORDER BY job DESC
 LIMIT %(limit)s

-- name: dismiss
SELECT draftsman.dismiss_job(%(job)s::bigint, %(reason)s::text, %(by)s::text, %(event)s::text)

-- name: undismiss
SELECT draftsman.undismiss_job(%(job)s::bigint, %(by)s::text, %(event)s::text)

-- name: dismissal
SELECT dismissed_by, dismissed_at, reason FROM draftsman.dismissals WHERE job = %(job)s

-- The failures before a number that are neither retried nor dismissed, newest first.
-- name: open_failures
SELECT job FROM draftsman.open_failures
 WHERE job < %(before)s AND
-- visible job: job
 ORDER BY job DESC
 LIMIT %(limit)s

-- All columns of a job, and the first job of its chain, which has the original overrides: a retry
-- may have been given additional answers, which are not inherited.
-- name: request_columns
WITH RECURSIVE chain AS (
    SELECT number, retry_of, overrides FROM draftsman.job_requests WHERE number = %(job)s
     UNION ALL
    SELECT j.number, j.retry_of, j.overrides
      FROM chain c JOIN draftsman.job_requests j ON j.number = c.retry_of
)
SELECT to_jsonb(j) || jsonb_build_object('overrides', c.overrides) AS request, c.number AS root
  FROM draftsman.jobs j
 CROSS JOIN chain c
 WHERE j.number = %(job)s AND c.retry_of IS NULL AND
-- visible job: j.number

-- The retries of some finished jobs, by their unique keys.
-- name: retries
SELECT j.number, n.number AS retry
  FROM draftsman.jobs j
  JOIN draftsman.job_requests n
    ON n.type = j.type AND n.retry_of = j.number
   AND n.idempotency_key = 'retry:' || CASE WHEN j.retry_of IS NULL THEN j.number::text
       ELSE split_part(j.idempotency_key, ':', 2) END || ':' || (j.chain_length + 1)
   AND NOT starts_with(n.idempotency_key, 'auto:')
 WHERE j.number = ANY (%(jobs)s::bigint[])

-- The newest checkpoint and its work bundle are copied to the retry, as those of a run 0.
-- name: copy_checkpoint
SELECT draftsman.inherit_checkpoint(%(old)s::bigint, %(new)s::bigint)

-- The newest answer that arrived after its question expired, and the question's key.
-- name: late_answer
SELECT q.key, coalesce(a.payload ->> 'value', a.payload ->> 'text')
  FROM draftsman.job_answers a
  JOIN draftsman.job_questions q ON q.job = a.job AND q.ordinal = a.question
 WHERE a.job = %(job)s AND a.kind = 'input' AND a.payload -> 'late' = 'true'
   AND q.status = 'expired'
 ORDER BY a.id DESC
 LIMIT 1

-- Once for each source event; the job's lock is held.
-- name: refuse
SELECT draftsman.refuse_action(%(job)s::bigint, %(by)s::text, %(detail)s::jsonb)

-- The unique key of a job, the job that it replaced, and the job that replaced it.
-- name: replacement
SELECT u.key, u.replaces, n.job AS replaced_by
  FROM (VALUES (%(job)s::bigint)) AS w (job)
  LEFT JOIN draftsman.unique_keys u ON u.job = w.job
  LEFT JOIN draftsman.unique_keys n ON n.replaces = w.job

-- Messages of people to jobs. Writes of a run lock the job by the run's lease first.

-- name: send_message
SELECT message_job, message, is_new, is_equal FROM draftsman.send_message(
    %(job)s::bigint, %(source)s::draftsman.channel, %(sender_id)s::text, %(display_name)s::text,
    %(sender)s::text, %(event)s::text, %(text)s::text)

-- The message of an event: of one that requested changes of an approval, that which its agent is told.
-- name: message_of_event
SELECT m.ordinal, m.text = %(text)s
  FROM draftsman.job_messages m
 WHERE m.job = %(job)s AND m.source = %(source)s::draftsman.channel
   AND m.source_event_id IN (
       SELECT %(event)s
        UNION ALL
       SELECT format('review:%%s:%%s', a.job, a.question) FROM draftsman.job_answers a
        WHERE a.job = %(job)s AND a.source_event_id = %(event)s AND a.accepted)

-- name: messages_of_job
SELECT job, ordinal, source, sender, sender_display_name, text, run, created_at, delivered_at
  FROM draftsman.job_messages
 WHERE job = %(job)s
 ORDER BY ordinal

-- Records that the agent of a run is given these messages.
-- name: hand_messages
WITH owned AS MATERIALIZED (
    SELECT number, run_count FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       AND cancel_requested_at IS NULL
       FOR NO KEY UPDATE
), given AS (
    UPDATE draftsman.job_messages m
       SET run = o.run_count
      FROM owned o
     WHERE m.job = o.number AND m.ordinal = ANY (%(ordinals)s::int[]) AND m.delivered_at IS NULL
)
SELECT number FROM owned

-- name: deliver_messages
WITH owned AS MATERIALIZED (
    SELECT number, run_count, worker_id FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       AND cancel_requested_at IS NULL
       FOR NO KEY UPDATE
), delivered AS (
    UPDATE draftsman.job_messages m
       SET run = o.run_count, delivered_at = draftsman.now()
      FROM owned o
     WHERE m.job = o.number AND m.ordinal = ANY (%(ordinals)s::int[]) AND m.delivered_at IS NULL
    RETURNING m.ordinal
), event AS (
    INSERT INTO draftsman.job_events (job, run, kind, actor, payload)
    SELECT o.number, o.run_count, 'message_delivered', 'worker:' || o.worker_id,
           jsonb_build_object('messages', d.ordinals)
      FROM owned o
     CROSS JOIN (SELECT jsonb_agg(ordinal ORDER BY ordinal) AS ordinals FROM delivered) d
     WHERE d.ordinals IS NOT NULL
)
SELECT number FROM owned

-- name: inherit_messages
SELECT draftsman.inherit_messages(%(old)s::bigint, %(new)s::bigint)
