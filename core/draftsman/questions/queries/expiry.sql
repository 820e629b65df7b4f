-- Questions whose time is over, for the leader: `core/draftsman/jobs/runs/sweep.py` has the rules of such statements.

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
