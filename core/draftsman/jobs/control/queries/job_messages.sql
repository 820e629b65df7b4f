-- Messages of people to jobs. Writes of a run lock the job by the run's lease first.

-- name: send
SELECT message_job, message, is_new, is_equal FROM draftsman.send_message(
    %(job)s::bigint, %(source)s::draftsman.channel, %(sender_id)s::text, %(display_name)s::text,
    %(sender)s::text, %(event)s::text, %(text)s::text)

-- name: of_job
SELECT job, ordinal, source, sender, sender_display_name, text, run, created_at, delivered_at
  FROM draftsman.job_messages
 WHERE job = %(job)s
 ORDER BY ordinal

-- Records that the agent of a run is given these messages.
-- name: hand
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

-- name: deliver
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

-- name: inherit
SELECT draftsman.inherit_messages(%(old)s::bigint, %(new)s::bigint)
