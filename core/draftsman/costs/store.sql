-- Budgets: reservations and usage of calls, raises, configuration, and costs.

-- Reserves the estimate of a call; without a call, only checks whether a budget is used up. Other calls
-- see the reservation at once; its commit does not wait for the disk. One that a crash of the server loses
-- ends sooner, so that other calls may start beside this one. The record of the call waits.
-- name: reserve
SELECT r.* FROM set_config('synchronous_commit', 'off', true) f
 CROSS JOIN LATERAL draftsman.reserve_budgets(%(job)s::bigint, %(token)s::bigint, %(call)s::uuid,
           %(cost_usd)s::numeric, %(input_tokens)s::bigint, %(output_tokens)s::bigint,
           %(own)s::jsonb) s
 CROSS JOIN LATERAL draftsman.budget_reply(s) r

-- The usage of a run so far, with the call that it grew by.
-- name: record
SELECT r.* FROM draftsman.record_usage(%(job)s::bigint, %(token)s::bigint, %(usage)s::jsonb, %(model)s::text,
           %(call)s::uuid, %(own)s::jsonb) s
 CROSS JOIN LATERAL draftsman.budget_reply(s) r

-- Reservations of runs that make no calls any more, which do not count; and grace periods that are
-- over. Returns the number of reservations.
-- name: release_lost
WITH term AS MATERIALIZED (
    SELECT WHERE %(term)s::bigint IS NULL OR EXISTS (
           SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
              AND term = %(term)s AND expires_at > draftsman.now())
), periods AS (
    DELETE FROM draftsman.grace_periods g USING term
     WHERE g.ends_at < draftsman.now() - interval '1 minute'
), lost AS MATERIALIZED (
    SELECT r.call, r.name FROM draftsman.budget_reservations r
     WHERE NOT draftsman.is_reserving(r.job, r.lease_token) AND EXISTS (SELECT FROM term)
     LIMIT %(limit)s
       FOR UPDATE OF r SKIP LOCKED
)
DELETE FROM draftsman.budget_reservations r USING lost l WHERE r.call = l.call AND r.name = l.name

-- name: release
DELETE FROM draftsman.budget_reservations WHERE call = %(call)s

-- name: add
SELECT draftsman.raise_budget(%(job)s::bigint, %(token)s::bigint, %(question)s::int,
                              %(amount)s::numeric)

-- Replaces the configured budgets, in the term of the leader only.
-- name: configure
SELECT draftsman.set_budgets(%(budgets)s::jsonb, %(timezone)s::text, 'system')
 WHERE EXISTS (SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
                  AND term = %(term)s AND expires_at > draftsman.now())

-- The budgets with their use today, those of unfinished jobs that have run, of the newest jobs of each
-- status, and the configured budgets without a use.
-- name: uses
WITH today AS MATERIALIZED (
    SELECT draftsman.budget_day() AS day
), active AS MATERIALIZED (
    SELECT 'job:' || s.number AS name
      FROM unnest(%(statuses)s::draftsman.job_status[]) AS w (status)
     CROSS JOIN LATERAL (
           SELECT j.number FROM draftsman.job_states j
            WHERE (j.status, j.number) >= (w.status, 0)
              AND (j.status, j.number) < (w.status, 9223372036854775807)
            ORDER BY j.status DESC, j.number DESC
            LIMIT %(limit)s) s
), used AS MATERIALIZED (
    SELECT u.* FROM today t JOIN draftsman.budget_uses u ON u.day = t.day AND u.day > '-infinity'
     UNION ALL
    SELECT u.* FROM active a
     CROSS JOIN LATERAL (
           SELECT * FROM draftsman.budget_uses
            WHERE name = a.name AND day = '-infinity'
            LIMIT 1) u
)
SELECT s.name, nullif(s.day, '-infinity') AS day, s.measure, s.used::float8,
       s.reserved::float8, s.budget::float8, s.added::float8
  FROM used u
 CROSS JOIN LATERAL draftsman.budget_states(u::draftsman.budget_uses, NULL) s
 WHERE
-- visible repo: CASE WHEN starts_with(s.name, 'repo:') THEN substr(s.name, 6) END
   AND
-- visible job: CASE WHEN starts_with(s.name, 'job:') THEN substr(s.name, 5)::bigint END
 UNION ALL
SELECT b.scope || ':' || b.value, NULL, m.measure, 0, 0, m.amount::float8, 0
  FROM draftsman.budgets b
 CROSS JOIN LATERAL draftsman.budget_of(b.scope || ':' || b.value, NULL) m
 WHERE NOT EXISTS (SELECT FROM used u WHERE u.name = b.scope || ':' || b.value) AND
-- visible repo: CASE b.scope WHEN 'repo' THEN b.value END
 ORDER BY 1, 3

-- The costs of the last days by a column.
-- name: costs
SELECT CASE %(by)s WHEN 'repo' THEN c.repo WHEN 'person' THEN c.person WHEN 'agent' THEN c.agent
       WHEN 'model' THEN c.model ELSE c.day::text END AS value,
       sum(c.calls)::bigint AS calls, sum(c.cost_usd)::float8 AS cost_usd,
       sum(c.input_tokens)::bigint AS input_tokens, sum(c.output_tokens)::bigint AS output_tokens
  FROM draftsman.daily_costs c
 WHERE c.day > draftsman.budget_day() - %(days)s::int
   AND c.day <= draftsman.budget_day() - %(until)s::int AND
-- visible repo: c.repo
 GROUP BY 1
 ORDER BY CASE WHEN %(by)s = 'day' THEN 0 ELSE -sum(c.cost_usd) END, 1
