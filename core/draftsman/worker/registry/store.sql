-- Workers, and leases such as the leader's.

-- name: register
INSERT INTO draftsman.workers (id, lock_id, host, host_id, pid, pid_started, version, types,
       descriptions, queues, targets, slots)
VALUES (%(id)s, coalesce(%(lock_id)s::int, nextval('draftsman.workers_lock_id_seq')), %(host)s, %(host_id)s, %(pid)s, %(pid_started)s, %(version)s, %(types)s,
        %(descriptions)s, %(queues)s, %(targets)s, %(slots)s)
    ON CONFLICT (id) DO UPDATE SET heartbeat_at = draftsman.now()
RETURNING lock_id

-- name: lock_number
SELECT nextval('draftsman.workers_lock_id_seq')

-- Held for the life of the worker's session; `is_connected` reads it. False as long as the server keeps
-- an earlier session of the worker, whose connection is lost.
-- name: hold
SELECT pg_try_advisory_lock(1146242644, %(lock_id)s)

-- A worker that still holds jobs stays registered: its missing process shows others that it died.
-- name: remove
DELETE FROM draftsman.workers w
 WHERE w.id = %(id)s
   AND NOT EXISTS (SELECT FROM draftsman.job_states j
                    WHERE j.status IN ('claimed', 'running') AND j.worker_id = w.id)

-- name: list
SELECT w.id, w.host, w.host_id, w.pid, w.pid_started, w.version, w.types, w.queues, w.slots,
       w.draining, w.started_at, w.heartbeat_at,
       coalesce(b.busy, 0) AS busy,
       extract(epoch FROM draftsman.now() - w.heartbeat_at)::float8 AS heartbeat_age,
       draftsman.is_connected(w.lock_id) AS connected,
       w.id NOT IN (SELECT id FROM draftsman.live_workers(%(lease)s)) AS lost,
       EXISTS (SELECT FROM draftsman.leases e
                WHERE e.name = 'leader' AND e.owner = w.id AND e.expires_at > draftsman.now()
              ) AS leader
  FROM draftsman.workers w
  LEFT JOIN (SELECT worker_id, count(*) AS busy FROM draftsman.job_states
              WHERE status IN ('claimed', 'running')
              GROUP BY worker_id) b ON b.worker_id = w.id
 ORDER BY w.started_at

-- name: processes
SELECT id, host_id, pid, pid_started FROM draftsman.workers

-- A lease that is free or expired, or whose holder is dead or lost the session lock that it was
-- acquired under: a single statement, a single winner. A holder whose session lock is held is alive.
-- name: acquire
INSERT INTO draftsman.leases AS l (name, owner, term, expires_at, lock_id)
VALUES (%(name)s, %(owner)s, 1, draftsman.now() + make_interval(secs => %(ttl)s), %(lock_id)s)
    ON CONFLICT (name) DO UPDATE
       SET owner = excluded.owner, term = l.term + 1, expires_at = excluded.expires_at,
           lock_id = excluded.lock_id
     WHERE l.expires_at <= draftsman.now()
        OR (l.owner = ANY (%(dead)s::uuid[])
            AND NOT EXISTS (SELECT FROM draftsman.workers w
                             WHERE w.id = l.owner AND draftsman.is_connected(w.lock_id)))
        OR (l.lock_id IS NOT NULL AND NOT draftsman.is_connected(l.lock_id))
RETURNING term

-- name: renew
UPDATE draftsman.leases
   SET expires_at = draftsman.now() + make_interval(secs => %(ttl)s),
       lock_id = coalesce(%(lock_id)s, lock_id)
 WHERE name = %(name)s AND owner = %(owner)s AND term = %(term)s AND expires_at > draftsman.now()

-- name: resign
UPDATE draftsman.leases SET expires_at = draftsman.now()
 WHERE name = %(name)s AND owner = %(owner)s AND term = %(term)s AND expires_at > draftsman.now()

-- The queues and types of the workers that claim jobs now.
-- name: serving
SELECT queues, types FROM draftsman.serving_workers(%(lease)s)
