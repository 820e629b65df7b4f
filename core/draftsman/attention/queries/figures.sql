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
      JOIN LATERAL (SELECT n.channel::text AS channel, CASE WHEN n.channel = 'slack'
                           THEN draftsman.person_of('slack', n.target) END AS person
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
     ORDER BY q.asked_at DESC
     LIMIT %(limit)s
)
SELECT d.channel, q.kind, q.approvers, j.invoker_id AS invoker, d.person, d.sent_at
  FROM asked q
 CROSS JOIN viewer
  JOIN LATERAL (SELECT n.channel, n.kind, n.sent_at, CASE WHEN n.channel = 'slack'
                       THEN draftsman.person_of('slack', n.target) END AS person
                  FROM draftsman.deliveries n
                 WHERE n.job = q.job AND n.question = q.ordinal
                   AND n.kind IN ('question', 'reminder') AND n.status = 'sent') d
    ON coalesce(d.person = viewer.person, viewer.person IS NULL)
   AND (d.kind = 'reminder' OR d.person IS NOT NULL)
  JOIN LATERAL (SELECT r.invoker_id FROM draftsman.job_requests r
                 WHERE r.number = q.job LIMIT 1) j ON true
