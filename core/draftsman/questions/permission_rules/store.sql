-- Permission rules; their functions are in functions/rules.sql.

-- name: decide
SELECT rule AS id, pattern
  FROM draftsman.decide_by_rule(%(job)s::bigint, %(question)s::int, %(words)s::text[])

-- Rules with their uses, newest first: of a repository, or all.
-- name: rules
SELECT r.id, r.repo, r.pattern,
       CASE WHEN r.status = 'active' AND r.expires_at <= draftsman.now() THEN 'expired'
       ELSE r.status::text END AS status,
       r.decisions, (SELECT count(*) FROM draftsman.rule_uses u WHERE u.rule = r.id) AS uses,
       r.seconds, r.proposed_at, r.proposed_by, r.ratified_at, r.ratified_by, r.expires_at,
       r.ended_at, r.ended_by, r.end_reason
  FROM draftsman.permission_rules r
 WHERE (%(id)s::bigint IS NULL OR r.id = %(id)s) AND (%(repo)s::text IS NULL OR r.repo = %(repo)s) AND
-- visible repo: r.repo
 ORDER BY r.id DESC
 LIMIT %(limit)s

-- Repositories of a name, with or without owner and host, among those that are registered, and the newest
-- requests and rules.
-- name: repos
SELECT DISTINCT r.repo
  FROM ((SELECT repo FROM draftsman.permission_requests ORDER BY job DESC, question DESC LIMIT 5000)
         UNION ALL
        (SELECT repo FROM draftsman.permission_rules ORDER BY id DESC LIMIT 1000)
         UNION ALL
        (SELECT lower(concat_ws('/', nullif(host, ''), nullif(owner, ''), name))
           FROM draftsman.repos ORDER BY id LIMIT 10000)) r
 WHERE (r.repo = lower(%(name)s) OR right(r.repo, length(%(name)s) + 1) = lower('/' || %(name)s)) AND
-- visible repo: r.repo
 ORDER BY r.repo

-- Recorded decisions of people on plain commands, newest first: of a repository, or all. With
-- `evidence`, decisions to allow are only those that are evidence for a rule.
-- name: decisions
SELECT d.job, d.question, d.repo, d.words, d.allowed, d.voter AS by, d.created_at AS at
  FROM (SELECT job, question FROM draftsman.permission_requests
         WHERE (%(repo)s::text IS NULL OR repo = %(repo)s) AND
-- visible repo: repo
         ORDER BY job DESC, question DESC
         LIMIT %(limit)s) p
 CROSS JOIN LATERAL (
       SELECT * FROM draftsman.permission_decisions
        WHERE job = p.job AND question = p.question
        LIMIT 1) d
 WHERE d.is_evidence OR NOT d.allowed OR NOT %(evidence)s
 ORDER BY d.job DESC, d.question DESC

-- Questions that a rule answered, newest first.
-- name: uses
SELECT u.job, u.question, p.words, q.answered_at AS at
  FROM draftsman.rule_uses u
  JOIN draftsman.permission_requests p ON p.job = u.job AND p.question = u.question
  JOIN draftsman.job_questions q ON q.job = u.job AND q.ordinal = u.question
 WHERE u.rule = %(rule)s AND
-- visible job: u.job
 ORDER BY u.job DESC, u.question DESC
 LIMIT %(limit)s

-- name: propose
SELECT draftsman.propose_rule(%(repo)s::text, %(pattern)s::text[], %(minimum)s::bigint,
                              %(seconds)s::float8, %(actor)s::text)

-- A sweep of the leader proposes only in its term.
-- name: propose_in_term
SELECT draftsman.propose_rule(%(repo)s::text, %(pattern)s::text[], %(minimum)s::bigint,
                              %(seconds)s::float8, 'system')
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- Proposed rules without a message, oldest first. `job` carries the message: the newest of the
-- repository that asked for a command, else the newest; a rule waits for the first.
-- name: unannounced
SELECT r.id, r.repo, r.pattern, r.decisions, r.seconds, r.proposed_by, j.job
  FROM draftsman.permission_rules r
 CROSS JOIN LATERAL (SELECT coalesce(
       (SELECT max(p.job) FROM draftsman.permission_requests p WHERE p.repo = r.repo),
       (SELECT max(n.number) FROM draftsman.job_requests n)) AS job) j
 WHERE r.status = 'proposed' AND j.job IS NOT NULL AND NOT EXISTS (
       SELECT FROM draftsman.deliveries d
        WHERE d.thread_key = format('rule %%s proposed', r.id) AND d.dedupe_key = d.thread_key)
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY r.id
 LIMIT %(limit)s

-- name: ratify
SELECT draftsman.ratify_rule(%(rule)s::bigint, %(actor)s::text, %(person)s::text,
                             %(seconds)s::float8)

-- name: revoke
SELECT draftsman.revoke_rule(%(rule)s::bigint, %(actor)s::text, %(person)s::text, %(reason)s::text)
