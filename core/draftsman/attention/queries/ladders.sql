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

-- The steps that are due. Those of jobs that another transaction has locked are left out.
-- name: due
SELECT l.job, l.question, l.step, l.due_at, draftsman.now() AS now, l.steps, l.owners, q.kind, q.key,
       q.text, t.critical, q.approvers, j.invoker_id AS invoker, q.asked_at, q.expires_at,
       EXISTS (SELECT FROM draftsman.job_targets g
                WHERE g.job = l.job AND 'question' = ANY (g.kinds)
                  AND (g.channel IN ('trello', 'forge') OR g.channel = 'slack'
                       AND draftsman.person_of('slack', g.target) IS NULL)) AS chat,
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

-- name: take
SELECT draftsman.take_ladder_step(%(job)s::bigint, %(question)s::int, %(step)s::int,
           %(due_at)s::timestamptz, %(later)s::timestamptz, %(notices)s::jsonb, %(names)s::text[],
           %(seconds)s::float8)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- The ladder of each open question, NULL without a ladder, and its delegation.
-- name: attention
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
    %(delegate)s::text, %(target)s::text)
