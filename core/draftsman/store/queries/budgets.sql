-- Budgets: reservations and usage of calls, raises, configuration, and costs.

-- Reserves the estimate of a call; without a call, only checks whether a budget is used up.
-- name: reserve
SELECT outcome, coalesce(name, '') AS name, nullif(day, '-infinity') AS day,
       coalesce(measure, 'cost_usd') AS measure, coalesce(used, 0)::float8 AS used,
       coalesce(reserved, 0)::float8 AS reserved, coalesce(budget, 0)::float8 AS budget,
       coalesce(added, 0)::float8 AS added
  FROM draftsman.reserve_budgets(%(job)s::bigint, %(token)s::bigint, %(call)s::uuid,
           %(cost_usd)s::numeric, %(input_tokens)s::bigint, %(output_tokens)s::bigint,
           %(own)s::jsonb)

-- The usage of a run so far, with the call that it grew by.
-- name: record
SELECT outcome, coalesce(name, '') AS name, nullif(day, '-infinity') AS day,
       coalesce(measure, 'cost_usd') AS measure, coalesce(used, 0)::float8 AS used,
       coalesce(reserved, 0)::float8 AS reserved, coalesce(budget, 0)::float8 AS budget,
       coalesce(added, 0)::float8 AS added
  FROM draftsman.record_usage(%(job)s::bigint, %(token)s::bigint, %(usage)s::jsonb, %(model)s::text,
           %(call)s::uuid, %(own)s::jsonb)

-- name: release
DELETE FROM draftsman.budget_reservations WHERE call = %(call)s

-- name: add
SELECT draftsman.raise_budget(%(job)s::bigint, %(token)s::bigint, %(question)s::int,
                              %(amount)s::numeric)
