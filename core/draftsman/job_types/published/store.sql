-- Descriptions of job types.

-- A description that is known keeps the time of its first publication.
-- name: publish
INSERT INTO draftsman.job_types AS t (name, version, place, description, title, queue, concurrency,
       parameters, limits, aliases, schedules)
VALUES (%(name)s, %(version)s, %(place)s, %(description)s, %(title)s, %(queue)s, %(concurrency)s,
        %(parameters)s, %(limits)s, %(aliases)s, %(schedules)s)
    ON CONFLICT (name, version) DO UPDATE SET served_at = draftsman.now()

-- Of the descriptions that live workers serve, the one that was published last is valid; without a
-- live worker, the one that a worker served last.
-- name: described
WITH served AS MATERIALIZED (
    SELECT d.version, count(*) AS workers
      FROM draftsman.serving_workers(%(lease)s) w
     CROSS JOIN unnest(w.descriptions) AS d (version)
     GROUP BY d.version
), valid AS (
    SELECT DISTINCT ON (t.name) t.*, coalesce(s.workers, 0)::int AS workers
      FROM draftsman.job_types t
      LEFT JOIN served s ON s.version = t.version
     WHERE %(names)s::text[] IS NULL OR t.name = ANY (%(names)s::text[])
        OR t.aliases && %(names)s::text[]
     ORDER BY t.name, s.version IS NULL,
              CASE WHEN s.version IS NULL THEN t.served_at ELSE t.published_at END DESC
)
SELECT name, place, description, title, queue, concurrency, parameters, limits, aliases,
       schedules, published_at, served_at, workers
  FROM valid
 ORDER BY workers > 0, served_at, name
 LIMIT %(limit)s

-- A job was submitted with the description that was the newest then.
-- name: older_jobs
SELECT count(*)
  FROM draftsman.job_states j
  JOIN draftsman.job_requests r ON r.number = j.number
 WHERE j.type = ANY (%(names)s) AND j.status IN ('scheduled', 'queued')
   AND (SELECT t.parameters::text FROM draftsman.job_types t
         WHERE t.version = %(version)s)
       IS DISTINCT FROM
       (SELECT t.parameters::text FROM draftsman.job_types t
         WHERE t.name = ANY (%(names)s) AND t.published_at <= r.created_at
         ORDER BY t.published_at DESC LIMIT 1)
