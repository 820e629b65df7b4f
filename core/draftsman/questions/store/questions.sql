-- Questions: asking, answers, expiry and extension.

-- The run asks and parks: its questions, the waiting job and the parked run, in a single statement. A
-- job with a cancel request settles as canceled instead. Asking a key again with another text or action
-- supersedes the previous question: old answers never carry over. A request for changes that was told
-- to the agent is the answer to no run, and stays. The questions refer to the patch that the run saved
-- before. `alternative_to` is the place, from 1, of the first of several alternatives.
-- name: ask
WITH context AS MATERIALIZED (
    SELECT coalesce(max(ordinal), 0) AS asked,
           set_config('draftsman.detail', (%(detail)s::jsonb || jsonb_strip_nulls(
               jsonb_build_object('question', 1 + coalesce(max(ordinal), 0),
               'checkpoint', (SELECT max(id) FROM draftsman.job_checkpoints
                               WHERE job = %(job)s))))::text, true)
      FROM draftsman.job_questions WHERE job = %(job)s
), owned AS MATERIALIZED (
    SELECT j.number, j.run_count, j.worker_id, j.cancel_requested_at IS NOT NULL AS canceled,
           context.asked
      FROM draftsman.job_states j
     CROSS JOIN context
     WHERE j.number = %(job)s AND j.lease_token = %(token)s AND j.status = 'running'
       FOR NO KEY UPDATE OF j
), items AS MATERIALIZED (
    SELECT i.*, m.asked + i.place AS ordinal
      FROM owned m
     CROSS JOIN jsonb_to_recordset(%(questions)s::jsonb) AS i (
           place int, key text, kind draftsman.question_kind, text text, choices jsonb,
           freeform boolean, answer_kind draftsman.answer_kind, context text, approvers text[], quorum int,
           on_expire draftsman.on_expire, "default" text, on_deny draftsman.on_deny,
           on_changes draftsman.on_changes, digest text,
           action jsonb, expires_in float8, escalate_to text, critical boolean, is_permission boolean, ladder text,
           steps jsonb, owners text[], alternative_to int)
     WHERE NOT m.canceled
), superseded AS (
    UPDATE draftsman.job_questions q
       SET status = 'superseded', resolution = '{"outcome": "superseded", "via": "system"}'
      FROM owned m
     WHERE q.job = m.number AND q.key IN (SELECT key FROM items)
       AND q.status IN ('answered', 'expired') AND NOT m.canceled
       AND (q.on_changes <> 'tell' OR q.resolution ->> 'outcome' <> 'changes_requested')
), paused AS (
    UPDATE draftsman.job_runs r
       SET status = CASE WHEN m.canceled THEN 'canceled' ELSE 'parked' END::draftsman.run_status,
           finished_at = draftsman.now()
      FROM owned m
     WHERE r.job = m.number AND r.ordinal = m.run_count AND r.status = 'running'
), asked AS (
    INSERT INTO draftsman.job_questions (job, ordinal, run, key, kind, text, choices,
           freeform_allowed, answer_kind, context_snippet, approvers, quorum, on_expire, default_value, on_deny,
           on_changes, digest, action, expires_at, is_permission, alternative_of)
    SELECT m.number, i.ordinal, m.run_count, i.key, i.kind, i.text, i.choices, i.freeform, i.answer_kind, i.context,
           i.approvers, i.quorum, i.on_expire, i."default", i.on_deny, i.on_changes, i.digest, i.action,
           draftsman.now() + make_interval(secs => i.expires_in), i.is_permission,
           m.asked + i.alternative_to
      FROM owned m
     CROSS JOIN items i
     ORDER BY i.place
    RETURNING job, ordinal, run, kind
), times AS (
    INSERT INTO draftsman.question_times (job, question, escalate_to, patch_sha256, critical)
    SELECT q.job, q.ordinal, i.escalate_to, a.sha256, i.critical
      FROM asked q
      JOIN items i ON i.ordinal = q.ordinal
      LEFT JOIN draftsman.artifacts a ON a.job = q.job AND a.run = q.run AND a.kind = 'patch'
     WHERE i.escalate_to IS NOT NULL OR a.sha256 IS NOT NULL OR i.critical
), ladder AS (
    INSERT INTO draftsman.question_ladders (job, question, name, steps, owners, due_at)
    SELECT q.job, q.ordinal, i.ladder, i.steps, i.owners,
           draftsman.now() + make_interval(secs => (i.steps -> 0 ->> 'after')::float8)
      FROM asked q
      JOIN items i ON i.ordinal = q.ordinal
     WHERE i.ladder IS NOT NULL
), kept AS (
    INSERT INTO draftsman.grace_periods AS g (job, question, worker_id, lease_token, ends_at)
    SELECT q.job, min(q.ordinal), m.worker_id, %(token)s,
           draftsman.now() + make_interval(secs => %(grace)s)
      FROM asked q JOIN owned m ON m.number = q.job
     WHERE %(grace)s::float8 > 0
     GROUP BY q.job, m.worker_id
        ON CONFLICT (job) DO UPDATE
           SET question = excluded.question, worker_id = excluded.worker_id,
               lease_token = excluded.lease_token, ends_at = excluded.ends_at
), parked AS (
    UPDATE draftsman.job_states j
       SET status = CASE WHEN m.canceled THEN 'canceled'
                         WHEN (SELECT bool_or(kind = 'approval') FROM items) THEN 'waiting_for_approval'
                         ELSE 'waiting_for_input' END::draftsman.job_status,
           finished_at = CASE WHEN m.canceled THEN draftsman.now() END,
           worker_id = NULL, lease_token = NULL, version = j.version + 1,
           updated_at = draftsman.now()
      FROM owned m
     WHERE j.number = m.number
    RETURNING j.number
)
SELECT m.number, a.ordinal FROM parked m LEFT JOIN asked a ON a.job = m.number ORDER BY a.ordinal

-- The current question with this key.
-- name: of_key
SELECT * FROM draftsman.questions
 WHERE job = %(job)s AND key = %(key)s AND status IN ('answered', 'expired', 'open')
 ORDER BY ordinal DESC
 LIMIT 1

-- name: get
SELECT * FROM draftsman.questions WHERE job = %(job)s AND ordinal = %(ordinal)s AND
-- visible job: job

-- name: of_job
SELECT * FROM draftsman.questions WHERE job = %(job)s AND
-- visible job: job
 ORDER BY ordinal

-- part: identical
 CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(o.job ORDER BY o.id), '{}') AS others,
              coalesce(array_agg(DISTINCT r.invoker_id), '{}') AS other_requesters,
              NOT coalesce(bool_or(o.id < me.id AND r.invoker_id = j.invoker_id), false) AS is_first
         FROM draftsman.identical_questions me
         JOIN draftsman.identical_questions o ON o.digest = me.digest AND o.id <> me.id
         JOIN draftsman.job_requests r ON r.number = o.job
        WHERE me.job = q.job AND me.question = q.ordinal) i

-- part: approvals
 CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(a.voter ORDER BY a.id), '{}') AS approved_by
         FROM draftsman.job_answers a
        WHERE q.quorum > 1 AND a.job = q.job AND a.question = q.ordinal AND a.accepted) v

-- part: shown
        AND (NOT %(folded)s::boolean OR NOT EXISTS (
             SELECT FROM draftsman.identical_questions me
               JOIN draftsman.identical_questions i ON i.digest = me.digest AND i.id <> me.id
               JOIN draftsman.job_questions o ON o.job = i.job AND o.ordinal = i.question
               JOIN draftsman.job_requests theirs ON theirs.number = i.job
               JOIN draftsman.job_requests own ON own.number = me.job
               LEFT JOIN draftsman.question_delegations h
                 ON h.job = i.job AND h.question = i.question AND h.expires_at > draftsman.now()
               LEFT JOIN draftsman.question_delegations g
                 ON g.job = me.job AND g.question = me.question AND g.expires_at > draftsman.now()
              WHERE me.job = q.job AND me.question = q.ordinal
                AND (coalesce(o.expires_at, 'infinity'), o.job)
                    < (coalesce(q.expires_at, 'infinity'), q.job)
                AND o.approvers = q.approvers AND h.person IS NOT DISTINCT FROM g.person
                AND (own.invoker_id <> %(viewer)s::text OR theirs.invoker_id = own.invoker_id)))

-- Open questions after a cursor, soonest expiry first, then those that never expire: each of the
-- two is a range of the index. Folded, of identical questions that the same people may answer, only the
-- first is returned; the viewer's own, which the viewer may answer in any case, are folded apart.
-- name: open
WITH soonest AS MATERIALIZED (
    (SELECT q.expires_at, q.job, q.ordinal FROM draftsman.job_questions q
      WHERE q.status = 'open'
        AND (q.expires_at, q.job, q.ordinal)
            > (%(expires_at)s::timestamptz, %(job)s::bigint, %(ordinal)s::int) AND
-- visible job: q.job
-- include: shown
      ORDER BY q.expires_at, q.job, q.ordinal
      LIMIT %(limit)s)
     UNION ALL
    (SELECT q.expires_at, q.job, q.ordinal FROM draftsman.job_questions q
      WHERE q.status = 'open' AND q.expires_at IS NULL
        AND (q.job, q.ordinal) > (%(never_job)s::bigint, %(never_ordinal)s::int) AND
-- visible job: q.job
-- include: shown
      ORDER BY q.expires_at, q.job, q.ordinal
      LIMIT %(limit)s)
     ORDER BY expires_at NULLS LAST, job, ordinal
     LIMIT %(limit)s
)
SELECT q.*, coalesce(j.ticket_title, j.type) AS title, j.invoker_id AS requester, j.agent,
       nullif(concat_ws('/', j.repo_owner, j.repo_name), '') AS repo, j.repo_host, p.decided_by, p.applies_at,
       c.added, c.removed, k.acknowledged_by, g.delegated_to, i.others, i.other_requesters, i.is_first,
       v.approved_by
  FROM soonest s
 CROSS JOIN LATERAL (
       SELECT * FROM draftsman.questions q
        WHERE q.job = s.job AND q.ordinal = s.ordinal
        LIMIT 1) q
 CROSS JOIN LATERAL (
       SELECT ticket_title, type, invoker_id, agent, repo_host, repo_owner, repo_name
         FROM draftsman.job_requests
        WHERE number = s.job
        LIMIT 1) j
  LEFT JOIN LATERAL (
       SELECT voter AS decided_by, applies_at FROM draftsman.pending_decisions
        WHERE job = s.job AND question = s.ordinal
        ORDER BY applies_at
        LIMIT 1) p ON true
  LEFT JOIN LATERAL (
       SELECT added, removed FROM draftsman.artifacts
        WHERE job = s.job AND run = q.run AND name = 'changes.patch'
        LIMIT 1) c ON q.patch_sha256 IS NOT NULL
  LEFT JOIN LATERAL (
       SELECT person AS acknowledged_by FROM draftsman.question_acknowledgments
        WHERE job = s.job AND question = s.ordinal AND expires_at > draftsman.now()
        LIMIT 1) k ON true
  LEFT JOIN LATERAL (
       SELECT person AS delegated_to FROM draftsman.question_delegations
        WHERE job = s.job AND question = s.ordinal AND expires_at > draftsman.now()
        LIMIT 1) g ON true
-- include: identical
-- include: approvals
 ORDER BY s.expires_at NULLS LAST, s.job, s.ordinal

-- The open questions that `open` returns folded, by who may respond and holds them, at most `most`.
-- name: counts
SELECT s.kind, s.key, s.approvers, s.requester, s.decided_by, s.holders, s.approved_by,
       count(*) AS count,
       count(*) FILTER (WHERE s.expires_at < draftsman.now() + interval '1 hour') AS expiring_soon,
       min(s.expires_at) AS next_expiry
  FROM (SELECT q.kind, CASE WHEN q.key = %(budget_key)s THEN q.key ELSE '' END AS key, q.approvers,
               q.expires_at, j.invoker_id AS requester, p.decided_by,
               array_remove(ARRAY[k.acknowledged_by, g.delegated_to], NULL) AS holders,
               v.approved_by
          FROM (SELECT * FROM draftsman.job_questions q
                 WHERE q.status = 'open' AND
-- visible job: q.job
-- include: shown
                 ORDER BY q.expires_at, q.job, q.ordinal
                 LIMIT %(most)s) q
         CROSS JOIN LATERAL (
               SELECT invoker_id FROM draftsman.job_requests WHERE number = q.job LIMIT 1) j
          LEFT JOIN LATERAL (
               SELECT voter AS decided_by FROM draftsman.pending_decisions
                WHERE job = q.job AND question = q.ordinal
                ORDER BY applies_at
                LIMIT 1) p ON true
          LEFT JOIN LATERAL (
               SELECT person AS acknowledged_by FROM draftsman.question_acknowledgments
                WHERE job = q.job AND question = q.ordinal AND expires_at > draftsman.now()
                LIMIT 1) k ON true
          LEFT JOIN LATERAL (
               SELECT person AS delegated_to FROM draftsman.question_delegations
                WHERE job = q.job AND question = q.ordinal AND expires_at > draftsman.now()
                LIMIT 1) g ON true
-- include: approvals
       ) s
 GROUP BY s.kind, s.key, s.approvers, s.requester, s.decided_by, s.holders, s.approved_by

-- The open questions of some jobs.
-- name: open_of
SELECT q.*, coalesce(j.ticket_title, j.type) AS title, j.invoker_id AS requester, j.agent,
       nullif(concat_ws('/', j.repo_owner, j.repo_name), '') AS repo, j.repo_host, p.decided_by, p.applies_at,
       c.added, c.removed, k.acknowledged_by, g.delegated_to, i.others, i.other_requesters, i.is_first,
       v.approved_by
  FROM draftsman.questions q
  JOIN draftsman.job_requests j ON j.number = q.job
  LEFT JOIN LATERAL (
       SELECT voter AS decided_by, applies_at FROM draftsman.pending_decisions
        WHERE job = q.job AND question = q.ordinal
        ORDER BY applies_at
        LIMIT 1) p ON true
  LEFT JOIN LATERAL (
       SELECT added, removed FROM draftsman.artifacts
        WHERE job = q.job AND run = q.run AND name = 'changes.patch'
        LIMIT 1) c ON q.patch_sha256 IS NOT NULL
  LEFT JOIN LATERAL (
       SELECT person AS acknowledged_by FROM draftsman.question_acknowledgments
        WHERE job = q.job AND question = q.ordinal AND expires_at > draftsman.now()
        LIMIT 1) k ON true
  LEFT JOIN LATERAL (
       SELECT person AS delegated_to FROM draftsman.question_delegations
        WHERE job = q.job AND question = q.ordinal AND expires_at > draftsman.now()
        LIMIT 1) g ON true
-- include: identical
-- include: approvals
 WHERE q.status = 'open' AND q.job = ANY (%(jobs)s::bigint[]) AND
-- visible job: q.job
 ORDER BY q.expires_at NULLS LAST, q.job, q.ordinal

-- name: asked
SELECT q.job, left(q.text, 200), CASE WHEN q.kind = 'approval' THEN q.action END, q.expires_at
  FROM draftsman.questions q
 WHERE q.status = 'open' AND q.job = ANY (%(jobs)s::bigint[])
 ORDER BY q.job, q.ordinal

-- name: answers
SELECT id, job, question, kind::text, source::text, source_event_id, responder_id,
       responder_display_name, voter, payload, accepted, reason, created_at
  FROM draftsman.job_answers
 WHERE job = %(job)s AND (%(ordinal)s::int IS NULL OR question = %(ordinal)s)
 ORDER BY id

-- The lock of an answer: the job before its question.
-- name: lock_job
SELECT j.status, r.invoker_id, j.queue
  FROM draftsman.job_states j
  JOIN draftsman.job_requests r ON r.number = j.number
 WHERE j.number = %(job)s AND
-- visible job: j.number
   FOR NO KEY UPDATE OF j

-- A question with an escalation is not due at its expiry until it was escalated.
-- name: lock
WITH held AS MATERIALIZED (
    SELECT q.job, q.ordinal FROM draftsman.job_questions q
     WHERE q.job = %(job)s AND q.ordinal = %(ordinal)s
       FOR NO KEY UPDATE
)
SELECT q.*, q.expires_at <= draftsman.now()
            AND (q.on_expire <> 'escalate' OR q.escalated_at IS NOT NULL) AS due,
       EXISTS (SELECT FROM draftsman.job_pauses p WHERE p.job = h.job) AS paused,
       (SELECT max(n.ordinal) FROM draftsman.job_questions n
         WHERE q.status = 'superseded' AND n.job = h.job AND n.key = q.key) AS asked_again
  FROM held h
  JOIN draftsman.questions q ON q.job = h.job AND q.ordinal = h.ordinal

-- Whether a question is open, and takes answers for so many seconds.
-- name: stays_open
SELECT status = 'open'
       AND coalesce(expires_at > draftsman.now() + make_interval(secs => %(seconds)s), true)
  FROM draftsman.job_questions
 WHERE job = %(job)s AND ordinal = %(ordinal)s

-- name: previous_answer
SELECT id, job, question, kind::text, source::text, source_event_id, responder_id,
       responder_display_name, voter, payload, accepted, reason, created_at
  FROM draftsman.job_answers
 WHERE job = %(job)s AND question = %(ordinal)s AND source_event_id = %(event)s

-- name: record
INSERT INTO draftsman.job_answers (job, question, kind, source, source_event_id, responder_id,
       responder_display_name, voter, payload, accepted, reason)
VALUES (%(job)s, %(ordinal)s, %(kind)s, %(source)s, %(event)s, %(responder)s, %(name)s, %(voter)s,
        %(payload)s, %(accepted)s, %(reason)s)

-- name: votes
SELECT voter FROM draftsman.job_answers
 WHERE job = %(job)s AND question = %(ordinal)s AND accepted
 ORDER BY id

-- A resolution closes the question and updates the job, whose lock is held.
-- name: resolve
SELECT new_status, notified FROM draftsman.resolve_question(
    %(job)s::bigint, %(ordinal)s::int, %(status)s::draftsman.question_status,
    %(resolution)s::jsonb, %(job_status)s::draftsman.job_status, %(actor)s::text,
    %(detail)s::text, %(kind)s::text, %(error)s::text)

-- name: extend
SELECT expires_at, expires_at IS NULL FROM draftsman.extend_question(
    %(job)s::bigint, %(ordinal)s::int, %(seconds)s::float8, %(actor)s::text)

-- Stored refused answers of a voter, and of all.
-- name: refused
SELECT count(*) FILTER (WHERE voter = %(voter)s), count(*) FROM draftsman.job_answers
 WHERE job = %(job)s AND question = %(ordinal)s AND NOT accepted

-- name: count_refused
SELECT draftsman.count_refused(%(job)s::bigint, %(ordinal)s::int, %(voter)s::text, %(reason)s::text)

-- Identical open questions of several jobs; their functions are in functions/questions.sql.

-- The other identical questions in the order asked; those of the same requester that were asked before
-- are shown instead.
-- name: identical_questions
SELECT i.job, i.question,
       i.id < me.id AND r.invoker_id = (SELECT invoker_id FROM draftsman.job_requests
                                         WHERE number = me.job) AS is_earlier
  FROM draftsman.identical_questions me
 CROSS JOIN LATERAL draftsman.identical_to(me.job, me.question) i
  JOIN draftsman.job_requests r ON r.number = i.job
 WHERE me.job = %(job)s AND me.question = %(question)s
 ORDER BY i.id

-- Questions whose time is over, for the leader: `core/draftsman/jobs/runs/sweep.py` has the rules of such statements.

-- part: expire_due
SELECT min(expires_at) FROM draftsman.job_questions WHERE status = 'open'

-- part: escalating
SELECT j.number FROM draftsman.job_questions q
  JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal
  JOIN draftsman.job_states j ON j.number = q.job
   AND j.status IN ('waiting_for_input', 'waiting_for_approval')
 WHERE q.status = 'open' AND q.expires_at <= draftsman.now() AND q.on_expire = 'escalate'
   AND t.escalated_at IS NULL
   AND (%(only)s::bigint[] IS NULL OR q.job = ANY (%(only)s::bigint[]))
   AND q.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY q.expires_at
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF j SKIP LOCKED

-- name: escalate_candidates
-- include: escalating

-- An expired question with an escalation goes to more people, once: it stays open for the same time
-- again, and every target is asked again, unless its first copy is still waiting.
-- name: escalate
WITH locked AS MATERIALIZED (
-- include: escalating
), escalated AS (
    UPDATE draftsman.job_questions q
       SET expires_at = draftsman.now()
               + make_interval(secs => extract(epoch FROM q.expires_at - q.asked_at)::float8),
           approvers = array_append(array_remove(q.approvers, t.escalate_to), t.escalate_to)
      FROM locked l
      JOIN draftsman.question_times t ON t.job = l.number AND t.escalated_at IS NULL
     WHERE q.job = l.number AND q.ordinal = t.question AND q.status = 'open'
       AND q.expires_at <= draftsman.now() AND q.on_expire = 'escalate'
    RETURNING q.job, q.ordinal, q.key, q.expires_at, t.escalate_to
), marked AS (
    UPDATE draftsman.question_times t
       SET escalated_at = draftsman.now()
      FROM escalated e
     WHERE t.job = e.job AND t.question = e.ordinal
), recorded AS (
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT job, 'question_escalated', 'system',
           jsonb_build_object('question', ordinal, 'key', key, 'escalate_to', escalate_to,
                              'expires_at', expires_at)
      FROM escalated
), notified AS (
    INSERT INTO draftsman.deliveries
           (job, question, channel, target, thread, thread_key, kind, dedupe_key)
    SELECT t.job, e.ordinal, t.channel, t.target, t.thread, t.thread_key, 'question',
           'question:' || e.ordinal || ':escalated'
      FROM escalated e
      JOIN draftsman.job_targets t ON t.job = e.job
     WHERE 'question' = ANY (t.kinds)
       AND NOT draftsman.is_silent(e.job, e.ordinal, t.channel, t.target)
       AND NOT EXISTS (SELECT FROM draftsman.deliveries d
                        WHERE d.job = e.job AND d.question = e.ordinal AND d.kind = 'question'
                          AND d.thread_key = t.thread_key AND d.status = 'pending')
     ORDER BY t.job, t.ordinal
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
)
SELECT job FROM escalated

-- part: expiring
SELECT j.number FROM draftsman.job_questions q
  JOIN draftsman.job_states j ON j.number = q.job
   AND j.status IN ('waiting_for_input', 'waiting_for_approval')
 WHERE q.status = 'open' AND q.expires_at <= draftsman.now()
   AND (q.on_expire <> 'escalate'
        OR (SELECT t.escalated_at FROM draftsman.question_times t
             WHERE t.job = q.job AND t.question = q.ordinal) IS NOT NULL)
   AND NOT EXISTS (SELECT FROM draftsman.pending_decisions p
                    WHERE p.job = q.job AND p.question = q.ordinal
                      AND p.applies_at < q.expires_at)
   AND (%(only)s::bigint[] IS NULL OR q.job = ANY (%(only)s::bigint[]))
   AND q.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY q.expires_at
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF j SKIP LOCKED

-- name: expire_candidates
-- include: expiring

-- A question with a pending decision that is due before its expiry waits for the decision. If a question
-- ends its job, the others are canceled, and so are the alternatives of one that closes; a job with
-- other open questions waits for these. They are locked to read them as they are now: an answer may
-- have closed one after this statement began and before it locked the job.
-- name: expire
WITH locked AS MATERIALIZED (
-- include: expiring
), context AS MATERIALIZED (
    SELECT set_config('draftsman.actor', 'system', true)
), closed AS (
    UPDATE draftsman.job_questions q
       SET status = CASE WHEN q.on_expire = 'default' THEN 'answered' ELSE 'expired'
                    END::draftsman.question_status,
           answered_at = CASE WHEN q.on_expire = 'default' THEN draftsman.now() END,
           resolution = CASE q.on_expire
               WHEN 'default' THEN jsonb_build_object('outcome', 'answered', 'via', 'policy',
                                                      'value', q.default_value)
               WHEN 'continue' THEN jsonb_build_object('outcome', 'expired', 'via', 'policy')
               ELSE jsonb_build_object('outcome', 'expired', 'via', 'system') END
      FROM locked l
     CROSS JOIN context
     WHERE q.job = l.number AND q.status = 'open' AND q.expires_at <= draftsman.now()
       AND (q.on_expire <> 'escalate'
            OR (SELECT t.escalated_at FROM draftsman.question_times t
                 WHERE t.job = q.job AND t.question = q.ordinal) IS NOT NULL)
       AND NOT EXISTS (SELECT FROM draftsman.pending_decisions p
                        WHERE p.job = q.job AND p.question = q.ordinal
                          AND p.applies_at < q.expires_at)
    RETURNING q.job, q.ordinal, q.key, q.on_expire, q.resolution, q.alternative_of,
              jsonb_strip_nulls(jsonb_build_object('label',
                  draftsman.label_of(q.choices, q.resolution ->> 'value'))) AS label
), recorded AS (
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT job, 'question_expired', 'system',
           jsonb_build_object('question', ordinal, 'key', key) || resolution || label
      FROM closed
), jobs AS (
    SELECT job, bool_or(on_expire IN ('expire', 'escalate')) AS ends,
           array_agg(ordinal) AS closed,
           array_agg(alternative_of) FILTER (WHERE alternative_of IS NOT NULL) AS alternatives
      FROM closed
     GROUP BY job
), others AS MATERIALIZED (
    SELECT q.job, q.ordinal, q.kind, c.ends,
           c.ends OR coalesce(q.alternative_of = ANY (c.alternatives), false) AS is_canceled
      FROM jobs c
      JOIN draftsman.job_questions q ON q.job = c.job AND q.status = 'open'
     WHERE q.ordinal <> ALL (c.closed)
     ORDER BY q.job, q.ordinal
       FOR NO KEY UPDATE OF q
), canceled AS (
    UPDATE draftsman.job_questions q
       SET status = 'canceled', resolution = draftsman.cancellation(o.ends)
      FROM others o
     WHERE q.job = o.job AND q.ordinal = o.ordinal AND o.is_canceled
), updated AS (
    UPDATE draftsman.job_states j
       SET status = coalesce(CASE WHEN c.ends THEN 'expired'::draftsman.job_status END, w.status,
                             'resumed'),
           finished_at = CASE WHEN c.ends THEN draftsman.now() END,
           hold = CASE WHEN NOT c.ends THEN j.hold END,
           queued_at = CASE WHEN c.ends OR w.status IS NOT NULL THEN j.queued_at
                       ELSE draftsman.now() END,
           version = j.version + 1, updated_at = draftsman.now()
      FROM jobs c
     CROSS JOIN LATERAL (
           SELECT max(CASE o.kind WHEN 'approval' THEN 'waiting_for_approval'
                      ELSE 'waiting_for_input' END::draftsman.job_status) AS status
             FROM others o WHERE o.job = c.job AND NOT o.is_canceled) w
     WHERE j.number = c.job AND j.status IN ('waiting_for_input', 'waiting_for_approval')
       AND j.status IS DISTINCT FROM w.status
    RETURNING j.number, j.status, j.queue
)
SELECT c.job, CASE WHEN u.status = 'resumed' THEN pg_notify('draftsman_jobs', u.queue)::text END
  FROM closed c
  LEFT JOIN updated u ON u.number = c.job
