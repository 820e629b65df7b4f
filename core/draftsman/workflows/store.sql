-- Dependencies between jobs: parents, children and trees.

-- Lets new jobs wait for their parents; returns those that were canceled at once.
-- name: link
SELECT draftsman.link_jobs(%(jobs)s::bigint[], %(parents)s::bigint[],
                           %(conditions)s::draftsman.dependency_condition[])

-- The parents of a job, in the order of its request.
-- name: parents
SELECT d.parent AS number, d.condition::text, d.met, s.status, s.type,
       r.ticket_title AS title, s.result, s.last_error AS error
  FROM draftsman.job_dependencies d
 CROSS JOIN LATERAL (
       SELECT status, type, result, last_error FROM draftsman.job_states
        WHERE number = d.parent LIMIT 1) s
 CROSS JOIN LATERAL (
       SELECT ticket_title FROM draftsman.job_requests WHERE number = d.parent LIMIT 1) r
 WHERE d.job = %(job)s AND NOT d.spawned
 ORDER BY d.ordinal

-- The jobs that a job spawned, of these.
-- name: spawned
SELECT d.parent AS number, d.condition::text, d.met, s.status, s.type,
       r.ticket_title AS title, s.result, s.last_error AS error
  FROM draftsman.job_dependencies d
 CROSS JOIN LATERAL (
       SELECT status, type, result, last_error FROM draftsman.job_states
        WHERE number = d.parent LIMIT 1) s
 CROSS JOIN LATERAL (
       SELECT ticket_title FROM draftsman.job_requests WHERE number = d.parent LIMIT 1) r
 WHERE d.job = %(job)s AND d.spawned AND d.parent = ANY (%(jobs)s::bigint[])

-- The completed job that a job which this job retries spawned under a key, if its request is the same.
-- name: completed_spawn
SELECT number FROM draftsman.job_requests
 WHERE number = draftsman.completed_spawn(%(job)s::bigint, %(key)s::text)
   AND request_digest = %(digest)s

-- The last content that came again with the key of a spawned job.
-- name: spawn_change
SELECT run, payload ->> 'now' AS content, payload ->> 'digest' AS digest
  FROM draftsman.events
 WHERE job = %(job)s AND kind = 'content_changed' AND payload ->> 'what' = 'spawn'
   AND payload ->> 'key' = %(key)s
 ORDER BY id DESC
 LIMIT 1

-- name: record_spawn
SELECT draftsman.record_spawn(%(job)s::bigint, %(token)s::bigint, %(spawned)s::bigint)

-- name: await_jobs
SELECT draftsman.await_jobs(%(job)s::bigint, %(token)s::bigint, %(spawned)s::bigint[])

-- Whether a job waits for a concurrency key, directly or not; and what waits for what, if the job waits for itself. A job
-- waits for its parents, for the jobs that it gathers, and for the holder of its key.
-- name: wait_cycle
WITH RECURSIVE waits (job, waits_for, key) AS (
    SELECT NULL::bigint, %(job)s::bigint, NULL::text
     UNION
    SELECT w.waits_for, d.number, d.key
      FROM waits w
     CROSS JOIN LATERAL (
           SELECT parent AS number, NULL::text AS key FROM draftsman.job_dependencies
            WHERE job = w.waits_for AND met IS NOT TRUE AND met IS NULL
            UNION ALL
           SELECT k.number, k.concurrency_key
             FROM (SELECT concurrency_key FROM draftsman.job_states
                    WHERE number = w.waits_for AND hold >= 'key'
                      AND concurrency_key IS NOT NULL LIMIT 1) s
            CROSS JOIN LATERAL (
                  SELECT number, concurrency_key FROM draftsman.job_states
                   WHERE concurrency_key = s.concurrency_key AND (hold >= 'key') IS NOT TRUE
                     AND finished_at IS NULL LIMIT 1) k
           OFFSET 0) d
)
SELECT coalesce(bool_or(key IS NOT NULL), false),
       CASE WHEN bool_or(waits_for = %(job)s AND job IS NOT NULL)
            THEN jsonb_agg(jsonb_build_array(job, waits_for, key)) FILTER (WHERE job IS NOT NULL)
            ELSE '[]' END
  FROM waits

-- Lets the transactions in which jobs begin to wait for a concurrency key see each other.
-- name: lock_waits
SELECT pg_advisory_xact_lock(hashtextextended('draftsman.waits', 0))

-- The job that a job spawned under a key, with the digest of its request; and the job with a concurrency key, of those
-- that spawned a job, directly or not, and of itself.
-- name: spawn_conflicts
WITH RECURSIVE spawners (number) AS (
    SELECT %(job)s::bigint
     UNION ALL
    SELECT d.job
      FROM spawners x
     CROSS JOIN LATERAL (
           SELECT job FROM draftsman.job_dependencies
            WHERE parent = x.number AND job < x.number AND spawned OFFSET 0) d
)
SELECT c.number, c.request_digest, c.type, c.payload, (
           SELECT s.number
             FROM spawners x
            CROSS JOIN LATERAL (
                  SELECT number, concurrency_key, finished_at FROM draftsman.job_states
                   WHERE number = x.number LIMIT 1) s
            WHERE s.finished_at IS NULL AND s.concurrency_key = %(concurrency_key)s
            ORDER BY s.number DESC LIMIT 1)
  FROM (SELECT) AS o
  LEFT JOIN LATERAL (
       SELECT d.parent AS number, r.request_digest, r.type, r.payload
         FROM draftsman.job_dependencies d
        CROSS JOIN LATERAL (
              SELECT request_digest, type, payload FROM draftsman.job_requests
               WHERE number = d.parent LIMIT 1) r
        WHERE d.job = %(job)s AND d.spawn_key = %(key)s AND d.spawned) c ON true

-- The jobs that the system canceled because of a job, directly or not, and the parents of each; a
-- job of a parallel group may have none.
-- name: skipped
WITH RECURSIVE skipped (number) AS (
    SELECT %(job)s::bigint
     UNION
    SELECT d.job
      FROM skipped x
     CROSS JOIN LATERAL (
           SELECT job, met FROM draftsman.job_dependencies WHERE parent = x.number
            UNION ALL
           SELECT job, false FROM draftsman.job_group_members
            WHERE skipped_by = x.number OFFSET 0) d
     CROSS JOIN LATERAL (
           SELECT status, cancel_requested_by FROM draftsman.job_states
            WHERE number = d.job LIMIT 1) s
     WHERE NOT d.met AND s.status = 'canceled' AND s.cancel_requested_by = 'system'
)
SELECT x.number, d.parent, coalesce(d.condition::text, 'any')
  FROM skipped x
  LEFT JOIN LATERAL (
       SELECT parent, condition, ordinal FROM draftsman.job_dependencies
        WHERE job = x.number AND NOT spawned OFFSET 0) d ON true
 WHERE x.number <> %(job)s
 ORDER BY x.number, d.ordinal

-- A job, first, and all that wait for it or that it spawned, the oldest first, with their parents in the tree. A retry is newer than
-- the jobs that it took over.
-- name: tree_jobs
WITH tree AS MATERIALIZED (
    SELECT n AS number FROM draftsman.descendants(%(job)s::bigint) AS n
)
SELECT t.number, s.status, s.type, r.ticket_title AS title, r.invoker_id,
       s.cancel_reason AS reason, ARRAY(
           SELECT p.number
             FROM (SELECT parent AS number, ordinal FROM draftsman.job_dependencies
                    WHERE job = t.number AND NOT spawned
                    UNION ALL
                   SELECT job, 0 FROM draftsman.job_dependencies
                    WHERE parent = t.number AND spawned) p
            WHERE p.number IN (SELECT number FROM tree)
            ORDER BY p.ordinal, p.number) AS parents
  FROM (SELECT number FROM tree WHERE
-- visible job: number
         ORDER BY number <> %(job)s, number LIMIT %(limit)s) t
 CROSS JOIN LATERAL (
       SELECT status, type, cancel_reason FROM draftsman.job_states
        WHERE number = t.number LIMIT 1) s
 CROSS JOIN LATERAL (
       SELECT ticket_title, invoker_id FROM draftsman.job_requests
        WHERE number = t.number LIMIT 1) r
 ORDER BY t.number <> %(job)s, t.number

-- The jobs because of which a job was skipped: parents, or a job of its group.
-- name: causes
SELECT parent FROM draftsman.job_dependencies
 WHERE job = %(job)s AND met IS NOT TRUE AND NOT met AND
-- visible job: parent
 UNION
SELECT skipped_by FROM draftsman.job_group_members
 WHERE job = %(job)s AND skipped_by IS NOT NULL AND
-- visible job: skipped_by
 ORDER BY 1

-- The job that spawned a job; it is older than that job.
-- name: spawner
SELECT job FROM draftsman.job_dependencies
 WHERE parent = %(job)s AND job < %(job)s AND spawned LIMIT 1

-- name: tree_size
SELECT count(*) FROM draftsman.descendants(%(job)s::bigint)

-- The number of jobs that wait or waited for a job, directly or not; without those that it spawned.
-- name: waiting_count
WITH RECURSIVE waiting (number) AS (
    SELECT %(job)s::bigint
     UNION
    SELECT d.job
      FROM waiting w
     CROSS JOIN LATERAL (
           SELECT job FROM draftsman.job_dependencies
            WHERE parent = w.number AND NOT spawned OFFSET 0) d
)
SELECT count(*) - 1 FROM waiting

-- The people who submitted the unfinished jobs of a tree.
-- name: tree_invokers
SELECT DISTINCT r.invoker_id
  FROM draftsman.descendants(%(job)s::bigint) AS t (number)
 CROSS JOIN LATERAL (
       SELECT finished_at FROM draftsman.job_states WHERE number = t.number LIMIT 1) s
 CROSS JOIN LATERAL (
       SELECT invoker_id FROM draftsman.job_requests WHERE number = t.number LIMIT 1) r
 WHERE s.finished_at IS NULL
 ORDER BY r.invoker_id

-- name: cancel_tree
SELECT number, requested
  FROM draftsman.cancel_tree(%(job)s::bigint, %(by)s::text, %(reason)s::text)

-- Job groups.

-- Locks a group, and creates it if it has a kind.
-- name: open_group
SELECT id, kind, on_failure
  FROM draftsman.open_group(%(name)s::text, %(kind)s::text, %(on_failure)s::text, %(actor)s::text)

-- name: add_members
SELECT job, parent, skipped
  FROM draftsman.add_to_group(%(group)s::bigint, %(jobs)s::bigint[], %(linked)s::bigint[],
                              %(is_operator)s::boolean)

-- name: inherit_group
SELECT draftsman.inherit_group(%(old)s::bigint, %(new)s::bigint)

-- name: cancel_group
SELECT number, requested
  FROM draftsman.cancel_group(%(group)s::bigint, %(actor)s::text, %(reason)s::text)

-- Groups with the numbers of their jobs, newest first, or the group of a name or of a job.
-- name: groups
SELECT g.id, g.name, g.kind, g.on_failure, g.created_by, g.created_at, g.canceled_at, g.canceled_by,
       g.cancel_reason, c.total, c.succeeded, c.running, c.waiting, c.failed, c.canceled,
       c.invokers
  FROM (SELECT * FROM draftsman.job_groups
         WHERE (%(name)s::text IS NULL OR name = %(name)s)
           AND (%(job)s::bigint IS NULL OR id = (
                SELECT group_id FROM draftsman.job_group_members WHERE job = %(job)s))
         ORDER BY id DESC LIMIT %(limit)s) g
 CROSS JOIN LATERAL (
       SELECT count(*) AS total,
              count(*) FILTER (WHERE status = 'completed') AS succeeded,
              count(*) FILTER (WHERE status IN ('claimed', 'running')) AS running,
              count(*) FILTER (WHERE finished_at IS NULL
                                 AND status NOT IN ('claimed', 'running')) AS waiting,
              count(*) FILTER (WHERE status IN ('failed', 'dead_letter', 'expired')) AS failed,
              count(*) FILTER (WHERE status = 'canceled') AS canceled,
              coalesce(array_agg(DISTINCT r.invoker_id) FILTER (WHERE r.invoker_id IS NOT NULL),
                       '{}') AS invokers
         FROM draftsman.current_members(g.id) m
        CROSS JOIN LATERAL (
              SELECT status, finished_at FROM draftsman.job_states
               WHERE number = m.job AND
-- visible job: number
               LIMIT 1) s
         LEFT JOIN LATERAL (
              SELECT invoker_id FROM draftsman.job_requests
               WHERE number = m.job AND s.finished_at IS NULL LIMIT 1) r ON true) c
 WHERE %(visible_repos)s::text[] IS NULL OR c.total > 0
 ORDER BY g.id DESC

-- The jobs of a group that count, in order.
-- name: members
SELECT m.ordinal, m.job AS number, s.status, s.type, r.ticket_title AS title,
       s.cancel_reason AS reason, s.last_error AS error, g.skipped_by, s.finished_at
  FROM draftsman.current_members(%(group)s::bigint) m
 CROSS JOIN LATERAL (
       SELECT status, type, cancel_reason, last_error, finished_at FROM draftsman.job_states
        WHERE number = m.job LIMIT 1) s
 CROSS JOIN LATERAL (
       SELECT ticket_title FROM draftsman.job_requests WHERE number = m.job LIMIT 1) r
 CROSS JOIN LATERAL (
       SELECT skipped_by FROM draftsman.job_group_members WHERE job = m.job LIMIT 1) g
 WHERE m.ordinal > %(after)s AND
-- visible job: m.job
 ORDER BY m.ordinal
 LIMIT %(limit)s

-- The numbers of the jobs of a group, retried jobs too, newest first.
-- name: numbers
SELECT m.job
  FROM draftsman.job_group_members m
 WHERE m.group_id = (SELECT id FROM draftsman.job_groups WHERE name = %(name)s)
   AND m.job < %(before)s AND
-- visible job: m.job
 ORDER BY m.job DESC
 LIMIT %(limit)s
