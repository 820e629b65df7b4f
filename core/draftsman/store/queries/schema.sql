-- Migrations and sessions.

-- name: lock
SELECT pg_advisory_lock(1146242645)

-- name: applied
SELECT name, checksum, applied_at FROM draftsman.schema_migrations

-- name: record
UPDATE draftsman.schema_migrations SET checksum = %(checksum)s WHERE name = %(name)s

-- name: lock_timeout
SELECT set_config('lock_timeout', %(timeout)s, true)

-- name: lock_holders
SELECT 'pid ' || a.pid || ' (' || coalesce(nullif(a.application_name, ''), a.usename, 'unknown')
       || ', ' || coalesce(a.state, 'unknown') || ') since ' || date_trunc('second', a.xact_start)
  FROM pg_stat_activity a
 WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL
   AND EXISTS (SELECT FROM pg_locks l
                 JOIN pg_class c ON c.oid = l.relation
                 JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'draftsman'
                WHERE l.pid = a.pid AND l.granted)
 ORDER BY a.xact_start
 LIMIT 3

-- Grants the rights of the group roles; returns the SQL that an administrator must run first.
-- name: grant_roles
SELECT draftsman.grant_roles()

-- name: new_epoch
SELECT draftsman.raise_epoch(1)

-- All enums with their labels in order, in a single query: a process needs them before anything
-- else. Only versions before the first release had a table `feed`.
-- name: enums
SELECT t.typname AS name, t.oid, t.typarray AS array_oid, t.oid::regtype::text AS regtype,
       array_agg(e.enumlabel::text ORDER BY e.enumsortorder) AS labels,
       to_regclass('draftsman.feed') IS NOT NULL AS unsupported
  FROM pg_type t
  JOIN pg_enum e ON e.enumtypid = t.oid
 WHERE t.typnamespace = to_regnamespace('draftsman')
 GROUP BY t.oid

-- Settings of every session. Statements read few rows, and compiling them (`jit`, on by default)
-- takes longer than running them.
-- name: configure
SELECT set_config('statement_timeout', %(timeout)s, false), set_config('jit', 'off', false)

-- The session's statements are planned once, with index scans and nested loops. Hash joins stay:
-- the trigger that writes events joins two transition tables, which have no index.
-- name: pin_plans
SELECT set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false),
       set_config('enable_mergejoin', 'off', false), set_config('enable_sort', 'off', false)

-- name: read_only
SELECT set_config('default_transaction_read_only', 'on', false)

-- name: listen
LISTEN draftsman_jobs; LISTEN draftsman_runs; LISTEN draftsman_deliveries

-- name: wake
SELECT pg_notify('draftsman_jobs', '')
