-- Migrations and sessions.

-- name: lock
SELECT pg_advisory_lock(1146242645)

-- name: applied
SELECT name, checksum, applied_at FROM draftsman.schema_migrations

-- name: applied_functions
SELECT 'functions/' || name, checksum, applied_at FROM draftsman.schema_functions

-- name: record
UPDATE draftsman.schema_migrations SET checksum = %(checksum)s WHERE name = %(name)s

-- Each function with its name and the types of its parameters: independently of search_path, the
-- names of parameters and the spelling of types.
-- part: functions
functions AS MATERIALIZED (
    SELECT p.oid, format('FUNCTION draftsman.%%I(%%s)', p.proname, (
               SELECT string_agg(format('%%I.%%I', t.typnamespace::regnamespace, t.typname),
                                 ', ' ORDER BY a.place)
                 FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (type, place)
                 JOIN pg_type t ON t.oid = a.type)) AS object
      FROM pg_proc p
     WHERE p.pronamespace = 'draftsman'::regnamespace
)

-- The objects that files of functions can define, as they are recorded.
-- part: existing
existing AS MATERIALIZED (
    SELECT object FROM functions
     UNION ALL
    SELECT 'VIEW draftsman.' || relname FROM pg_class
     WHERE relkind = 'v' AND relnamespace = 'draftsman'::regnamespace
     UNION ALL
    SELECT format('TRIGGER %%s ON draftsman.%%s', t.tgname, c.relname)
      FROM pg_trigger t
      JOIN pg_class c ON c.oid = t.tgrelid
     WHERE c.relnamespace = 'draftsman'::regnamespace
     UNION ALL
    SELECT format('POLICY %%s ON draftsman.%%s', p.polname, c.relname)
      FROM pg_policy p
      JOIN pg_class c ON c.oid = p.polrelid
     WHERE c.relnamespace = 'draftsman'::regnamespace
)

-- The files of functions with objects that are gone: a numbered file has dropped them.
-- name: lost_functions
WITH
-- include: functions
,
-- include: existing
SELECT f.name FROM draftsman.schema_functions f
 WHERE EXISTS (SELECT FROM unnest(f.objects) o
                WHERE o NOT IN (SELECT object FROM existing))
   AND f.name = ANY (%(names)s)

-- Records the text of a file of functions and the objects that it defines.
-- name: record_functions
WITH
-- include: functions
UPDATE draftsman.schema_functions
   SET checksum = %(checksum)s,
       objects = ARRAY(
           SELECT coalesce(f.object, o)
             FROM unnest(%(objects)s::text[]) o
             LEFT JOIN functions f
               ON f.oid = to_regprocedure(CASE WHEN o LIKE 'FUNCTION %%' THEN substr(o, 10) END)
            ORDER BY 1)
 WHERE name = %(name)s

-- The statements that drop what the recorded files of functions of these packages defined and no file
-- defines now.
-- Dependent objects first; an object that something else depends on stops the migration.
-- name: drop_vanished
WITH
-- include: functions
,
-- include: existing
, defined AS (
    SELECT coalesce(f.object, o) AS object
      FROM unnest(%(defined)s::text[]) o
      LEFT JOIN functions f
        ON f.oid = to_regprocedure(CASE WHEN o LIKE 'FUNCTION %%' THEN substr(o, 10) END)
)
SELECT 'DROP ' || v.object
  FROM (SELECT unnest(objects) AS object FROM draftsman.schema_functions
         WHERE CASE WHEN name LIKE '%%/%%' THEN split_part(name, '/', 1) ELSE '' END
               = ANY (%(channels)s::text[])
        INTERSECT SELECT object FROM existing
        EXCEPT SELECT object FROM defined) v
 ORDER BY array_position('{TRIGGER,POLICY,VIEW,FUNCTION}', split_part(v.object, ' ', 1)), v.object

-- name: forget_functions
DELETE FROM draftsman.schema_functions
 WHERE name <> ALL (%(names)s)
   AND CASE WHEN name LIKE '%%/%%' THEN split_part(name, '/', 1) ELSE '' END
       = ANY (%(channels)s::text[])

-- name: packages
SELECT name, package, version FROM draftsman.channels WHERE version IS NOT NULL ORDER BY name

-- name: record_versions
UPDATE draftsman.channels c SET version = v.version
  FROM unnest(%(channels)s::text[], %(packages)s::text[], %(versions)s::text[])
       AS v (name, package, version)
 WHERE c.name = v.name AND c.package = v.package AND c.version IS DISTINCT FROM v.version

-- Whether the session takes writes: it is on no standby, and not read-only by default.
-- name: is_writable
SELECT NOT current_setting('transaction_read_only')::boolean

-- name: lock_timeout
SELECT set_config('lock_timeout', %(timeout)s, true)

-- name: lock_holders
SELECT a.pid, coalesce(nullif(a.application_name, ''), a.usename, 'unknown'), coalesce(a.state, 'unknown'),
       date_trunc('second', a.xact_start)::text
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
-- else.
-- name: enums
SELECT t.typname AS name, t.oid, t.typarray AS array_oid, t.oid::regtype::text AS regtype,
       array_agg(e.enumlabel::text ORDER BY e.enumsortorder) AS labels
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

-- The oldest transaction whose snapshot keeps a vacuum from removing rows; those of others are seen
-- only with the rights of pg_read_all_stats. A vacuum itself keeps none.
-- name: oldest_snapshot
SELECT session, pid, prepared, extract(epoch FROM clock_timestamp() - began)::float8 AS seconds
  FROM (SELECT coalesce(nullif(application_name, ''), usename::text) AS session, pid,
               NULL AS prepared, xact_start AS began
          FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()
           AND backend_type <> 'autovacuum worker'
           AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
         UNION ALL
        SELECT NULL, NULL, gid, prepared
          FROM pg_prepared_xacts
         WHERE database = current_database()) s
 WHERE began IS NOT NULL
 ORDER BY began
 LIMIT 1

-- name: listen
LISTEN draftsman_jobs; LISTEN draftsman_runs; LISTEN draftsman_deliveries

-- name: wake
SELECT pg_notify('draftsman_jobs', '')
