-- Queues: their jobs, their pauses, and jobs held back from the claim.

-- name: pause
SELECT draftsman.pause_queue(%(queue)s::text, %(type)s::text, %(reason)s::text, %(actor)s::text)

-- name: resume
SELECT draftsman.resume_queue(%(queue)s::text, %(type)s::text, %(actor)s::text)

-- name: pauses
SELECT queue, type, reason, paused_by, paused_at
  FROM draftsman.queue_pauses
 ORDER BY queue, type NULLS FIRST

-- Whether a queue, or a type in it, has an unfinished job or was paused or reserved before. Unfinished
-- jobs are materialized, as a prepared plan would read all jobs in the hope of an early match.
-- name: is_used
WITH unfinished AS MATERIALIZED (
    SELECT queue, type FROM draftsman.job_states
     WHERE status IN ('scheduled', 'queued', 'claimed', 'running', 'waiting_for_input',
                      'waiting_for_approval', 'resumed', 'retrying')
)
SELECT EXISTS (
           SELECT FROM unfinished
            WHERE queue = %(queue)s AND (%(type)s::text IS NULL OR type = %(type)s))
       OR EXISTS (
           SELECT FROM draftsman.queue_changes
            WHERE queue = %(queue)s AND (%(type)s::text IS NULL OR type = %(type)s))

-- The newest changes, of a queue or of all queues.
-- name: queue_changes
SELECT queue, type, action, actor, reason, created_at
  FROM draftsman.queue_changes
 WHERE %(queue)s::text IS NULL OR queue = %(queue)s
 ORDER BY id DESC
 LIMIT %(limit)s

-- name: move
SELECT outcome, status
  FROM draftsman.move_job(%(job)s::bigint, %(place)s::text, %(anchor)s::bigint, %(actor)s::text)

-- name: prioritize
SELECT outcome, status
  FROM draftsman.prioritize_job(%(job)s::bigint, %(priority)s::int, %(actor)s::text)

-- The jobs that can be claimed, by queue, in the order of the claim: it reads the same view. A
-- reserved queue has no other than the reserving job.
-- name: in_order
SELECT c.queue, c.number, c.priority, c.type, c.status, r.title, r.repo_name, r.created_at
  FROM draftsman.queues_in_use() AS w (queue)
  LEFT JOIN draftsman.active_reservations v ON v.queue = w.queue
 CROSS JOIN LATERAL (
       (SELECT queue, number, priority, position, type, status
          FROM draftsman.claimable
         WHERE queue = w.queue AND v.queue IS NULL AND NOT by_type
         ORDER BY priority DESC, position, number
         LIMIT %(limit)s)
        UNION ALL
       (SELECT b.*
          FROM draftsman.types_found_by_type(w.queue) AS t (type)
         CROSS JOIN LATERAL (
               SELECT queue, number, priority, position, type, status
                 FROM draftsman.claimable
                WHERE by_type AND queue = w.queue AND type = t.type AND v.queue IS NULL
                ORDER BY priority DESC, position, number
                LIMIT %(limit)s) b)
        UNION ALL
       (SELECT queue, number, priority, position, type, status
          FROM draftsman.claimable
         WHERE number = v.job AND queue = v.queue
         LIMIT 1)) c
 CROSS JOIN LATERAL (
       SELECT coalesce(ticket_title, type) AS title, repo_name, created_at FROM draftsman.job_requests
        WHERE number = c.number LIMIT 1) r
 WHERE w.queue = coalesce(%(queue)s, w.queue)
   AND w.queue <> ALL (ARRAY(SELECT queue FROM draftsman.queue_pauses WHERE type IS NULL)) AND
-- visible job: c.number
 ORDER BY c.queue, c.priority DESC, c.position, c.number
 LIMIT %(limit)s

-- The jobs that wait for a place, for their concurrency key, or for the end of a pause or reservation, by
-- queue, in queue order. The first jobs of each bucket and key are read by index, of at most 1,000 of
-- them.
-- name: held_in_order
WITH RECURSIVE buckets AS (
    (SELECT held_by AS name FROM draftsman.job_states
      WHERE held_by IS NOT NULL ORDER BY held_by LIMIT 1)
     UNION ALL
    SELECT (SELECT s.held_by FROM draftsman.job_states s
             WHERE s.held_by > b.name ORDER BY s.held_by LIMIT 1)
      FROM buckets b
     WHERE b.name IS NOT NULL
), keys AS (
    (SELECT concurrency_key AS name FROM draftsman.job_states
      WHERE hold = 'key' AND hold IS NOT NULL AND held_by IS NULL
      ORDER BY concurrency_key LIMIT 1)
     UNION ALL
    SELECT (SELECT s.concurrency_key FROM draftsman.job_states s
             WHERE s.hold = 'key' AND s.hold IS NOT NULL AND s.held_by IS NULL
               AND s.concurrency_key > k.name
             ORDER BY s.concurrency_key LIMIT 1)
      FROM keys k
     WHERE k.name IS NOT NULL
)
SELECT h.queue, h.number, h.priority, h.type, h.status, r.title, r.repo_name, r.created_at,
       h.hold, h.held_by
  FROM ((SELECT s.*
           FROM (SELECT name FROM buckets LIMIT 1000) b
          CROSS JOIN LATERAL (
                SELECT queue, number, priority, position, type, status, hold::text, held_by
                  FROM draftsman.job_states
                 WHERE held_by = b.name AND queue = coalesce(%(queue)s, queue)
                 ORDER BY priority DESC, position, number
                 LIMIT %(limit)s) s)
         UNION ALL
        (SELECT s.*
           FROM (SELECT name FROM keys LIMIT 1000) k
          CROSS JOIN LATERAL (
                SELECT queue, number, priority, position, type, status, hold::text, held_by
                  FROM draftsman.job_states
                 WHERE hold = 'key' AND hold IS NOT NULL AND held_by IS NULL
                   AND concurrency_key = k.name AND status IN ('queued', 'resumed')
                   AND queue = coalesce(%(queue)s, queue)
                 ORDER BY priority DESC, position, number
                 LIMIT %(limit)s) s)
         UNION ALL
        (SELECT s.*
           FROM (SELECT queue, 'paused' AS hold, NULL AS job FROM draftsman.queue_pauses
                  WHERE type IS NULL
                  UNION ALL
                 SELECT queue, 'reserved', job FROM draftsman.active_reservations v
                  WHERE NOT EXISTS (SELECT FROM draftsman.queue_pauses p
                                     WHERE p.queue = v.queue AND p.type IS NULL)) p
          CROSS JOIN LATERAL (
                (SELECT queue, number, priority, position, type, status, p.hold, NULL
                   FROM draftsman.job_states
                  WHERE queue = p.queue AND p.queue = coalesce(%(queue)s, p.queue)
                    AND status IN ('queued', 'resumed') AND hold IS NULL AND NOT by_type
                    AND number IS DISTINCT FROM p.job
                  ORDER BY priority DESC, position, number
                  LIMIT %(limit)s)
                 UNION ALL
                (SELECT b.*
                   FROM draftsman.types_found_by_type(p.queue) AS t (type)
                  CROSS JOIN LATERAL (
                        SELECT queue, number, priority, position, type, status, p.hold, NULL
                          FROM draftsman.job_states
                         WHERE by_type AND queue = p.queue AND type = t.type
                           AND p.queue = coalesce(%(queue)s, p.queue)
                           AND status IN ('queued', 'resumed') AND hold IS NULL
                           AND number IS DISTINCT FROM p.job
                         ORDER BY priority DESC, position, number
                         LIMIT %(limit)s) b)) s)
         UNION ALL
        (SELECT queue, number, priority, position, type, status, hold::text, held_by
           FROM draftsman.job_states
          WHERE hold = 'paused' AND hold IS NOT NULL AND held_by IS NULL
            AND queue = coalesce(%(queue)s, queue)
          ORDER BY concurrency_key, priority DESC, position, number
          LIMIT %(limit)s)
         ORDER BY queue, priority DESC, position, number
         LIMIT %(limit)s) h
 CROSS JOIN LATERAL (
       SELECT coalesce(ticket_title, type) AS title, repo_name, created_at FROM draftsman.job_requests
        WHERE number = h.number LIMIT 1) r
 WHERE
-- visible job: h.number
 ORDER BY h.queue, h.priority DESC, h.position, h.number

-- name: hold_jobs
SELECT draftsman.hold_paused_types(%(limit)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: release_jobs
SELECT draftsman.release_resumed_types(%(limit)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- Lets jobs be found by type that many claims would pass.
-- name: set_by_type
SELECT draftsman.set_by_type(%(lease)s, %(limit)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- Whether a leader still has its term; also without a term, of a sweep that is run by hand.
-- name: leads
SELECT %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- Stores the types of queues that no worker handles, and frees the places that their jobs have.
-- name: set_unhandled_types
SELECT draftsman.set_unhandled_types(%(lease)s, %(failing)s::text[], %(limit)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: unhandled_types
SELECT queue, type FROM draftsman.unhandled_types ORDER BY queue, type

-- The types of queues with jobs that wait for a worker that handles them.
-- name: waiting_for_types
SELECT queue, type, jobs, extract(epoch FROM draftsman.now() - since)::float8 AS oldest_wait
  FROM draftsman.waiting_for_types(%(lease)s, %(most)s)
 ORDER BY queue, type

-- Gives free concurrency keys to waiting jobs.
-- name: assign
SELECT draftsman.assign_keys(draftsman.lock_free_keys(%(limit)s))
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- The queues that have queued, held or running jobs, a pause or a live worker. Their names are read
-- from the indexes one by one, and at most so many jobs of each queue are counted, the next first, and
-- ten times as many held jobs of all queues.
-- name: queues
WITH running AS MATERIALIZED (
    SELECT queue, count(*) AS count
      FROM draftsman.job_states
     WHERE status IN ('claimed', 'running') AND
-- visible job: number
     GROUP BY queue
), held AS MATERIALIZED (
    SELECT queue, count(*) AS count, count(held_by) AS limited,
           count(*) FILTER (WHERE hold = 'key') AS keyed,
           count(*) FILTER (WHERE hold = 'parents') AS dependent,
           min(queued_at) AS since
      FROM ((SELECT queue, queued_at, hold, NULL AS held_by FROM draftsman.job_states
              WHERE hold IS NOT NULL AND held_by IS NULL AND status IN ('queued', 'resumed') AND
-- visible job: number
              ORDER BY hold, concurrency_key, priority DESC, position, number
              LIMIT 10 * %(most)s)
             UNION ALL
            (SELECT queue, queued_at, hold, nullif(held_by, 'pause') FROM draftsman.job_states
              WHERE held_by IS NOT NULL AND
-- visible job: number
              ORDER BY held_by, priority DESC, position, number
              LIMIT 10 * %(most)s)) h
     GROUP BY queue
), names AS (
    SELECT draftsman.queues_in_use() AS queue
     UNION
    SELECT queue FROM draftsman.queue_pauses
     UNION
    SELECT queue FROM draftsman.active_reservations
     UNION
    SELECT queue FROM running
     UNION
    SELECT queue FROM held
     UNION
    SELECT unnest(queues) FROM draftsman.serving_workers(%(lease)s)
)
SELECT n.queue AS name,
       q.free - w.waiting AS queued, coalesce(h.count, 0) + q.paused + w.waiting AS held,
       coalesce(h.limited, 0) AS limited, coalesce(h.keyed, 0) AS keyed,
       coalesce(h.dependent, 0) AS dependent, coalesce(r.count, 0) AS running,
       extract(epoch FROM draftsman.now() - least(q.since, h.since))::float8 AS oldest_wait,
       q.free + q.paused >= %(most)s
           OR coalesce(h.count, 0) > 0 AND (SELECT sum(count) FROM held) >= 10 * %(most)s AS capped
  FROM names n
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE NOT f.paused) AS free,
              count(*) FILTER (WHERE f.paused) AS paused, min(f.queued_at) AS since
         FROM (SELECT s.queued_at, EXISTS (
                      SELECT FROM draftsman.queue_pauses t
                       WHERE t.queue = s.queue AND t.type = s.type)
                   OR EXISTS (SELECT FROM draftsman.job_pauses o WHERE o.job = s.number) AS paused
                 FROM ((SELECT number, type, queue, queued_at FROM draftsman.job_states
                         WHERE queue = n.queue AND status IN ('queued', 'resumed')
                           AND hold IS NULL AND NOT by_type AND
-- visible job: number
                         ORDER BY priority DESC, position, number
                         LIMIT %(most)s)
                        UNION ALL
                       (SELECT b.*
                          FROM draftsman.types_found_by_type(n.queue) AS t (type)
                         CROSS JOIN LATERAL (
                               SELECT number, type, queue, queued_at FROM draftsman.job_states
                                WHERE by_type AND queue = n.queue AND type = t.type
                                  AND status IN ('queued', 'resumed') AND hold IS NULL AND
-- visible job: number
                                ORDER BY priority DESC, position, number
                                LIMIT %(most)s) b)) s
                LIMIT %(most)s) f) q
  LEFT JOIN held h ON h.queue = n.queue
  LEFT JOIN running r ON r.queue = n.queue
  LEFT JOIN draftsman.queue_pauses p ON p.queue = n.queue AND p.type IS NULL
  LEFT JOIN draftsman.active_reservations v ON v.queue = n.queue
 CROSS JOIN LATERAL (
       SELECT CASE WHEN p.queue IS NOT NULL THEN q.free
              WHEN v.queue IS NULL THEN 0
              ELSE greatest(0, q.free - (
                   SELECT count(*) FROM draftsman.claimable c WHERE c.number = v.job)) END
              AS waiting) w
 WHERE %(visible_repos)s::text[] IS NULL
    OR q.free + q.paused + coalesce(h.count, 0) + coalesce(r.count, 0) > 0
    OR n.queue IN (SELECT queue FROM draftsman.queue_pauses
                    UNION SELECT queue FROM draftsman.active_reservations
                    UNION SELECT unnest(queues) FROM draftsman.serving_workers(%(lease)s))
 ORDER BY n.queue

-- Transactions that may have claimed before a pause was committed: they have locked the tables that
-- a claim reads and writes. A transaction that locks them later sees the pause.
-- name: claiming
SELECT coalesce(array_agg(DISTINCT j.virtualtransaction), '{}')
  FROM pg_locks j
  JOIN pg_locks p ON p.virtualtransaction = j.virtualtransaction AND p.pid = j.pid
 WHERE j.locktype = 'relation' AND j.mode = 'RowExclusiveLock' AND j.granted
   AND j.relation = 'draftsman.job_states'::regclass
   AND j.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND p.locktype = 'relation' AND p.relation = 'draftsman.queue_pauses'::regclass
   AND p.database = j.database AND j.pid <> pg_backend_pid()

-- The jobs of a queue, or of a type in it, that a worker has.
-- name: running
SELECT number
  FROM draftsman.job_states
 WHERE status IN ('claimed', 'running') AND queue = %(queue)s
   AND (%(type)s::text IS NULL OR type = %(type)s)
 ORDER BY number

-- Reservations of queues for jobs.

-- name: reserve
SELECT outcome, queue, holder, by, until, reason
  FROM draftsman.reserve_queue(%(job)s::bigint, %(seconds)s::float8, %(actor)s::text)

-- name: release_reservation
SELECT draftsman.release_queue(%(queue)s::text, %(actor)s::text)

-- name: reservations
SELECT queue, job, actor, seconds, reserved_at, expires_at
  FROM draftsman.active_reservations
 ORDER BY queue

-- part: holds_due
SELECT min(expires_at) FROM draftsman.queue_reservations

-- name: expire_reservations
SELECT draftsman.delete_expired_reservations()
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- Limits of concurrency and rates: their configuration, their use, and the places of jobs.

-- Replaces the configured limits, in the term of the leader only.
-- name: configure_limits
SELECT draftsman.set_limits(%(limits)s::jsonb, 'system')
 WHERE EXISTS (SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
                  AND term = %(term)s AND expires_at > draftsman.now())

-- The newest changes of the limits.
-- name: limit_changes
SELECT id, limits, actor, created_at
  FROM draftsman.limit_changes
 ORDER BY id DESC
 LIMIT %(limit)s

-- name: check_limits
SELECT draftsman.check_limits(%(limit)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- part: limits_due
SELECT min(next_at) FROM draftsman.limit_buckets WHERE next_at IS NOT NULL

-- name: give_places
SELECT draftsman.give_places(%(limit)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- The use of each limit, or of a bucket: with the jobs that have places, of the first 1,000 that may be
-- claimed and all that a worker has, and at most so many waiting jobs.
-- name: limit_uses
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
           SELECT FROM draftsman.job_states s WHERE s.held_by = n.name AND
-- visible job: s.number
            LIMIT %(most)s) w) AS waiting,
       ARRAY(SELECT a.number FROM active a WHERE n.name = ANY (a.limits) AND
-- visible job: a.number
              ORDER BY a.number LIMIT 100) AS jobs,
       b.next_at
  FROM names n
  LEFT JOIN draftsman.limit_buckets b ON b.name = n.bucket
 CROSS JOIN LATERAL (SELECT coalesce(sum(change), 0) AS change FROM draftsman.postponed_work
                      WHERE bucket = n.name) p
 WHERE %(name)s::text IS NULL OR n.name = %(name)s
 ORDER BY n.name

-- Work that transactions left to the leader: `core/draftsman/jobs/runs/sweep.py` has the rules of such statements.

-- part: postponed_due
SELECT least((SELECT min(due_at) FROM draftsman.postponed_work),
             (SELECT min(due_at) FROM draftsman.pending_cancels))

-- Work that transactions postponed: at most so many buckets, keys and jobs.
-- name: do_postponed
SELECT draftsman.do_due_work(%(limit)s, %(only)s::bigint[], %(without)s::bigint[])
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: do_postponed_candidates
SELECT draftsman.lock_due_work(%(limit)s, NULL, %(without)s::bigint[])

-- Jobs that were canceled with a large tree or group.
-- name: do_cancels
SELECT draftsman.do_pending_cancels(%(limit)s, %(only)s::bigint[], %(without)s::bigint[])
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: do_cancels_candidates
SELECT job FROM draftsman.pending_cancels
 WHERE due_at <= draftsman.now() AND job <> ALL (%(without)s::bigint[])
 ORDER BY due_at, job
 LIMIT %(limit)s
