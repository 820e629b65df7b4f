-- Acknowledgments, ladders, reminders, digests and figures of questions.

-- Acknowledgments and snoozes.

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

-- part: approvals
       (SELECT coalesce(array_agg(a.voter ORDER BY a.id), '{}')
          FROM draftsman.job_answers a
         WHERE q.quorum > 1 AND a.job = q.job AND a.question = q.ordinal AND a.accepted) AS approved_by,

-- Ladders of questions: the steps that are due, and their notifications.

-- The ladders that the profile of a job's repository names.
-- name: profile_ladders
SELECT p.ladders
  FROM draftsman.job_requests j
  JOIN draftsman.repos r ON lower(r.host) = coalesce(j.repo_host, '')
                        AND lower(r.owner) = lower(coalesce(j.repo_owner, ''))
                        AND lower(r.name) = lower(j.repo_name)
  JOIN draftsman.repo_profiles p ON p.repo = r.id AND p.path = ''
 WHERE j.number = %(job)s
 ORDER BY r.id
 LIMIT 1

-- part: ladders_due
SELECT min(due_at) FROM draftsman.question_ladders WHERE due_at IS NOT NULL

-- The steps that are due. Those of jobs that another transaction has locked are left out.
-- name: due_steps
SELECT l.job, l.question, l.step, l.due_at, draftsman.now() AS now, l.steps, l.owners, q.kind, q.key,
       q.text, t.critical, q.approvers, j.invoker_id AS invoker, draftsman.repo_of(j) AS repo, q.asked_at,
       q.expires_at,
-- include: approvals
       EXISTS (SELECT FROM draftsman.job_targets g
                  JOIN draftsman.channels c ON c.name = g.channel AND c.takes_answers
                WHERE g.job = l.job AND 'question' = ANY (g.kinds)
                  AND draftsman.person_of_target(g.channel, g.target) IS NULL) AS chat,
       s.snoozed, s.snoozed_until
  FROM draftsman.question_ladders l
  JOIN draftsman.job_questions q ON q.job = l.job AND q.ordinal = l.question
  JOIN draftsman.question_times t ON t.job = l.job AND t.question = l.question
  JOIN draftsman.job_requests j ON j.number = l.job
  JOIN draftsman.job_states w ON w.number = l.job
 CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(z.person), '{}') AS snoozed,
              coalesce(array_agg(z.expires_at), '{}') AS snoozed_until
         FROM draftsman.question_snoozes z
        WHERE z.job = l.job AND z.question = l.question AND z.expires_at > draftsman.now()) s
 WHERE l.due_at <= draftsman.now()
   AND l.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY l.due_at
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF w SKIP LOCKED

-- name: take_step
SELECT draftsman.take_ladder_step(%(job)s::bigint, %(question)s::int, %(step)s::int,
           %(due_at)s::timestamptz, %(later)s::timestamptz, %(notices)s::jsonb, %(names)s::text[],
           %(seconds)s::float8)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- The ladder of each open question, NULL without a ladder, and its delegation.
-- name: ladder_attention
SELECT q.job, q.ordinal AS question, l.name AS ladder, l.steps, coalesce(l.step, 0) AS step, l.due_at,
       coalesce(t.critical, false) AS critical, g.person AS delegated_to, g.delegated_by,
       g.expires_at AS delegated_until
  FROM draftsman.job_questions q
  LEFT JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal
  LEFT JOIN draftsman.question_ladders l ON l.job = q.job AND l.question = q.ordinal
  LEFT JOIN draftsman.question_delegations g ON g.job = q.job AND g.question = q.ordinal
 WHERE q.job = ANY (%(jobs)s::bigint[]) AND q.status = 'open'

-- name: notifications
SELECT n.job, n.question, n.step, n.recipient, n.outcome, n.away_until, n.delivery, n.notified_at,
       d.status::text AS delivery_status, d.sent_at
  FROM draftsman.question_notifications n
  LEFT JOIN draftsman.deliveries d ON d.seq = n.delivery
 WHERE n.job = ANY (%(jobs)s::bigint[])
 ORDER BY n.job, n.question, n.notified_at, n.step, n.recipient

-- name: delegate
SELECT draftsman.delegate_question(%(job)s::bigint, %(question)s::int,
    %(source)s::draftsman.channel, %(actor_id)s::text, %(person)s::text, %(seconds)s::float8,
    %(delegate)s::text, %(channel)s::draftsman.channel, %(target)s::text)

-- Reminders of open questions. Their number is stored with the question, so that a restart repeats
-- none.

-- part: remind_due
SELECT min(remind_at) FROM draftsman.question_times WHERE remind_at IS NOT NULL

-- name: due_reminders
SELECT t.job, t.question, t.remind_at, q.kind, q.approvers, j.invoker_id AS invoker,
       draftsman.repo_of(j) AS repo,
       draftsman.now() AS now, s.snoozed, s.snoozed_until, r.direct, r.owners,
       r.shared,
-- include: approvals
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
       SELECT coalesce(array_agg(g.thread_key) FILTER (WHERE o.owner IS NOT NULL), '{}') AS direct,
              coalesce(array_agg(o.owner) FILTER (WHERE o.owner IS NOT NULL), '{}') AS owners,
              bool_or(o.owner IS NULL) IS TRUE AS shared
         FROM draftsman.job_targets g
        CROSS JOIN LATERAL (SELECT draftsman.person_of_target(g.channel, g.target) AS owner) o
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
       AND t.thread_key <> ALL (%(silent)s::text[])
     ORDER BY t.job, t.ordinal
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
)
SELECT job FROM updated

-- Digests of questions; their functions are in functions/attention.sql.

-- name: choose_digest_hour
SELECT draftsman.choose_digest(%(person)s::text, %(hours)s::time[], coalesce(
           %(timezone)s::text, (SELECT timezone FROM draftsman.people WHERE name = %(person)s::text),
           %(default)s::text), %(actor)s::text)

-- name: digest_hours
SELECT d.person, d.hours, d.timezone, draftsman.next_digest(d.person) AS next_at
  FROM draftsman.digest_hours d
 WHERE d.person = %(person)s

-- part: due
SELECT d.job, d.question, d.person FROM draftsman.digest_questions d
 WHERE d.sent_at IS NULL AND d.digest_at <= draftsman.now()
   AND d.person <> ALL (%(away)s::text[])
   AND (%(only)s::bigint[] IS NULL OR d.job = ANY (%(only)s::bigint[]))
   AND d.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY d.digest_at
 LIMIT %(limit)s
   FOR UPDATE SKIP LOCKED

-- name: digest_candidates
SELECT job FROM (
-- include: due
) d

-- Questions whose digest is due, marked as sent: each is in at most one. A question that has closed is
-- marked, and left out, and so are identical questions of later jobs: their answer counts for all.
-- What a person may not see is left out, too: `people_repos` has the visible repositories by person.
-- `channel` and `target` reach the person, and `accounts` are by channel; NULL if there is none.
-- name: take_due_digests
WITH due AS MATERIALIZED (
-- include: due
), taken AS (
    UPDATE draftsman.digest_questions d SET sent_at = draftsman.now()
      FROM due w
     WHERE d.job = w.job AND d.question = w.question AND d.person = w.person AND d.sent_at IS NULL
    RETURNING d.*
)
SELECT t.person, t.job, t.question, t.digest_at, q.text, q.expires_at,
       coalesce(r.ticket_title, r.type) AS title, (
       SELECT count(*) FROM draftsman.identical_to(t.job, t.question)) AS others, (
       SELECT jsonb_object_agg(a.channel, a.id ORDER BY a.place DESC NULLS FIRST)
         FROM (SELECT i.place, i.channel, i.external_id AS id FROM draftsman.person_identities i
                WHERE i.person = t.person
                UNION ALL
               SELECT NULL, l.channel, l.external_id FROM draftsman.identity_links l
                WHERE l.person = t.person) a) AS accounts, d.channel, d.target
  FROM taken t
  JOIN draftsman.job_questions q ON q.job = t.job AND q.ordinal = t.question
  JOIN draftsman.job_requests r ON r.number = t.job
  LEFT JOIN LATERAL draftsman.target_of_person(t.person) d ON true
 WHERE q.status = 'open' AND (NOT %(people_repos)s::jsonb ? t.person OR draftsman.is_job_of(t.job, ARRAY(
       SELECT jsonb_array_elements_text(%(people_repos)s::jsonb -> t.person)))) AND NOT EXISTS (
       SELECT FROM draftsman.identical_to(t.job, t.question) i
         JOIN draftsman.digest_questions d
           ON d.job = i.job AND d.question = i.question AND d.person = t.person
        WHERE (i.job, i.question) < (t.job, t.question)
          AND (d.digest_at = t.digest_at OR (i.job, i.question) IN (
              SELECT k.job, k.question FROM taken k WHERE k.person = t.person)))
 ORDER BY t.person, q.expires_at NULLS LAST, t.job

-- Figures of people's time: of the newest questions of the last days, at most `limit`.

-- name: record_views
SELECT draftsman.record_views(%(jobs)s::bigint[], %(questions)s::int[],
           %(source)s::draftsman.channel, %(actor_id)s::text, %(person)s::text)

-- A person sees a question with the first view or answer. An answer that came with the request is
-- none of these. A session of a person without the role operator reads its own facts only.
-- name: figures
WITH viewer AS MATERIALIZED (
    SELECT draftsman.figures_of() AS person
), asked AS MATERIALIZED (
    SELECT q.job, q.ordinal, q.kind::text AS kind, q.asked_at
      FROM draftsman.job_questions q
     WHERE q.asked_at > draftsman.now() - make_interval(secs => %(seconds)s::float8)
       AND q.asked_at <= draftsman.now() - make_interval(secs => %(until)s::float8) AND
-- visible job: q.job
     ORDER BY q.asked_at DESC
     LIMIT %(limit)s
), answered AS MATERIALIZED (
    SELECT q.job, q.ordinal, a.voter AS person, a.source::text AS channel, q.kind,
           extract(epoch FROM a.created_at - q.asked_at)::float8 AS seconds
      FROM asked q
     CROSS JOIN viewer
      JOIN LATERAL (SELECT * FROM draftsman.job_answers n
                     WHERE n.job = q.job AND n.question = q.ordinal AND n.accepted
                       AND n.source <> 'internal'
                    OFFSET 0) a  -- by the index of each question, however many answers there are
        ON coalesce(a.voter = viewer.person, true)
), sightings AS (
    SELECT * FROM answered
     UNION ALL
    SELECT q.job, q.ordinal, v.person, v.channel::text, q.kind,
           extract(epoch FROM v.seen_at - q.asked_at)::float8
      FROM asked q
     CROSS JOIN viewer
      JOIN LATERAL (SELECT * FROM draftsman.question_views n
                     WHERE n.job = q.job AND n.question = q.ordinal
                    OFFSET 0) v
        ON coalesce(v.person = viewer.person, true)
), seen AS MATERIALIZED (
    SELECT job, ordinal, person, kind, min(seconds) AS seconds,
           (array_agg(channel ORDER BY seconds))[1] AS channel
      FROM sightings
     GROUP BY job, ordinal, person, kind
), pings AS (
    SELECT q.job, q.ordinal, d.person, d.channel, q.kind
      FROM asked q
     CROSS JOIN viewer
      JOIN LATERAL (SELECT n.channel::text AS channel,
                           draftsman.person_of_target(n.channel, n.target) AS person
                      FROM draftsman.deliveries n
                     WHERE n.job = q.job AND n.question = q.ordinal
                       AND n.kind IN ('question', 'reminder') AND n.status = 'sent'
                    OFFSET 0) d
        ON coalesce(d.person = viewer.person, viewer.person IS NULL)
), facts AS (
    SELECT 'asked' AS fact, job, NULL AS person, NULL AS channel, kind, NULL::float8 AS seconds
      FROM asked WHERE (SELECT person FROM viewer) IS NULL
     UNION ALL
    SELECT 'answer', job, person, channel, kind, seconds FROM answered
     UNION ALL
    SELECT 'sighting', job, person, channel, kind, seconds FROM seen
     UNION ALL
    SELECT 'first', job, NULL, (array_agg(channel ORDER BY seconds))[1], kind, min(seconds)
      FROM seen GROUP BY job, ordinal, kind
     UNION ALL
    SELECT 'ping', job, person, channel, kind, NULL FROM pings
), grouped AS (
    SELECT CASE WHEN grouping(person) = 0 THEN 'person' WHEN grouping(channel) = 0 THEN 'channel'
                WHEN grouping(kind) = 0 THEN 'kind' ELSE 'all' END AS by,
           coalesce(person, channel, kind) AS value,
           count(*) FILTER (WHERE fact = 'asked') AS questions,
           count(DISTINCT job) FILTER (WHERE fact = 'asked') AS jobs,
           count(*) FILTER (WHERE fact = 'answer') AS answers,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE fact = 'sighting')
               AS sighted,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE fact = 'first')
               AS first_sighted,
           percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE fact = 'sighting')
               AS sighted_p95,
           percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE fact = 'first')
               AS first_sighted_p95,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE fact = 'answer')
               AS answer_p50,
           percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE fact = 'answer')
               AS answer_p95,
           count(*) FILTER (WHERE fact = 'ping') AS pings
      FROM facts
     GROUP BY GROUPING SETS ((), (person), (channel), (kind))
)
SELECT by, coalesce(value, '') AS value, questions, jobs, answers,
       CASE WHEN by = 'person' THEN sighted ELSE first_sighted END AS seen_p50,
       CASE WHEN by = 'person' THEN sighted_p95 ELSE first_sighted_p95 END AS seen_p95,
       answer_p50, answer_p95, pings, pings::float8 / nullif(answers, 0) AS pings_per_answer
  FROM grouped
 WHERE by = 'all' OR value IS NOT NULL
 ORDER BY array_position('{all,person,channel,kind}'::text[], by), answers DESC, value

-- Interruptions by these questions: reminders, and questions that were sent to a person alone, for a
-- session that reads the figures of all people, or the person who received them. A critical question may
-- interrupt people at any time.
-- name: interruptions
WITH viewer AS MATERIALIZED (
    SELECT draftsman.figures_of() AS person
), asked AS MATERIALIZED (
    SELECT q.job, q.ordinal, q.kind, q.approvers
      FROM draftsman.questions q
     WHERE NOT q.critical AND q.asked_at > draftsman.now() - make_interval(secs => %(seconds)s::float8)
       AND q.asked_at <= draftsman.now() - make_interval(secs => %(until)s::float8) AND
-- visible job: q.job
     ORDER BY q.asked_at DESC
     LIMIT %(limit)s
)
SELECT d.channel, q.kind, q.approvers, j.invoker_id AS invoker, d.person, d.sent_at
  FROM asked q
 CROSS JOIN viewer
  JOIN LATERAL (SELECT n.channel, n.kind, n.sent_at,
                       draftsman.person_of_target(n.channel, n.target) AS person
                  FROM draftsman.deliveries n
                 WHERE n.job = q.job AND n.question = q.ordinal
                   AND n.kind IN ('question', 'reminder') AND n.status = 'sent') d
    ON coalesce(d.person = viewer.person, viewer.person IS NULL)
   AND (d.kind = 'reminder' OR d.person IS NOT NULL)
  JOIN LATERAL (SELECT r.invoker_id FROM draftsman.job_requests r
                 WHERE r.number = q.job LIMIT 1) j ON true
