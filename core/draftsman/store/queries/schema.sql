-- The schema itself, and sessions.

-- name: lock
SELECT pg_advisory_lock(1146242645)

-- name: applied
SELECT name, checksum, applied_at FROM draftsman.schema_migrations

-- name: record
UPDATE draftsman.schema_migrations SET checksum = %(checksum)s WHERE name = %(name)s

-- name: new_epoch
UPDATE draftsman.feed SET epoch = epoch + 1 RETURNING epoch

-- name: statement_timeout
SELECT set_config('statement_timeout', %(timeout)s, false)

-- name: read_only
SELECT set_config('default_transaction_read_only', 'on', false)

-- name: listen
LISTEN draftsman_jobs; LISTEN draftsman_runs

-- name: wake
SELECT pg_notify('draftsman_jobs', '')
