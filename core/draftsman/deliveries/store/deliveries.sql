-- The outbox: targets and deliveries. Triggers of functions/deliveries.sql insert those of job changes.

-- Adding a target locks its job first, so that each change of the job is delivered once.
-- name: add_targets
INSERT INTO draftsman.job_targets (job, ordinal, channel, target, thread, thread_key, kinds,
       outcomes)
SELECT w.job,
       coalesce((SELECT max(ordinal) FROM draftsman.job_targets WHERE job = w.job), 0)
           + row_number() OVER (PARTITION BY w.job ORDER BY w.place),
       w.channel, w.target, w.thread,
       'D-' || w.job || ' ' || w.channel || ':' || w.target || coalesce('/' || w.thread, ''),
       w.kinds, w.outcomes
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS w (
       job bigint, place int, channel draftsman.channel, target text, thread text,
       kinds draftsman.delivery_kind[], outcomes draftsman.job_status[])
 ORDER BY w.job, w.place
    ON CONFLICT (job, thread_key) DO NOTHING

-- name: inherit_targets
INSERT INTO draftsman.job_targets (job, ordinal, channel, target, thread, thread_key, kinds,
       outcomes)
SELECT %(new)s, ordinal, channel, target, thread,
       'D-' || %(new)s::bigint || ' ' || channel || ':' || target || coalesce('/' || thread, ''),
       kinds, outcomes
  FROM draftsman.job_targets
 WHERE job = %(old)s
 ORDER BY ordinal

-- name: targets
SELECT job, ordinal, channel, target, thread, kinds::text[], outcomes::text[], created_at
  FROM draftsman.job_targets
 WHERE job = %(job)s
 ORDER BY ordinal

-- A message of a service for a job that it has locked, to all targets of its kind, or to a single
-- target.
-- name: enqueue
INSERT INTO draftsman.deliveries (job, channel, target, thread, thread_key, kind, payload,
       dedupe_key)
SELECT t.job, t.channel, t.target, t.thread, t.thread_key, %(kind)s, %(payload)s, %(key)s
  FROM draftsman.job_targets t
 WHERE t.job = %(job)s AND %(kind)s = ANY (t.kinds)
   AND (%(at)s::text IS NULL
        OR t.channel || ':' || t.target || coalesce('/' || t.thread, '') = %(at)s)
 ORDER BY t.ordinal
    ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING

-- A message of a run, to its own targets or to those of its job; it locks the job by its lease.
-- name: notify
WITH owned AS MATERIALIZED (
    SELECT number FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       AND cancel_requested_at IS NULL
       FOR NO KEY UPDATE
), explicit_targets AS MATERIALIZED (
    SELECT m.number AS job, w.place, w.channel, w.target, w.thread,
           'D-' || m.number || ' ' || w.channel || ':' || w.target || coalesce('/' || w.thread, '')
               AS thread_key
      FROM owned m
     CROSS JOIN jsonb_to_recordset(%(places)s::jsonb) AS w (
           place int, channel draftsman.channel, target text, thread text)
), inserted AS (
    INSERT INTO draftsman.deliveries (job, channel, target, thread, thread_key, kind, payload,
           dedupe_key)
    SELECT p.job, p.channel, p.target, p.thread, p.thread_key, 'notice', %(payload)s, %(key)s
      FROM (SELECT job, place, channel, target, thread, thread_key FROM explicit_targets
             UNION ALL
            SELECT t.job, t.ordinal, t.channel, t.target, t.thread, t.thread_key
              FROM owned m
              JOIN draftsman.job_targets t ON t.job = m.number
             WHERE 'notice' = ANY (t.kinds) AND NOT EXISTS (SELECT FROM explicit_targets)) p
     ORDER BY p.place
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
)
SELECT number FROM owned

-- name: of_key
SELECT seq FROM draftsman.deliveries WHERE job = %(job)s AND dedupe_key = %(key)s ORDER BY seq

-- The data of a message is read when it is sent.
-- name: message_facts
SELECT j.number, j.id AS job_id, j.type, j.status::text, j.mode, j.agent,
       (SELECT g.name FROM draftsman.job_group_members m
          JOIN draftsman.job_groups g ON g.id = m.group_id
         WHERE m.job = d.job) AS group_name, j.repo_host, j.repo_owner, j.repo_name,
       coalesce(j.ticket_title, j.type) AS title, j.ticket_url AS url, j.invoker_id, j.invoker_display_name,
       CASE WHEN j.status <> 'retrying' OR NOT EXISTS (
            SELECT FROM draftsman.suspects s WHERE s.job = j.number AND s.status = 'waiting')
            THEN j.next_retry_at END AS next_retry_at,
       j.last_error, j.error_class::text, j.cancel_requested_by, j.cancel_reason,
       (SELECT q.resolution FROM draftsman.job_questions q
         WHERE q.job = j.number AND j.error_class = 'DENIED'
           AND q.resolution ->> 'outcome' = 'denied'
         ORDER BY q.ordinal DESC
         LIMIT 1) AS denial,
       j.result,
       coalesce((
           SELECT jsonb_build_object('tokens', u.input_tokens + u.output_tokens, 'cost', u.cost_usd)
             FROM draftsman.budget_uses u
            WHERE u.name = 'job:' || j.number AND u.day = '-infinity'), '{}') || coalesce((
           SELECT jsonb_build_object('allowed', count(*), 'rules', jsonb_agg(DISTINCT u.rule))
             FROM draftsman.rule_uses u WHERE u.job = d.job HAVING count(*) > 0), '{}') AS usage,
       j.created_at, j.finished_at, o.id AS copy_id, o.status AS copy_status,
       o.in_doubt AS copy_in_doubt, o.kind AS copy_kind, o.external_ref AS copy_ref,
       o.created_at AS copy_created_at,
       (SELECT c.state FROM draftsman.pull_requests c
         WHERE c.state <> 'open'
           AND c.root = coalesce((SELECT f.root FROM draftsman.follow_ups f WHERE f.job = w.job),
                                 w.job)) AS ended_pull,
       (SELECT r.external_ref FROM draftsman.deliveries r
         WHERE r.job = d.job AND r.thread_key = coalesce(m.thread_key, d.thread_key)
           AND r.kind = 'status' AND r.status = 'sent'
         ORDER BY r.seq DESC
         LIMIT 1) AS root, p.paused_by, p.reason AS pause_reason,
       EXISTS (SELECT FROM draftsman.open_failures f WHERE f.job = j.number) AS failure_open,
       x.dismissed_by, x.reason AS dismissal_reason, m.target AS replacement_target,
       draftsman.now() AS now,
       (SELECT l.name FROM draftsman.question_ladders l
         WHERE l.job = d.job AND l.question = d.question) AS ladder,
       g.person AS delegated_to, g.delegated_by, g.expires_at AS delegated_until,
       ARRAY(SELECT t.person FROM draftsman.digest_questions t
              WHERE t.job = d.job AND t.question = d.question) AS digested,
       ARRAY(SELECT a.voter FROM draftsman.job_questions q
               JOIN draftsman.job_answers a ON a.job = q.job AND a.question = q.ordinal AND a.accepted
              WHERE q.job = d.job AND q.ordinal = d.question AND q.status = 'open') AS approved_by,
       CASE WHEN d.kind = 'status' THEN draftsman.shown_instead(d.job, d.channel, d.target, d.thread_key)
       END AS asks_with
  FROM draftsman.deliveries d
  JOIN draftsman.jobs j ON j.number = d.job
  LEFT JOIN draftsman.question_delegations g
    ON g.job = d.job AND g.question = d.question AND g.expires_at > draftsman.now()
  LEFT JOIN draftsman.job_pauses p ON p.job = j.number AND j.finished_at IS NULL
  LEFT JOIN draftsman.dismissals x ON x.job = j.number
  LEFT JOIN draftsman.deliveries o ON o.seq = d.original
 CROSS JOIN LATERAL (
       SELECT CASE WHEN j.type = 'merge_pull_request' AND jsonb_typeof(j.payload -> 'job') = 'number'
                   THEN (j.payload -> 'job')::bigint ELSE d.job END AS job) w
  LEFT JOIN LATERAL (
       SELECT i.target, i.thread_key FROM draftsman.deliveries g
         JOIN draftsman.deliveries i
           ON i.job = g.job AND i.original = g.seq AND i.dedupe_key = 'instead:' || g.seq
        WHERE g.job = d.job AND g.thread_key = d.thread_key AND g.status = 'dead_letter'
          AND i.channel = d.channel AND i.status = 'sent'
        ORDER BY g.seq DESC
        LIMIT 1) m ON true
 WHERE d.seq = %(seq)s

-- The result of an attempt. A retry is dropped where a newer message is waiting or the question is
-- closed, unless the message may have arrived: then the retry finds out. A dead letter is replaced
-- by a delivery to the fallback, a dead replacement once more; a rewrite of a copy is never
-- replaced.
-- name: finish
WITH verdict AS MATERIALIZED (
    SELECT d.seq, d.in_doubt OR %(doubt)s AS in_doubt, (CASE
           WHEN %(status)s::draftsman.delivery_status <> 'pending' THEN %(status)s
           WHEN d.in_doubt OR %(doubt)s THEN 'unconfirmed'
           WHEN d.kind = 'status' AND EXISTS (
                SELECT FROM draftsman.deliveries n
                 WHERE n.thread_key = d.thread_key AND n.kind = 'status' AND n.status = 'pending')
                THEN 'superseded'
           WHEN d.kind IN ('question', 'reminder') AND q.status <> 'open' THEN 'superseded'
           ELSE 'pending' END)::draftsman.delivery_status AS status
      FROM draftsman.deliveries d
      LEFT JOIN draftsman.job_questions q ON q.job = d.job AND q.ordinal = d.question
     WHERE d.seq = %(seq)s AND d.lease_token = %(token)s AND d.status = 'sending'
       FOR NO KEY UPDATE OF d
), finished AS (
    UPDATE draftsman.deliveries d
       SET status = v.status, in_doubt = v.in_doubt AND v.status <> 'sent', lease_token = NULL,
           call_ends_at = NULL,
           attempts = d.attempts - CASE WHEN %(spent)s THEN 0 ELSE 1 END,
           external_ref = CASE WHEN v.status = 'sent' THEN %(ref)s END,
           sent_at = CASE WHEN v.status = 'sent' THEN draftsman.now() END,
           last_error = coalesce(%(error)s, CASE WHEN v.status <> 'sent' THEN d.last_error END),
           next_attempt_at = CASE WHEN v.status IN ('pending', 'unconfirmed') THEN coalesce(
                             %(due)s, draftsman.now() + make_interval(secs => %(delay)s)) END
      FROM verdict v
     WHERE d.seq = v.seq AND d.lease_token = %(token)s
    RETURNING d.*
), recorded AS (
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT e.job, CASE WHEN e.status = 'sent' AND e.kind = 'file' THEN 'attachment_uploaded'
                       WHEN e.status = 'sent' THEN 'delivery_sent'
                       WHEN e.kind = 'file' THEN 'attachment_failed'
                       ELSE 'delivery_dead_lettered' END,
           'system', jsonb_strip_nulls(jsonb_build_object('delivery', e.seq, 'kind', e.kind,
               'channel', e.channel, 'target', e.target, 'question', e.question,
               'artifact', e.payload -> 'artifact', 'ref', e.external_ref,
               'error', left(CASE WHEN e.status = 'dead_letter' THEN e.last_error END, 2000)))
      FROM finished e
     WHERE e.status = 'dead_letter' OR (e.status = 'sent' AND e.kind NOT IN ('status', 'question_closed'))
), replacement AS (
    INSERT INTO draftsman.deliveries (job, question, original, channel, target, thread_key,
           kind, version, payload, dedupe_key)
    SELECT e.job, e.question, e.seq, f.channel, f.target,
           'D-' || e.job || ' ' || f.channel || ':' || f.target, e.kind, e.version, e.payload,
           'instead:' || e.seq
      FROM finished e
     CROSS JOIN (SELECT %(fallback_channel)s::draftsman.channel AS channel,
                        %(fallback_target)s::text AS target) f
     WHERE e.status = 'dead_letter' AND f.channel IS NOT NULL
       AND (e.original IS NULL OR e.dedupe_key = 'instead:' || e.original AND EXISTS (
            SELECT FROM draftsman.deliveries o
             WHERE o.seq = e.original AND o.original IS NULL))
       AND (e.channel, e.target) <> (f.channel, f.target)
       AND NOT EXISTS (SELECT FROM draftsman.job_questions q
                        WHERE q.job = e.job AND q.ordinal = e.question AND q.status <> 'open')
        ON CONFLICT DO NOTHING
    RETURNING seq
)
SELECT e.status, (SELECT seq FROM replacement) AS replacement FROM finished e

-- Deliveries that follow a sent message: the full text where it was shortened, the newest artifact
-- of each name with a result, and the patch with a question. Chats and forges do not show
-- the signed statement. On a forge each file is a comment: no patch if there is a pull request.
-- name: attach
INSERT INTO draftsman.deliveries (job, question, channel, target, thread, thread_key, kind, payload,
       dedupe_key)
SELECT d.job, d.question, d.channel, d.target, d.thread, d.thread_key, 'file', f.payload, f.key
  FROM draftsman.deliveries d
 CROSS JOIN LATERAL (
       (SELECT 1 AS place, w.place AS n, w.payload, 'whole:' || d.seq || ':' || w.place AS key
          FROM jsonb_array_elements(%(files)s::jsonb) WITH ORDINALITY AS w (payload, place))
        UNION ALL
       (SELECT 2, a.id, jsonb_build_object('artifact', a.id, 'name', a.name), 'file:' || a.id
          FROM (SELECT DISTINCT ON (g.name) g.id, g.name, g.size, g.kind FROM draftsman.artifacts g
                  LEFT JOIN draftsman.job_questions q ON q.job = d.job AND q.ordinal = d.question
                 WHERE g.job = d.job AND g.kind NOT IN ('bundle', 'transcript') AND (d.kind = 'result' OR (
                       d.kind = 'question' AND (g.kind, g.run) = ('patch', q.run)))
                   AND (g.kind <> 'evidence' OR NOT EXISTS (
                       SELECT FROM draftsman.channels c WHERE c.name = d.channel AND c.takes_answers))
                   AND (d.kind <> 'result' OR g.kind <> 'patch' OR NOT EXISTS (
                       SELECT FROM draftsman.channels c
                         JOIN draftsman.job_states j ON j.number = d.job
                        WHERE c.name = d.channel AND c.shows_changes
                          AND j.result ->> 'pr_url' IS NOT NULL))
                 ORDER BY g.name, g.run DESC) a
         WHERE a.size <= %(size)s AND (a.size > 0 OR a.kind <> 'patch')
         ORDER BY a.id
         LIMIT %(most)s)) f
 WHERE d.seq = %(seq)s
 ORDER BY f.place, f.n
    ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING

-- A notice for the target and thread of a file that was refused.
-- name: warn
INSERT INTO draftsman.deliveries (job, channel, target, thread, thread_key, kind, payload, dedupe_key)
SELECT d.job, d.channel, d.target, d.thread, d.thread_key, 'notice', %(payload)s, 'refused:' || d.seq
  FROM draftsman.deliveries d
 WHERE d.seq = %(seq)s
    ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING

-- People who cannot see a question or its reminder in the target get a copy.
-- name: copy_to
INSERT INTO draftsman.deliveries (job, question, channel, target, thread_key, kind, payload,
       dedupe_key)
SELECT d.job, d.question, d.channel, p.target,
       'D-' || d.job || ' ' || d.channel || ':' || p.target, d.kind, d.payload,
       CASE d.kind WHEN 'reminder'
       THEN 'reminder:' || d.question || ':' || coalesce(d.payload ->> 'reminder', '')
       ELSE 'question:' || d.question END
  FROM draftsman.deliveries d
  JOIN draftsman.job_questions q
    ON q.job = d.job AND q.ordinal = d.question AND q.status = 'open'
 CROSS JOIN unnest(%(targets)s::text[]) AS p (target)
 WHERE d.seq = %(seq)s AND d.target <> p.target
 ORDER BY p.target
    ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING

-- name: page
SELECT p.*
  FROM unnest(%(statuses)s::draftsman.delivery_status[]) AS w (status)
 CROSS JOIN LATERAL (
       SELECT seq, id, job, question, original, channel, target, thread, kind, status, attempts,
              in_doubt, next_attempt_at, external_ref, last_error, created_at, sent_at
         FROM draftsman.deliveries
        WHERE (status, seq) >= (w.status, 0) AND (status, seq) < (w.status, %(before)s::bigint) AND
-- visible job: job
        ORDER BY status DESC, seq DESC
        LIMIT %(limit)s) p
 ORDER BY p.seq DESC
 LIMIT %(limit)s

-- name: of_job
SELECT seq, id, job, question, original, channel, target, thread, kind, status, attempts,
       in_doubt, next_attempt_at, external_ref, last_error, created_at, sent_at
  FROM draftsman.deliveries
 WHERE job = %(job)s
   AND (%(statuses)s::draftsman.delivery_status[] IS NULL OR status = ANY (%(statuses)s)) AND
-- visible job: job
 ORDER BY seq DESC
 LIMIT %(limit)s

-- Dead letters to redeliver: these, those of a job, or all, in pages.
-- name: dead_letters
SELECT seq, job FROM draftsman.deliveries
 WHERE status = 'dead_letter' AND seq = ANY (%(seqs)s::bigint[]) AND
-- visible job: job
 ORDER BY seq

-- name: dead_letters_of_job
SELECT seq, job FROM draftsman.deliveries
 WHERE job = %(job)s AND status = 'dead_letter' AND
-- visible job: job
 ORDER BY seq
 LIMIT %(limit)s

-- name: all_dead
SELECT seq, job FROM draftsman.deliveries
 WHERE status = 'dead_letter' AND
-- visible job: job
 ORDER BY status, seq
 LIMIT %(limit)s

-- name: redeliver
SELECT draftsman.redeliver(%(seqs)s::bigint[], %(actor)s::text)

-- name: statuses_of
SELECT seq, status FROM draftsman.deliveries
 WHERE seq = ANY (%(seqs)s::bigint[]) AND
-- visible job: job

-- name: dead_letter_count
SELECT count(*)
  FROM (SELECT job, seq FROM draftsman.deliveries
         WHERE status = 'dead_letter' AND
-- visible job: job
         ORDER BY seq DESC
         LIMIT %(most)s) g
 WHERE NOT EXISTS (
       SELECT FROM draftsman.deliveries i
         LEFT JOIN draftsman.deliveries k
           ON k.job = i.job AND k.original = i.seq AND k.dedupe_key = 'instead:' || i.seq
        WHERE i.job = g.job AND i.seq > g.seq AND i.original = g.seq
          AND i.dedupe_key = 'instead:' || g.seq AND 'sent' IN (i.status, k.status))

-- Invokers of unfinished jobs without targets, and the number of jobs: those that opted out, and
-- others.
-- name: unnotified
SELECT j.invoker_id, coalesce(j.overrides ->> 'notify' = 'none', false) AS opted_out, count(*)
  FROM (SELECT n.*
          FROM unnest(%(statuses)s::draftsman.job_status[]) AS s (status)
         CROSS JOIN LATERAL (
               SELECT invoker_id, overrides, has_targets FROM draftsman.jobs
                WHERE (status, number) >= (s.status, 0)
                  AND (status, number) < (s.status, 9223372036854775807) AND
-- visible job: number
                ORDER BY status DESC, number DESC
                LIMIT %(most)s) n) j
 WHERE NOT j.has_targets
 GROUP BY 1, 2
 ORDER BY 1, 2

-- A notice in a thread of its own, so that it waits for no other message.
-- name: post
INSERT INTO draftsman.deliveries (job, channel, target, thread_key, kind, payload, dedupe_key)
VALUES (%(job)s, %(channel)s, %(target)s, %(key)s, %(kind)s, %(payload)s, %(key)s)
    ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING

-- How the group of a delivery's job stopped: the job that ended, the number of jobs that were skipped,
-- and the first of these jobs with a result for the same target, which reports it. No row unless the
-- job is of a group and ended otherwise than completed.
-- name: group_stop
WITH own AS MATERIALIZED (
    SELECT d.job, d.channel, d.target, d.thread, m.group_id, m.ordinal, m.skipped_by, g.kind,
           EXISTS (SELECT FROM draftsman.job_runs r
                    WHERE r.job = d.job AND r.status = 'skipped') AS skipped
      FROM draftsman.deliveries d
      JOIN draftsman.job_states s ON s.number = d.job
      JOIN draftsman.job_group_members m ON m.job = d.job
      JOIN draftsman.job_groups g ON g.id = m.group_id
     WHERE d.seq = %(seq)s AND s.finished_at IS NOT NULL AND s.status <> 'completed'
       AND g.canceled_at IS NULL AND g.on_failure = 'stop'
), cause AS MATERIALIZED (
    SELECT m.job, m.ordinal, s.status
      FROM own o
     CROSS JOIN LATERAL (
           SELECT c.job, c.ordinal FROM draftsman.job_group_members c
             JOIN draftsman.job_states e ON e.number = c.job
            WHERE c.group_id = o.group_id
              AND CASE WHEN NOT o.skipped THEN c.job = o.job
                  WHEN o.kind = 'parallel' THEN c.job = o.skipped_by
                  ELSE c.ordinal < o.ordinal AND e.finished_at IS NOT NULL
                       AND e.status <> 'completed' AND NOT EXISTS (
                           SELECT FROM draftsman.job_runs r
                            WHERE r.job = c.job AND r.status = 'skipped') END
            ORDER BY c.ordinal DESC, c.job DESC
            LIMIT 1) m
      JOIN draftsman.job_states s ON s.number = m.job
), skipped AS MATERIALIZED (
    SELECT m.job, m.ordinal
      FROM own o
     CROSS JOIN cause c
      JOIN draftsman.job_group_members m ON m.group_id = o.group_id
     WHERE CASE o.kind WHEN 'parallel' THEN m.skipped_by = c.job ELSE m.ordinal > c.ordinal END
       AND EXISTS (SELECT FROM draftsman.job_runs r WHERE r.job = m.job AND r.status = 'skipped')
)
SELECT c.job, c.status::text, (SELECT count(*) FROM skipped) AS skipped,
       (SELECT t.job
          FROM (SELECT job, 0 AS ordinal FROM cause
                 UNION ALL
                SELECT job, ordinal FROM skipped) k
          JOIN draftsman.job_targets t ON t.job = k.job
         WHERE (t.channel, t.target) = (o.channel, o.target)
           AND t.thread IS NOT DISTINCT FROM o.thread AND 'result' = ANY (t.kinds)
           AND (t.outcomes IS NULL OR 'canceled' = ANY (t.outcomes) OR k.ordinal = 0)
         ORDER BY k.ordinal, k.job
         LIMIT 1) AS reporter
  FROM own o
 CROSS JOIN cause c

-- Dead letters without a target, for the leader: `core/draftsman/jobs/runs/sweep.py` has the rules of such statements.

-- part: notify_due
SELECT since FROM draftsman.unnotified_jobs ORDER BY job LIMIT 1

-- part: unnotified
SELECT j.number FROM draftsman.unnotified_jobs u
  JOIN draftsman.job_states j ON j.number = u.job
 WHERE (%(only)s::bigint[] IS NULL OR u.job = ANY (%(only)s::bigint[]))
   AND u.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY u.job
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF j SKIP LOCKED

-- name: notify_dead_letters_candidates
-- include: unnotified

-- Dead letters without a target are sent to the fallback, once; without a fallback they are only
-- returned.
-- name: notify_dead_letters
WITH due AS MATERIALIZED (
-- include: unnotified
), dequeued AS (
    DELETE FROM draftsman.unnotified_jobs u USING due WHERE u.job = due.number
    RETURNING u.job
), notified AS (
    INSERT INTO draftsman.deliveries (job, channel, target, thread, thread_key, kind, dedupe_key)
    SELECT t.job, f.channel, f.target, f.thread, 'D-' || t.job || ' ' || f.channel || ':' || f.target
           || coalesce('/' || f.thread, ''), 'result', 'result'
      FROM dequeued t
     CROSS JOIN (SELECT %(channel)s::draftsman.channel AS channel,
                        %(target)s::text AS target, %(thread)s::text AS thread) f
     WHERE f.channel IS NOT NULL
     ORDER BY t.job
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
)
SELECT d.number, r.invoker_id
  FROM due d JOIN draftsman.job_requests r ON r.number = d.number
 ORDER BY d.number
