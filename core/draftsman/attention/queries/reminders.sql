-- Reminders of open questions. Their number is stored with the question, so that a restart repeats
-- none.

-- name: due
SELECT t.job, t.question, t.remind_at, q.kind, q.approvers, j.invoker_id AS invoker,
       draftsman.now() AS now, s.snoozed, s.snoozed_until, r.direct, r.owners,
       r.shared,
       (SELECT max(a.expires_at)
          FROM (SELECT k.expires_at FROM draftsman.question_acknowledgments k
                 WHERE k.job = t.job AND k.question = t.question
                 UNION ALL
                SELECT g.expires_at FROM draftsman.question_delegations g
                 WHERE g.job = t.job AND g.question = t.question) a
         WHERE a.expires_at > draftsman.now()) AS acknowledged_until
  FROM draftsman.question_times t
  JOIN draftsman.job_questions q ON q.job = t.job AND q.ordinal = t.question
  JOIN draftsman.job_requests j ON j.number = t.job
  JOIN draftsman.job_states w ON w.number = t.job
 CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(z.person), '{}') AS snoozed,
              coalesce(array_agg(z.expires_at), '{}') AS snoozed_until
         FROM draftsman.question_snoozes z
        WHERE z.job = t.job AND z.question = t.question AND z.expires_at > draftsman.now()) s
 CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(g.target) FILTER (WHERE o.owner IS NOT NULL), '{}') AS direct,
              coalesce(array_agg(o.owner) FILTER (WHERE o.owner IS NOT NULL), '{}') AS owners,
              bool_or(o.owner IS NULL) IS TRUE AS shared
         FROM draftsman.job_targets g
        CROSS JOIN LATERAL (SELECT CASE WHEN g.channel = 'slack'
                                   THEN draftsman.person_of('slack', g.target) END AS owner) o
        WHERE g.job = t.job AND 'reminder' = ANY (g.kinds)) r
 WHERE t.remind_at <= draftsman.now()
   AND (%(only)s::bigint[] IS NULL OR t.job = ANY (%(only)s::bigint[]))
   AND t.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY t.remind_at
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF w SKIP LOCKED

-- Each reminder is sent, postponed until the respondents' quiet hours end, or dropped where the
-- question expires before that or has no recipients. A concurrent leader has changed `remind_at`.
-- name: remind
WITH due AS (
    SELECT * FROM unnest(%(jobs)s::bigint[], %(questions)s::int[], %(seen)s::timestamptz[],
                         %(later)s::timestamptz[]) AS w (job, question, seen, later)
), locked AS MATERIALIZED (
    SELECT j.number FROM draftsman.job_states j
      JOIN due w ON w.job = j.number
     WHERE j.status IN ('waiting_for_input', 'waiting_for_approval')
       AND (%(term)s::bigint IS NULL OR EXISTS (
           SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
              AND term = %(term)s AND expires_at > draftsman.now()))
     ORDER BY j.number
       FOR NO KEY UPDATE OF j SKIP LOCKED
), decisions AS (
    SELECT w.job, w.question, w.seen, w.later, q.expires_at,
           (w.later IS NULL AND q.expires_at > draftsman.now() AND EXISTS (
               SELECT FROM draftsman.job_targets t
                WHERE t.job = w.job AND 'reminder' = ANY (t.kinds)))::int AS is_sent
      FROM due w
      JOIN locked l ON l.number = w.job
      JOIN draftsman.job_questions q ON q.job = w.job AND q.ordinal = w.question
), updated AS (
    UPDATE draftsman.question_times t
       SET reminders = t.reminders + f.is_sent,
           remind_at = CASE WHEN f.later IS NULL AND t.reminders + f.is_sent < 3
                            THEN draftsman.next_reminder(t.since, f.expires_at)
                            WHEN f.later < f.expires_at THEN f.later END
      FROM decisions f
     WHERE t.job = f.job AND t.question = f.question AND t.remind_at = f.seen
    RETURNING t.job, t.question, t.reminders, f.is_sent
), notified AS (
    INSERT INTO draftsman.deliveries (job, question, channel, target, thread, thread_key, kind,
           payload, dedupe_key)
    SELECT m.job, m.question, t.channel, t.target, t.thread, t.thread_key, 'reminder',
           jsonb_build_object('reminder', m.reminders),
           'reminder:' || m.question || ':' || m.reminders
      FROM updated m
      JOIN draftsman.job_targets t ON t.job = m.job AND 'reminder' = ANY (t.kinds)
     WHERE m.is_sent > 0
       AND NOT draftsman.is_silent(m.job, m.question, t.channel, t.target)
       AND NOT (t.channel = 'slack' AND t.job || ':' || t.target = ANY (%(silent)s::text[]))
     ORDER BY t.job, t.ordinal
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
)
SELECT job FROM updated
