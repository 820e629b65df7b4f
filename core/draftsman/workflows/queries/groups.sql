-- Job groups.

-- Locks a group, and creates it if it has a kind.
-- name: open_group
SELECT id, kind, on_failure
  FROM draftsman.open_group(%(name)s::text, %(kind)s::text, %(on_failure)s::text, %(actor)s::text)

-- name: add
SELECT job, parent, skipped
  FROM draftsman.add_to_group(%(group)s::bigint, %(jobs)s::bigint[], %(linked)s::bigint[],
                              %(is_operator)s::boolean)

-- name: inherit
SELECT draftsman.inherit_group(%(old)s::bigint, %(new)s::bigint)

-- name: cancel
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
               WHERE number = m.job LIMIT 1) s
         LEFT JOIN LATERAL (
              SELECT invoker_id FROM draftsman.job_requests
               WHERE number = m.job AND s.finished_at IS NULL LIMIT 1) r ON true) c
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
 WHERE m.ordinal > %(after)s
 ORDER BY m.ordinal
 LIMIT %(limit)s

-- The numbers of the jobs of a group, retried jobs too, newest first.
-- name: numbers
SELECT m.job
  FROM draftsman.job_group_members m
 WHERE m.group_id = (SELECT id FROM draftsman.job_groups WHERE name = %(name)s)
   AND m.job < %(before)s
 ORDER BY m.job DESC
 LIMIT %(limit)s
