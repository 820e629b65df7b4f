-- Dead workers and their jobs, for the leader: `core/draftsman/jobs/runs/sweep.py` has the rules of such statements.

-- part: lost
WITH dead AS MATERIALIZED (
    SELECT array_agg(d.id) AS ids FROM unnest(%(dead)s::uuid[]) AS d (id)
     WHERE NOT EXISTS (SELECT FROM draftsman.workers w
                        WHERE w.id = d.id AND draftsman.is_connected(w.lock_id))
), lost AS MATERIALIZED (
    SELECT j.number FROM draftsman.heartbeats b
      JOIN draftsman.job_states j ON j.number = b.job
     WHERE (b.worker_id = ANY ((SELECT ids FROM dead)::uuid[])
            OR b.heartbeat_at < draftsman.now() - make_interval(secs => %(lease)s))
       AND (%(only)s::bigint[] IS NULL OR b.job = ANY (%(only)s::bigint[]))
       AND b.job <> ALL (%(without)s::bigint[])
       AND (%(term)s::bigint IS NULL OR EXISTS (
           SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
              AND term = %(term)s AND expires_at > draftsman.now()))
     ORDER BY b.updated_at
     LIMIT %(limit)s
       FOR NO KEY UPDATE OF j SKIP LOCKED
)

-- name: rescue_candidates
-- include: lost
SELECT number FROM lost

-- Runs of dead workers, and runs without a heartbeat for too long. Before the lease has ended, a
-- worker whose session lock is held is alive, whatever its host says. A claimed job goes back and
-- spends nothing; a running job follows on_lost. It spends an attempt if it was the only run of its
-- worker, or if it is the one that ended it (`verdict`). The new jobs of a chain have
-- their own counters, so the chain is limited: by the number of consecutive new jobs since a
-- person's last request.
-- name: rescue
-- include: lost
, context AS MATERIALIZED (
    SELECT set_config('draftsman.actor', 'system', true),
           set_config('draftsman.detail', '{"lost": true}', true)
), locked AS MATERIALIZED (
    SELECT j.number, j.lease_token, j.run_count, j.status, j.claimed_from, j.on_lost,
           j.attempts, j.max_attempts, j.cancel_requested_at IS NOT NULL AS canceled, j.worker_id
      FROM draftsman.job_states j
      JOIN lost g ON g.number = j.number
     CROSS JOIN context
     WHERE j.status IN ('claimed', 'running')
     ORDER BY j.number
       FOR NO KEY UPDATE OF j SKIP LOCKED
), closed AS (
    UPDATE draftsman.job_runs r
       SET status = CASE WHEN l.canceled THEN 'canceled' ELSE 'interrupted'
                    END::draftsman.run_status,
           finished_at = draftsman.now(), error = draftsman.sentence('worker.lost')::text,
           error_class = 'TRANSIENT_INFRA'
      FROM locked l
     WHERE r.job = l.number AND r.ordinal = l.run_count AND r.status = 'running'
       AND (r.worker_id = ANY ((SELECT ids FROM dead)::uuid[])
            OR r.heartbeat_at < draftsman.now() - make_interval(secs => %(lease)s))
    RETURNING r.job, extract(epoch FROM draftsman.now() - r.started_at) AS seconds
), crews AS MATERIALIZED (
    SELECT w.worker_id, w.runs + s.earlier AS lost, w.tried + s.convicted AS tried
      FROM (SELECT j.worker_id, count(*) AS runs,
                   count(*) FILTER (WHERE p.status IN ('trial', 'convicted')) AS tried
              FROM draftsman.job_states j
              LEFT JOIN draftsman.suspects p ON p.job = j.number
             WHERE j.status = 'running' AND j.worker_id IN (SELECT worker_id FROM locked)
               AND j.worker_id = ANY ((SELECT ids FROM dead)::uuid[])
             GROUP BY j.worker_id) w
     CROSS JOIN LATERAL (
           SELECT count(*) AS earlier, count(*) FILTER (WHERE p.status = 'convicted') AS convicted
             FROM draftsman.suspects p
             JOIN draftsman.job_states j ON j.number = p.job
            WHERE p.worker_id = w.worker_id AND j.worker_id IS DISTINCT FROM w.worker_id) s
), verdicts AS MATERIALIZED (
    SELECT l.number, p.losses,
           draftsman.verdict(p.status, coalesce(c.lost, 1), coalesce(c.tried, 0)) AS verdict
      FROM locked l
      LEFT JOIN crews c ON c.worker_id = l.worker_id
      LEFT JOIN draftsman.suspects p ON p.job = l.number
     WHERE l.status = 'running'
), chains AS MATERIALIZED (
    SELECT l.number, c.replacements,
           CASE WHEN c.replacements + 1 >= l.max_attempts
                THEN draftsman.sentence('worker.chain_lost', jsonb_build_object(
                         'lost', c.replacements + 1, 'most', l.max_attempts))
                WHEN r.chain_length >= %(longest)s
                THEN draftsman.sentence('worker.lost_after_retries', jsonb_build_object(
                         'retries', r.chain_length)) END AS over
      FROM locked l
      JOIN draftsman.job_requests r ON r.number = l.number
     CROSS JOIN LATERAL (
           WITH RECURSIVE origins AS (
               SELECT retry_of, source FROM draftsman.job_requests WHERE number = l.number
                UNION ALL
               SELECT o.retry_of, o.source
                 FROM origins b JOIN draftsman.job_requests o ON o.number = b.retry_of
                WHERE b.source = 'internal'
           )
           SELECT count(*) AS replacements FROM origins WHERE source = 'internal' AND retry_of IS NOT NULL) c
     WHERE l.status = 'running' AND l.on_lost = 'new_job'
), updated AS (
    UPDATE draftsman.job_states j
       SET status = t.status,
           attempts = l.attempts + CASE WHEN l.status = 'running' AND NOT l.canceled
                                         AND l.attempts < l.max_attempts
                                         AND v.verdict IN ('charged', 'convicted') THEN 1 ELSE 0 END,
           last_error = CASE WHEN l.status = 'running'
                             THEN coalesce(h.over, draftsman.sentence(CASE
                                  WHEN v.verdict = 'waiting' AND t.status = 'retrying'
                                  THEN 'worker.lost_with_others' ELSE 'worker.lost' END))::text
                        ELSE j.last_error END,
           error_class = CASE WHEN l.status = 'running' THEN 'TRANSIENT_INFRA'
                         ELSE j.error_class END,
           next_retry_at = CASE WHEN t.status = 'retrying' THEN draftsman.now()
                           + CASE WHEN v.verdict = 'waiting' THEN interval '1 day'
                                  ELSE make_interval(secs => exp(least(10, l.attempts + 1))) END END,
           queued_at = CASE WHEN t.status IN ('queued', 'resumed') THEN draftsman.now()
                       ELSE j.queued_at END,
           finished_at = CASE WHEN t.status IN ('failed', 'dead_letter', 'canceled')
                         THEN draftsman.now() END,
           claimed_from = NULL, worker_id = NULL, lease_token = NULL, version = j.version + 1,
           updated_at = draftsman.now()
      FROM locked l
      LEFT JOIN closed c ON c.job = l.number
      LEFT JOIN chains h ON h.number = l.number
      LEFT JOIN verdicts v ON v.number = l.number
     CROSS JOIN LATERAL (SELECT (CASE
           WHEN l.canceled THEN 'canceled'
           WHEN l.status = 'claimed' THEN l.claimed_from::text
           WHEN h.over IS NOT NULL OR (l.attempts + 1 >= l.max_attempts
                                       AND v.verdict IN ('charged', 'convicted')) THEN 'dead_letter'
           WHEN l.on_lost IN ('retry', 'resume') AND v.verdict = 'waiting' THEN 'retrying'
           WHEN l.on_lost = 'retry' THEN 'retrying'
           WHEN l.on_lost = 'resume' THEN 'resumed'
           ELSE 'failed' END)::draftsman.job_status AS status) t
     WHERE j.number = l.number AND j.lease_token = l.lease_token
       AND (l.status = 'claimed' OR c.job IS NOT NULL)
    RETURNING j.number, j.status, j.queue, j.on_lost
), suspected AS (
    INSERT INTO draftsman.suspects (job, crash, worker_id, run, seconds, losses, status)
    SELECT l.number, l.worker_id, l.worker_id, l.run_count,
           greatest(1, least(c.seconds, 300 * 2 ^ least(20, coalesce(v.losses, 0)))),
           coalesce(v.losses, 0) + 1, v.verdict::draftsman.suspect_status
      FROM locked l
      JOIN closed c ON c.job = l.number
      JOIN verdicts v ON v.number = l.number AND v.verdict IN ('noted', 'waiting', 'convicted')
      JOIN updated u ON u.number = l.number AND u.status IN ('retrying', 'resumed')
     ORDER BY l.number
        ON CONFLICT (job) DO UPDATE
       SET crash = CASE WHEN excluded.status = 'convicted' THEN suspects.crash
                   ELSE excluded.crash END,
           worker_id = excluded.worker_id, run = excluded.run, seconds = excluded.seconds,
           losses = excluded.losses, status = excluded.status
)
SELECT number, status, on_lost,
       CASE WHEN status IN ('queued', 'resumed')
            THEN pg_notify('draftsman_jobs', queue)::text END AS notified
  FROM updated

-- The runs of rescued jobs that this transaction has closed, for their traces.
-- name: lost_runs
SELECT r.job, r.ordinal AS run, q.id, q.overrides ->> 'traceparent' AS traceparent, q.type, s.queue,
       r.started_at, r.finished_at
  FROM draftsman.job_states s
  JOIN draftsman.job_requests q ON q.number = s.number
  JOIN draftsman.job_runs r ON r.job = s.number AND r.ordinal = s.run_count
 WHERE s.number = ANY (%(jobs)s::bigint[]) AND r.finished_at = draftsman.now()
 ORDER BY r.job

-- The trials of jobs that were lost together.
-- name: suspects
SELECT draftsman.try_suspects(%(only)s::bigint[], %(without)s::bigint[])
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: suspects_candidates
SELECT job FROM draftsman.suspects WHERE job <> ALL (%(without)s::bigint[]) ORDER BY job

-- A lost job that could not be replaced by a new job; its rescue holds its lock.
-- name: not_followed
INSERT INTO draftsman.job_events (job, kind, actor, payload)
VALUES (%(job)s, 'retry_not_created', 'system', jsonb_build_object('reason', %(reason)s::text))

-- Workers whose session lock is free, and since when. A host that sees their process checks it too.
-- name: watch_locks
UPDATE draftsman.workers w
   SET unlocked_at = CASE WHEN s.connected THEN NULL
                     ELSE coalesce(w.unlocked_at, draftsman.now()) END
  FROM (SELECT x.id, draftsman.is_connected(x.lock_id) AS connected
          FROM draftsman.workers x
         WHERE draftsman.is_connected(x.lock_id) <> (x.unlocked_at IS NULL)
           FOR NO KEY UPDATE SKIP LOCKED) s
 WHERE s.id = w.id

-- name: unlocked
SELECT id FROM draftsman.workers
 WHERE unlocked_at < draftsman.now() - make_interval(secs => %(seconds)s)
   AND heartbeat_at < draftsman.now() - make_interval(secs => %(seconds)s)

-- part: gone
SELECT w.lock_id FROM draftsman.workers w
 WHERE ((w.id = ANY (%(dead)s::uuid[]) AND NOT draftsman.is_connected(w.lock_id))
        OR w.heartbeat_at < draftsman.now() - make_interval(secs => %(after)s))
   AND NOT EXISTS (SELECT FROM draftsman.job_states j
                    WHERE j.status IN ('claimed', 'running') AND j.worker_id = w.id)
   AND (%(only)s::bigint[] IS NULL OR w.lock_id = ANY (%(only)s::bigint[]))
   AND w.lock_id <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
   FOR UPDATE OF w SKIP LOCKED

-- name: deregister_candidates
-- include: gone

-- name: deregister
DELETE FROM draftsman.workers WHERE lock_id = ANY (ARRAY(
-- include: gone
))

-- Seconds until the earliest of the times that sweeps declare; NULL when there is none.
-- name: next_due
SELECT extract(epoch FROM least({times}) - draftsman.now())::float8
