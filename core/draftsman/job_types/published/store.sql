-- Descriptions of job types.

-- A description that is known keeps the time of its first publication.
-- name: publish
INSERT INTO draftsman.job_types AS t (name, version, place, description, title, queue, concurrency,
       parameters, payload_version, migrates, limits, aliases, schedules, app)
VALUES (%(name)s, %(version)s, %(place)s, %(description)s, %(title)s, %(queue)s, %(concurrency)s,
        %(parameters)s, %(payload_version)s, %(migrates)s, %(limits)s, %(aliases)s, %(schedules)s, %(app)s)
    ON CONFLICT (name, version) DO UPDATE SET served_at = draftsman.now(), app = excluded.app

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
SELECT name, place, description, title, queue, concurrency, parameters, payload_version, migrates,
       limits, aliases, schedules, app, published_at, served_at, workers
  FROM valid
 ORDER BY workers > 0, served_at, name
 LIMIT %(limit)s

-- The jobs that run, or run again, with these parameters; those that run already have read theirs.
-- name: waiting_payloads
SELECT j.number, r.payload, coalesce((r.overrides ->> 'payload_version')::int, 1) AS version
  FROM draftsman.job_states j
  JOIN draftsman.job_requests r ON r.number = j.number
 WHERE j.type = ANY (%(names)s)
   AND j.status IN ('scheduled', 'queued', 'retrying', 'resumed', 'waiting_for_input',
                    'waiting_for_approval')
 ORDER BY j.number
 LIMIT %(limit)s
