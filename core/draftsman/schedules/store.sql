-- Schedules and their occurrences.

-- The reason of an outcome, or what an occurrence waits for.
-- part: reason
       coalesce(f.reason, CASE WHEN f.status = 'waiting' THEN draftsman.sentence(
           CASE WHEN s.paused_at IS NOT NULL THEN 'schedules.paused'
                WHEN s.last_job IS NULL THEN 'schedules.previous_unfinished'
                ELSE 'schedules.unfinished' END, jsonb_build_object('job', s.last_job))::text END)

-- part: columns
SELECT s.id, s.name, s.rule, s.timezone, s.template, s.params, s.request, s.misfire,
       s.misfire_limit, s.jitter, s.overlap, s.origin, s.created_by, s.created_at, s.updated_at,
       s.paused_at, s.paused_by, s.pause_reason, s.due_at, s.fire_at, s.last_job,
       f.due_at AS last_due_at, f.status AS last_status,
-- include: reason
       AS last_reason, coalesce(f.job, s.last_job) AS newest_job
  FROM draftsman.schedules s
  LEFT JOIN LATERAL (
       SELECT due_at, status, reason, job FROM draftsman.schedule_fires
        WHERE schedule = s.id
        ORDER BY due_at DESC
        LIMIT 1) f ON true

-- A schedule belongs to the repository of its request, or of the newest job.
-- part: visible
-- visible repo: s.request ->> 'repo'
   AND
-- visible job: coalesce(f.job, s.last_job)

-- name: all_schedules
-- include: columns
 WHERE
-- include: visible
 ORDER BY s.name
 LIMIT %(limit)s

-- Those of a file, or those that job types declare.
-- name: of_origin
-- include: columns
 WHERE s.origin = %(origin)s AND
-- include: visible
 ORDER BY s.name
 LIMIT %(limit)s

-- name: by_name
-- include: columns
 WHERE s.name = %(name)s AND
-- include: visible

-- The same, locked until the end of the transaction: it does not fire meanwhile.
-- name: lock
-- include: columns
 WHERE s.name = %(name)s AND
-- include: visible
   FOR NO KEY UPDATE OF s

-- name: add
INSERT INTO draftsman.schedules AS s (name, rule, timezone, template, params, request, misfire,
       misfire_limit, jitter, overlap, origin, created_by)
VALUES (%(name)s, %(rule)s, %(timezone)s, %(template)s, %(params)s, %(request)s, %(misfire)s,
        %(misfire_limit)s, %(jitter)s, %(overlap)s, %(origin)s, %(created_by)s)
    ON CONFLICT DO NOTHING
RETURNING s.id, s.created_at

-- name: change
UPDATE draftsman.schedules
   SET rule = %(rule)s, timezone = %(timezone)s, template = %(template)s, params = %(params)s,
       request = %(request)s, misfire = %(misfire)s, misfire_limit = %(misfire_limit)s,
       jitter = %(jitter)s, overlap = %(overlap)s, origin = %(origin)s,
       created_by = %(created_by)s, updated_at = draftsman.now()
 WHERE id = %(id)s

-- name: set_next
UPDATE draftsman.schedules SET due_at = %(due_at)s, fire_at = %(fire_at)s WHERE id = %(id)s

-- name: pause
UPDATE draftsman.schedules
   SET paused_at = draftsman.now(), paused_by = %(by)s, pause_reason = %(reason)s
 WHERE id = %(id)s

-- name: resume
UPDATE draftsman.schedules
   SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, due_at = %(due_at)s,
       fire_at = %(fire_at)s
 WHERE id = %(id)s

-- name: remove
DELETE FROM draftsman.schedules WHERE id = %(id)s RETURNING id

-- part: occurrences
SELECT s.name AS schedule, f.due_at, f.status, f.job,
-- include: reason
       AS reason, f.recorded_at, s.timezone
  FROM draftsman.schedules s
  JOIN draftsman.schedule_fires f ON f.schedule = s.id

-- The occurrences of a schedule, newest first.
-- name: history
-- include: occurrences
 WHERE s.name = %(name)s AND
-- visible job: f.job
 ORDER BY f.due_at DESC
 LIMIT %(limit)s

-- The occurrences of all schedules, newest first.
-- name: latest
-- include: occurrences
 WHERE
-- visible repo: s.request ->> 'repo'
   AND
-- visible job: f.job
 ORDER BY f.due_at DESC
 LIMIT %(limit)s

-- The occurrence that submitted a job.
-- name: of_job
-- include: occurrences
 WHERE f.job = %(job)s

-- A waiting occurrence is due when the previous job of its schedule has finished.
-- part: schedules_due
SELECT least(
    (SELECT min(fire_at) FROM draftsman.schedules
      WHERE fire_at IS NOT NULL AND paused_at IS NULL),
    (SELECT f.due_at FROM draftsman.schedule_fires f
       JOIN draftsman.schedules s ON s.id = f.schedule AND s.paused_at IS NULL
       LEFT JOIN draftsman.job_states j ON j.number = s.last_job
      WHERE f.status = 'waiting'
        AND (j.number IS NULL
             OR j.status IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))
      LIMIT 1))

-- Schedules with an occurrence that is due, locked. Two leaders lock different schedules; the
-- primary key of the occurrences is the last defense.
-- name: due
WITH due AS MATERIALIZED (
    SELECT s.id FROM draftsman.schedules s
     WHERE s.fire_at <= draftsman.now() AND s.paused_at IS NULL
       AND (%(only)s::bigint[] IS NULL OR s.id = ANY (%(only)s::bigint[]))
       AND s.id <> ALL (%(without)s::bigint[])
       AND (%(term)s::bigint IS NULL OR EXISTS (
           SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
              AND term = %(term)s AND expires_at > draftsman.now()))
     ORDER BY s.fire_at
     LIMIT %(limit)s
       FOR NO KEY UPDATE SKIP LOCKED
)
-- include: columns
 WHERE s.id = ANY (ARRAY(SELECT id FROM due))
 ORDER BY s.fire_at, s.id

-- Schedules whose oldest waiting occurrence may fire: the previous job has finished.
-- name: ready
WITH oldest AS (
    SELECT DISTINCT ON (f.schedule) f.schedule, f.due_at
      FROM draftsman.schedule_fires f
     WHERE f.status = 'waiting'
     ORDER BY f.schedule, f.due_at
), locked AS MATERIALIZED (
    SELECT l.id
      FROM oldest o
     CROSS JOIN LATERAL (
           SELECT s.id FROM draftsman.schedules s
             LEFT JOIN draftsman.job_states j ON j.number = s.last_job
            WHERE s.id = o.schedule AND s.paused_at IS NULL
              AND (j.number IS NULL
                   OR j.status IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))
              FOR NO KEY UPDATE OF s SKIP LOCKED) l
     WHERE (%(only)s::bigint[] IS NULL OR l.id = ANY (%(only)s::bigint[]))
       AND l.id <> ALL (%(without)s::bigint[])
       AND (%(term)s::bigint IS NULL OR EXISTS (
           SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
              AND term = %(term)s AND expires_at > draftsman.now()))
     ORDER BY o.due_at, o.schedule
     LIMIT %(limit)s
)
-- include: columns
 WHERE s.id = ANY (ARRAY(SELECT id FROM locked))
 ORDER BY s.id

-- The recorded occurrences of these schedules from a time on, and those that wait.
-- name: recorded
SELECT w.schedule, f.due_at, f.status
  FROM unnest(%(schedules)s::bigint[], %(since)s::timestamptz[]) AS w (schedule, since)
 CROSS JOIN LATERAL (
       SELECT due_at, status FROM draftsman.schedule_fires
        WHERE schedule = w.schedule AND due_at >= w.since
        UNION ALL
       SELECT due_at, status FROM draftsman.schedule_fires
        WHERE schedule = w.schedule AND due_at < w.since AND status = 'waiting') f
 ORDER BY w.schedule, f.due_at

-- Those of the jobs that have not finished.
-- name: unfinished
SELECT number FROM draftsman.job_states
 WHERE number = ANY (%(jobs)s::bigint[])
   AND status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired')

-- name: record
INSERT INTO draftsman.schedule_fires AS f (schedule, due_at, status, job, reason)
SELECT w.schedule, w.due_at, w.status, w.job, w.reason
  FROM unnest(%(schedules)s::bigint[], %(due)s::timestamptz[], %(statuses)s::text[],
              %(jobs)s::bigint[], %(reasons)s::text[])
       AS w (schedule, due_at, status, job, reason)
 ORDER BY w.schedule, w.due_at
RETURNING f.schedule

-- The outcome of occurrences that waited.
-- name: resolve
UPDATE draftsman.schedule_fires f
   SET status = w.status, job = w.job, reason = w.reason, recorded_at = draftsman.now()
  FROM unnest(%(schedules)s::bigint[], %(due)s::timestamptz[], %(statuses)s::text[],
              %(jobs)s::bigint[], %(reasons)s::text[])
       AS w (schedule, due_at, status, job, reason)
 WHERE f.schedule = w.schedule AND f.due_at = w.due_at AND f.status = 'waiting'
RETURNING f.schedule

-- name: advance
UPDATE draftsman.schedules s
   SET due_at = w.due_at, fire_at = w.fire_at, last_job = coalesce(w.job, s.last_job)
  FROM unnest(%(schedules)s::bigint[], %(due)s::timestamptz[], %(fire)s::timestamptz[],
              %(jobs)s::bigint[]) AS w (schedule, due_at, fire_at, job)
 WHERE s.id = w.schedule AND s.id = ANY (%(schedules)s::bigint[])

-- Occurrences that are older than the newest thousand of their schedule.
-- name: forget
DELETE FROM draftsman.schedule_fires f
 WHERE f.ctid = ANY (ARRAY(
       SELECT o.location
         FROM unnest(%(schedules)s::bigint[]) AS w (schedule)
        CROSS JOIN LATERAL (
              SELECT due_at FROM draftsman.schedule_fires
               WHERE schedule = w.schedule
               ORDER BY due_at DESC
              OFFSET 1000 LIMIT 1) oldest
        CROSS JOIN LATERAL (
              SELECT ctid AS location FROM draftsman.schedule_fires
               WHERE schedule = w.schedule AND due_at <= oldest.due_at AND status <> 'waiting'
               ORDER BY due_at
               LIMIT 1000) o))
RETURNING f.schedule

-- Versions of job templates.

-- The newest version of each template; a removed template is left out.
-- name: newest_templates
SELECT t.name, t.version, t.definition, t.created_by, t.created_at
  FROM (SELECT DISTINCT ON (name) name, version, definition, created_by, created_at
          FROM draftsman.job_templates
         ORDER BY name, version DESC) t
 WHERE t.definition IS NOT NULL
 ORDER BY t.name
 LIMIT %(limit)s

-- The versions of a template, newest first; up to a version, if it is given.
-- name: template_versions
SELECT name, version, definition, created_by, created_at
  FROM draftsman.job_templates
 WHERE name = %(name)s AND version <= coalesce(%(version)s::int, 2147483647)
 ORDER BY version DESC
 LIMIT %(limit)s

-- The next version of a template; no row if another session has stored it meanwhile.
-- name: add_template
INSERT INTO draftsman.job_templates (name, version, definition, created_by)
VALUES (%(name)s, %(version)s, %(definition)s, %(actor)s)
    ON CONFLICT DO NOTHING
RETURNING name, version, definition, created_by, created_at
