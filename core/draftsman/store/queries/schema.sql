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

-- Settings of a transaction behind a pooler.
-- name: set_local
SELECT set_config(name, value, true) FROM jsonb_each_text(%(settings)s::jsonb) AS s (name, value)

-- Whether the server got the start-up options of this session: some poolers ignore them.
-- name: has_start_up_options
SELECT coalesce(current_setting('draftsman.start_up_options', true), '') = 'on'

-- Settings that a database or a role defines for this session, except those that are pinned.
-- name: foreign_settings
SELECT DISTINCT c.setting
  FROM pg_db_role_setting s
  JOIN pg_database d ON d.datname = current_database() AND s.setdatabase IN (0, d.oid)
  JOIN pg_roles r ON r.rolname = session_user AND s.setrole IN (0, r.oid)
 CROSS JOIN LATERAL unnest(s.setconfig) AS c (setting)
 WHERE lower(split_part(c.setting, '=', 1)) <> ALL (%(pinned)s::text[])
 ORDER BY c.setting

-- name: listen
LISTEN draftsman_jobs; LISTEN draftsman_runs; LISTEN draftsman_deliveries

-- name: wake
SELECT pg_notify('draftsman_jobs', '')
