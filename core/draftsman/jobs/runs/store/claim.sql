-- Claims of jobs by workers, and their release.

-- The worker's loop in a single statement: settle finished runs and claim jobs for the free slots.
-- Queues are served in the order given, except for paused queues; of a reserved queue, only the
-- reserving job is claimed, before all others. Jobs of other types than the worker's are left: those
-- that many claims would pass are found by type (claimable_by_type).
-- Free slots also take jobs that waited for the places of the settled runs (hand_over), which are not
-- in the index of the claim. A finished job that another transaction has locked is left for the next
-- call.
--
-- The result of a run goes with its lease token, never with the number of its job: a worker may hold
-- an unsettled result of a run that lost its lease, and a newer run of the same job.
--
-- A session plans this once, maybe while the tables are empty, and a join could then read a whole
-- table for each call: locked states are updated where they are (ctid), runs are found by an array of
-- jobs, and requests are looked up by key (LIMIT 1).
--
-- A job that was claimed since the statement began is not locked (is_latest): its worker would leave
-- its run unsettled.
--
-- The wait of a job is by date_part, which costs a third of extract: that makes a numeric of it.
-- part: settle_and_search
clock AS MATERIALIZED (
    SELECT draftsman.now() AS now
), owned AS MATERIALIZED (
    SELECT j.location, d.token, d.result
      FROM unnest(%(jobs)s::bigint[], %(tokens)s::bigint[], %(results)s::jsonb[])
           AS d (job, token, result)
     CROSS JOIN LATERAL (
           SELECT ctid AS location
             FROM draftsman.job_states
            WHERE number = d.job AND lease_token = d.token AND status = 'running'
              FOR NO KEY UPDATE SKIP LOCKED) j
), settled AS (
    UPDATE draftsman.job_states j
       SET status = CASE WHEN j.cancel_requested_at IS NULL THEN 'completed' ELSE 'canceled'
                    END::draftsman.job_status,
           result = CASE WHEN j.cancel_requested_at IS NULL THEN m.result END,
           result_token = CASE WHEN j.cancel_requested_at IS NULL THEN m.token END,
           worker_id = NULL, lease_token = NULL, version = j.version + 1,
           finished_at = (SELECT now FROM clock), updated_at = (SELECT now FROM clock)
      FROM owned m
     WHERE j.ctid = m.location
    RETURNING j.number, j.run_count, j.cancel_requested_at IS NOT NULL AS canceled, j.limits,
              j.concurrency_key IS NOT NULL OR j.has_children AS followed,
              m.token AS lease_token
), closed AS (
    UPDATE draftsman.job_runs r
       SET status = CASE WHEN r.lease_token = ANY (
                                  ARRAY(SELECT lease_token FROM settled WHERE canceled))
                    THEN 'canceled' ELSE 'completed' END::draftsman.run_status,
           result = CASE WHEN r.lease_token = ANY (
                                  ARRAY(SELECT lease_token FROM settled WHERE canceled))
                    THEN (SELECT result FROM owned WHERE token = r.lease_token) END,
           finished_at = (SELECT now FROM clock)
     WHERE r.job = ANY (ARRAY(SELECT number FROM settled))
       AND r.lease_token = ANY (ARRAY(SELECT lease_token FROM settled)) AND r.status = 'running'
), reserved AS MATERIALIZED (
    SELECT queue FROM draftsman.active_reservations ORDER BY queue
), by_type AS MATERIALIZED (
    SELECT FROM draftsman.job_states
     WHERE by_type AND status IN ('queued', 'resumed') AND hold IS NULL
     ORDER BY queue, type, priority DESC, position, number
     LIMIT 1
), candidates AS MATERIALIZED (
    SELECT c.location, row_number() OVER () AS place, (SELECT now FROM clock) AS now
      FROM (SELECT q AS location
              FROM draftsman.claim_reserving_jobs(%(queues)s::text[], %(types)s::text[]) q
             WHERE EXISTS (SELECT FROM reserved)
             UNION ALL
            SELECT q.location
              FROM unnest(%(queues)s::text[]) WITH ORDINALITY AS w (queue, rank)
             CROSS JOIN LATERAL (
                   SELECT location
                     FROM draftsman.claimable
                    WHERE queue = w.queue AND NOT by_type AND type = ANY (%(types)s::text[])
                      AND draftsman.is_latest(location)

-- part: claim_found
                    ORDER BY priority DESC, position, number
                    LIMIT %(free)s + %(ahead)s
                      FOR NO KEY UPDATE SKIP LOCKED) q
             WHERE NOT EXISTS (SELECT FROM by_type)
               AND w.queue <> ALL (ARRAY(SELECT queue FROM draftsman.queue_pauses
                                          WHERE type IS NULL))
               AND w.queue <> ALL (ARRAY(SELECT queue FROM reserved))
             UNION ALL
            SELECT q.location
              FROM draftsman.claimable_by_type(
                   %(queues)s::text[], %(types)s::text[], %(free)s + %(ahead)s) f
             CROSS JOIN LATERAL (
                   SELECT location
                     FROM draftsman.claimable
                    WHERE location = f AND draftsman.is_latest(location)
                    LIMIT 1
                      FOR NO KEY UPDATE SKIP LOCKED) q
             WHERE EXISTS (SELECT FROM by_type)
             LIMIT %(free)s + %(ahead)s) c
), handed AS MATERIALIZED (
    SELECT h AS location
      FROM (SELECT ARRAY(SELECT unnest(limits) FROM settled WHERE limits IS NOT NULL) AS buckets) l
     CROSS JOIN LATERAL draftsman.hand_over(
           l.buckets, %(queues)s::text[], %(types)s::text[],
           %(free)s - cardinality(ARRAY(SELECT place FROM candidates))) h
     WHERE l.buckets <> '{}' AND NOT EXISTS (SELECT FROM settled WHERE followed)
), claimed AS (
    UPDATE draftsman.job_states j
       SET status = CASE WHEN p.start THEN 'running' ELSE 'claimed' END::draftsman.job_status,
           claimed_from = CASE WHEN NOT p.start THEN j.status END, hold = NULL, held_by = NULL,
           worker_id = %(worker)s, lease_token = nextval('draftsman.lease_tokens'),
           version = j.version + CASE WHEN p.start THEN 2 ELSE 1 END,
           run_count = j.run_count + CASE WHEN p.start THEN 1 ELSE 0 END,
           claimed_at = p.now, updated_at = p.now,
           started_at = CASE WHEN p.start THEN coalesce(j.started_at, p.now) ELSE j.started_at END
      FROM (SELECT location, now, place, place <= %(free)s AS start
              FROM candidates
             UNION ALL
            SELECT location, (SELECT now FROM clock), NULL, true FROM handed) p
     WHERE j.ctid = p.location
    RETURNING j.number, j.lease_token, j.run_count, j.status, j.type, j.queue, j.attempts,
              j.max_attempts, j.retry_count, j.max_retries, j.worker_id, j.claimed_at, j.queued_at,
              p.place
), requested AS MATERIALIZED (
    SELECT c.*, r.*
      FROM claimed c
     CROSS JOIN LATERAL (
           SELECT id, invoker_id, repo_host, repo_owner, repo_name, ticket_title, ticket_text, agent, retry_of,
                  mode, source, payload, overrides, requested_skills, tags, created_at
             FROM draftsman.job_requests
            WHERE number = c.number
            LIMIT 1) r
), opened AS (
    INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token, params_snapshot,
           started_at, heartbeat_at)
    SELECT number, run_count, worker_id, lease_token, overrides, claimed_at, claimed_at
      FROM requested
     WHERE status = 'running'
)
SELECT number, lease_token AS token, run_count AS run,
       CASE WHEN canceled THEN 'canceled' ELSE 'completed' END AS status, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL
  FROM settled
 UNION ALL
SELECT number, lease_token, CASE WHEN status = 'running' THEN run_count ELSE 0 END, status::text,
       type, queue, invoker_id, repo_owner, repo_name,
       ticket_title, ticket_text, agent, retry_of, attempts, max_attempts, retry_count, max_retries,
       id::text, mode::text, source::text, payload::text, overrides::text,
       array_to_json(requested_skills)::text, array_to_json(tags)::text,
       to_jsonb(created_at) #>> '{}', repo_host,
       date_part('epoch', claimed_at - queued_at), place
  FROM requested

-- name: exchange
WITH
-- include: settle_and_search
-- include: claim_found

-- The same, but the search begins after a job of a queue, in its place among the jobs of its priority:
-- it does not pass what was claimed before, which stays in the index until the next vacuum, and as
-- long as the oldest snapshot. A search from the start finds what this one leaves.
-- name: exchange_after
WITH reached AS MATERIALIZED (
    SELECT queue, priority, position FROM draftsman.job_states WHERE number = %(after)s
),
-- include: settle_and_search
                      AND queue = (SELECT queue FROM reached)
                      AND priority = (SELECT priority FROM reached)
                      AND (position, number) > ((SELECT position FROM reached), %(after)s)
-- include: claim_found

-- The jobs among which a claim for these queues and types chooses, in its order, but without those
-- `without`; a few more than it takes, as others may claim the first. Jobs that are found by type are
-- in an index of their own.
-- name: claimable_jobs
SELECT q.number
  FROM unnest(%(queues)s::text[]) WITH ORDINALITY AS w (queue, rank)
 CROSS JOIN LATERAL (
       (SELECT number, priority, position FROM draftsman.claimable
         WHERE queue = w.queue AND NOT by_type AND type = ANY (%(types)s::text[])
           AND number <> ALL (%(without)s::bigint[])
         ORDER BY priority DESC, position, number
         LIMIT %(limit)s)
        UNION ALL
       (SELECT f.number, f.priority, f.position
          FROM unnest(%(types)s::text[]) AS t (type)
         CROSS JOIN LATERAL (
               SELECT number, priority, position FROM draftsman.claimable
                WHERE by_type AND queue = w.queue AND type = t.type
                  AND number <> ALL (%(without)s::bigint[])
                ORDER BY priority DESC, position, number
                LIMIT %(limit)s) f)
        ORDER BY priority DESC, position, number
        LIMIT %(limit)s) q
 ORDER BY w.rank, q.priority DESC, q.position, q.number

-- Locks queued jobs for this transaction: the claims of other sessions skip them.
-- name: keep_from_claims
SELECT number FROM draftsman.job_states
 WHERE number = ANY (%(jobs)s::bigint[]) AND status IN ('queued', 'resumed') AND hold IS NULL
   FOR NO KEY UPDATE SKIP LOCKED

-- Jobs that were claimed ahead get a slot. Jobs canceled meanwhile are not returned.
-- name: start
WITH owned AS MATERIALIZED (
    SELECT j.number
      FROM unnest(%(jobs)s::bigint[], %(tokens)s::bigint[]) AS d (job, token)
      JOIN draftsman.job_states j ON j.number = d.job AND j.lease_token = d.token
       AND j.status = 'claimed'
     ORDER BY j.number
       FOR NO KEY UPDATE OF j
), started AS (
    UPDATE draftsman.job_states j
       SET status = 'running', claimed_from = NULL, version = j.version + 1,
           run_count = j.run_count + 1, updated_at = draftsman.now(),
           started_at = coalesce(j.started_at, draftsman.now())
      FROM owned m
     WHERE j.number = m.number AND j.status = 'claimed'
    RETURNING j.number, j.lease_token, j.run_count, j.status, j.type, j.queue, j.attempts,
              j.max_attempts, j.retry_count, j.max_retries, j.worker_id, j.queued_at
), requested AS MATERIALIZED (
    SELECT c.*, r.*
      FROM started c
     CROSS JOIN LATERAL (
           SELECT id, invoker_id, repo_host, repo_owner, repo_name, ticket_title, ticket_text, agent, retry_of,
                  mode, source, payload, overrides, requested_skills, tags, created_at
             FROM draftsman.job_requests
            WHERE number = c.number
            LIMIT 1) r
), opened AS (
    INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token, params_snapshot)
    SELECT number, run_count, worker_id, lease_token, overrides
      FROM requested
)
SELECT number, lease_token AS token, run_count AS run, status::text, type, queue, invoker_id, repo_owner, repo_name,
       ticket_title, ticket_text, agent, retry_of, attempts, max_attempts, retry_count, max_retries,
       id::text, mode::text, source::text, payload::text, overrides::text,
       array_to_json(requested_skills)::text, array_to_json(tags)::text,
       to_jsonb(created_at) #>> '{}', repo_host,
       date_part('epoch', draftsman.now() - queued_at)
  FROM requested

-- Jobs that were claimed but never started go back without spending an attempt.
-- name: release_claims
WITH context AS MATERIALIZED (
    SELECT set_config('draftsman.detail', %(detail)s, true)
), owned AS MATERIALIZED (
    SELECT j.number
      FROM unnest(%(jobs)s::bigint[], %(tokens)s::bigint[]) AS d (job, token)
      JOIN draftsman.job_states j ON j.number = d.job AND j.lease_token = d.token
       AND j.status = 'claimed'
     CROSS JOIN context
     ORDER BY j.number
       FOR NO KEY UPDATE OF j
), released AS (
    UPDATE draftsman.job_states j
       SET status = j.claimed_from, claimed_from = NULL, worker_id = NULL, lease_token = NULL,
           version = j.version + 1, updated_at = draftsman.now()
      FROM owned m
     WHERE j.number = m.number AND j.status = 'claimed'
    RETURNING j.number, j.queue
)
SELECT number, pg_notify('draftsman_jobs', queue)::text FROM released

-- Seconds that a job ran before this run. A lost run, which has an error, counts until its last
-- heartbeat.
-- name: previous_runtime
SELECT coalesce(sum(extract(epoch FROM
           CASE WHEN status = 'interrupted' AND error IS NOT NULL
                THEN least(finished_at, heartbeat_at) ELSE finished_at END - started_at)), 0)::float8
  FROM draftsman.job_runs
 WHERE job = %(job)s AND ordinal < %(run)s

-- name: open_runs
SELECT j.number, j.id, r.ordinal
  FROM draftsman.job_requests j
  LEFT JOIN draftsman.job_runs r ON r.job = j.number AND r.status = 'running'
 WHERE j.number = ANY (%(jobs)s::bigint[])

-- Claims of this worker that it does not know of, because a reply was lost: they were never
-- started, so they go back without spending an attempt.
-- name: release_lost_claims
WITH context AS MATERIALIZED (
    SELECT set_config('draftsman.detail', jsonb_build_object(
               'reason', draftsman.sentence('jobs.claim_lost')::text)::text, true)
), owned AS MATERIALIZED (
    SELECT j.number, j.lease_token, j.run_count, j.status, j.claimed_from,
           j.cancel_requested_at IS NOT NULL AS canceled
      FROM draftsman.job_states j
     CROSS JOIN context
     WHERE j.status IN ('claimed', 'running') AND j.worker_id = %(worker)s
       AND j.lease_token <> ALL (%(tokens)s::bigint[])
       AND (j.status <> 'claimed' OR (j.number, j.run_count) NOT IN (
            SELECT * FROM unnest(%(grace_jobs)s::bigint[], %(grace_runs)s::int[])))
     ORDER BY j.number
       FOR NO KEY UPDATE OF j SKIP LOCKED
), closed AS (
    UPDATE draftsman.job_runs r
       SET status = CASE WHEN m.canceled THEN 'canceled' ELSE 'interrupted'
                    END::draftsman.run_status,
           finished_at = draftsman.now()
      FROM owned m
     WHERE r.job = m.number AND r.ordinal = m.run_count AND r.status = 'running'
), released AS (
    UPDATE draftsman.job_states j
       SET status = CASE WHEN m.canceled THEN 'canceled'
                         WHEN m.status = 'claimed' THEN m.claimed_from::text
                         ELSE 'resumed' END::draftsman.job_status,
           finished_at = CASE WHEN m.canceled THEN draftsman.now() END,
           queued_at = draftsman.now(), claimed_from = NULL, worker_id = NULL, lease_token = NULL,
           version = j.version + 1, updated_at = draftsman.now()
      FROM owned m
     WHERE j.number = m.number AND j.lease_token = m.lease_token
    RETURNING j.number, j.queue
)
SELECT number, pg_notify('draftsman_jobs', queue)::text FROM released

-- The tokens of those leases that the worker still has: a lease that is gone never comes back.
-- name: held
SELECT j.lease_token
  FROM unnest(%(jobs)s::bigint[], %(tokens)s::bigint[]) AS d (job, token)
  JOIN draftsman.job_states j ON (j.number, j.lease_token) = (d.job, d.token)
 WHERE j.worker_id = %(worker)s

-- Whether the job still waits for the answer in whose grace period this worker keeps the agent of the
-- parked run, and the token of the claim that the answer made for this worker. A later run of the job
-- is none of the run's business.
-- name: claim_in_grace
SELECT status IN ('waiting_for_input', 'waiting_for_approval') AS waiting,
       CASE WHEN status = 'claimed' AND worker_id = %(worker)s THEN lease_token END AS token
  FROM draftsman.job_states
 WHERE number = %(job)s AND run_count = %(run)s

-- An answer under way is waited for: it has claimed the job for this worker, or will not. The row is
-- kept for the calls that the agent still makes, and removed by the leader.
-- name: end_grace
UPDATE draftsman.grace_periods SET ends_at = least(ends_at, draftsman.now())
 WHERE job = %(job)s AND worker_id = %(worker)s AND lease_token = %(token)s
