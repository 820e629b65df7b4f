-- Archived months of events.

-- Pruning and restoring run in a transaction that excludes others. Times are written as UTC, so
-- that the same events give the same bytes.
-- name: begin
SELECT set_config('lock_timeout', %(lock)s, true),
       set_config('statement_timeout', %(statement)s, true),
       set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO, MDY', true),
       pg_try_advisory_xact_lock(1146242646)

-- Months that ended before the retention, oldest first.
-- name: due
SELECT m.month FROM draftsman.event_months m
 WHERE (m.month + interval '1 month') AT TIME ZONE 'UTC'
       <= draftsman.now() - make_interval(months => %(months)s)
   AND NOT EXISTS (SELECT FROM draftsman.event_archives a WHERE a.month = m.month)
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY m.month

-- Such months with events in the default partition: there is no partition to drop.
-- name: default_partition_months
SELECT date_trunc('month', created_at AT TIME ZONE 'UTC')::date AS month, count(*) AS events
  FROM draftsman.job_events_default
 WHERE created_at < date_trunc('month', (draftsman.now() - make_interval(months => %(months)s))
                               AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
 GROUP BY 1
 ORDER BY 1

-- name: count
SELECT count(*) FROM draftsman.event_stream
 WHERE created_at >= %(first)s::timestamptz AND created_at < %(after)s::timestamptz

-- Jobs that hold a month: unfinished, or finished too recently; `of` is their number.
-- name: holders
SELECT e.job, coalesce(j.status::text, 'missing') AS status, count(*) OVER () AS of
  FROM (SELECT DISTINCT job FROM draftsman.event_stream
         WHERE created_at >= %(first)s::timestamptz AND created_at < %(after)s::timestamptz) e
  LEFT JOIN draftsman.job_states j ON j.number = e.job
 WHERE j.finished_at IS NULL OR j.finished_at > draftsman.now() - make_interval(months => %(months)s)
 ORDER BY e.job
 LIMIT %(limit)s

-- name: lock_month
SELECT draftsman.lock_event_month(%(month)s)
 WHERE NOT EXISTS (SELECT FROM draftsman.event_archives WHERE month = %(month)s)

-- name: copy_out
COPY (SELECT job, id, run, kind, from_status, to_status, actor, payload, created_at, epoch, txid
        FROM draftsman.event_stream
       WHERE created_at >= %(first)s::timestamptz AND created_at < %(after)s::timestamptz
       ORDER BY epoch, txid, id) TO STDOUT

-- name: drop
SELECT draftsman.drop_event_month(%(month)s, %(sha256)s, %(host)s, %(path)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: make_partition
SELECT draftsman.make_event_partition(%(month)s)

-- name: copy_in
COPY draftsman.job_events
     (job, id, run, kind, from_status, to_status, actor, payload, created_at, epoch, txid)
     FROM STDIN

-- name: forget
DELETE FROM draftsman.event_archives WHERE month = %(month)s

-- name: archives
SELECT month, events, sha256, host, path, archived_at, last_epoch,
       last_txid::text::bigint AS last_txid, last_id
  FROM draftsman.event_archives
 ORDER BY month

-- name: of_job
SELECT a.month, p.events, a.host, a.path
  FROM draftsman.archived_jobs p
  JOIN draftsman.event_archives a ON a.month = p.month
 WHERE p.job = %(job)s
 ORDER BY a.month

-- Logs of jobs that finished before the retention. It walks the jobs by key, up to the first that
-- was created after that.
-- name: prune_logs
WITH RECURSIVE limits AS MATERIALIZED (
    SELECT draftsman.now() - make_interval(months => %(months)s) AS before
     WHERE %(term)s::bigint IS NULL OR EXISTS (
           SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
              AND term = %(term)s AND expires_at > draftsman.now())
), walk AS (
    (SELECT l.job, x.before FROM draftsman.run_log_chunks l CROSS JOIN limits x
      ORDER BY l.job LIMIT 1)
    UNION ALL
    SELECT n.job, w.before
      FROM walk w
      JOIN draftsman.job_requests j ON j.number = w.job AND j.created_at < w.before
     CROSS JOIN LATERAL (SELECT l.job FROM draftsman.run_log_chunks l
                          WHERE l.job > w.job ORDER BY l.job LIMIT 1) n
), old AS MATERIALIZED (
    SELECT w.job FROM walk w
      JOIN draftsman.job_states j ON j.number = w.job AND j.finished_at < w.before
     LIMIT %(limit)s
)
DELETE FROM draftsman.run_log_chunks l USING old o WHERE l.job = o.job

-- The activity of these jobs.
-- name: prune_activity
WITH RECURSIVE limits AS MATERIALIZED (
    SELECT draftsman.now() - make_interval(months => %(months)s) AS before
     WHERE %(term)s::bigint IS NULL OR EXISTS (
           SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
              AND term = %(term)s AND expires_at > draftsman.now())
), walk AS (
    (SELECT a.job, x.before FROM draftsman.run_activity a CROSS JOIN limits x
      ORDER BY a.job LIMIT 1)
    UNION ALL
    SELECT n.job, w.before
      FROM walk w
      JOIN draftsman.job_requests j ON j.number = w.job AND j.created_at < w.before
     CROSS JOIN LATERAL (SELECT a.job FROM draftsman.run_activity a
                          WHERE a.job > w.job ORDER BY a.job LIMIT 1) n
), old AS MATERIALIZED (
    SELECT w.job FROM walk w
      JOIN draftsman.job_states j ON j.number = w.job AND j.finished_at < w.before
     LIMIT %(limit)s
)
DELETE FROM draftsman.run_activity a USING old o WHERE a.job = o.job

-- Event partitions for this month and the following months; returns the number created.
-- name: partitions
SELECT draftsman.make_event_partitions(%(ahead)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())
