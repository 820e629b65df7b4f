-- Limits of concurrency and rates: their configuration, their use, and the places of jobs.

-- Replaces the configured limits, in the term of the leader only.
-- name: configure
SELECT draftsman.set_limits(%(limits)s::jsonb, 'system')
 WHERE EXISTS (SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
                  AND term = %(term)s AND expires_at > draftsman.now())

-- The newest changes of the limits.
-- name: changes
SELECT id, limits, actor, created_at
  FROM draftsman.limit_changes
 ORDER BY id DESC
 LIMIT %(limit)s

-- name: check
SELECT draftsman.check_limits(%(limit)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: give
SELECT draftsman.give_places(%(limit)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- The use of each limit, or of a bucket: with the jobs that have places, of the first 1,000 that may be
-- claimed and all that a worker has, and at most so many waiting jobs.
-- name: uses
WITH active AS MATERIALIZED (
    SELECT number, limits FROM draftsman.job_states
     WHERE status IN ('claimed', 'running') AND limits IS NOT NULL
     UNION ALL
    SELECT number, limits
      FROM ((SELECT number, limits FROM draftsman.job_states
              WHERE status IN ('queued', 'resumed') AND hold IS NULL AND NOT by_type
              ORDER BY queue, priority DESC, position, number
              LIMIT 1000)
             UNION ALL
            (SELECT number, limits FROM draftsman.job_states
              WHERE by_type AND status IN ('queued', 'resumed') AND hold IS NULL
              ORDER BY queue, type, priority DESC, position, number
              LIMIT 1000)) q
     WHERE limits IS NOT NULL
), names AS (
    SELECT l.scope || ':' || l.value AS name, l.running, l.rate, l.period, l.burst, NULL AS bucket
      FROM draftsman.limits l
     WHERE num_nonnulls(l.running, l.rate) > 0 AND NOT EXISTS (
           SELECT FROM draftsman.limit_buckets b WHERE b.name = l.scope || ':' || l.value)
     UNION ALL
    SELECT name, running, rate, period, burst, name FROM draftsman.limit_buckets
)
SELECT n.name, n.running, n.rate, n.period, n.burst, (coalesce(b.taken, 0) + p.change)::int AS taken,
       coalesce((SELECT sum(s.count) FROM unnest(b.starts, b.start_counts) AS s (at, count)
                  WHERE s.at > draftsman.now() - make_interval(secs => b.period)), 0)::int AS started,
       CASE WHEN b.name IS NULL THEN least(n.running, coalesce(n.burst, n.rate))
            WHEN num_nonnulls(b.running, b.rate) > 0 THEN draftsman.free_places(b) END AS free,
       (SELECT count(*) FROM (
           SELECT FROM draftsman.job_states s WHERE s.held_by = n.name LIMIT %(most)s) w) AS waiting,
       ARRAY(SELECT a.number FROM active a WHERE n.name = ANY (a.limits) ORDER BY a.number LIMIT 100)
           AS jobs,
       b.next_at
  FROM names n
  LEFT JOIN draftsman.limit_buckets b ON b.name = n.bucket
 CROSS JOIN LATERAL (SELECT coalesce(sum(change), 0) AS change FROM draftsman.postponed_work
                      WHERE bucket = n.name) p
 WHERE %(name)s::text IS NULL OR n.name = %(name)s
 ORDER BY n.name
