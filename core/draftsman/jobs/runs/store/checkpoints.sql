-- Data that a run saves. Each statement locks the job by the run's lease first: a predicate alone
-- would let an insert commit after the next claim. A job with a cancel request accepts no more
-- progress, so that its run learns of it with the next write; only the log continues.

-- name: checkpoint
WITH owned AS MATERIALIZED (
    SELECT number, run_count FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       AND cancel_requested_at IS NULL
       FOR NO KEY UPDATE
), inserted AS (
    INSERT INTO draftsman.job_checkpoints (job, run, data, bundle)
    SELECT number, run_count, %(data)s, %(bundle)s FROM owned
    RETURNING id, job
), pruned AS (
    DELETE FROM draftsman.job_checkpoints c
     USING owned m
     WHERE c.job = m.number
       AND c.id <= (SELECT id FROM draftsman.job_checkpoints WHERE job = m.number
                     ORDER BY id DESC OFFSET %(keep)s - 1 LIMIT 1)
)
SELECT id FROM inserted

-- A checkpoint whose bundle was replaced by an agent's file, as older versions allowed, is left
-- out.
-- name: last_checkpoint
SELECT c.data, c.bundle FROM draftsman.job_checkpoints c
 WHERE c.job = %(job)s AND (%(before_run)s::int IS NULL OR c.run < %(before_run)s)
   AND (c.bundle IS NULL
        OR (SELECT a.kind FROM draftsman.artifacts a WHERE a.id = c.bundle) = 'bundle')
 ORDER BY c.id DESC
 LIMIT 1

-- The step as it was before this call, or no row when this call created it.
-- name: begin_step
WITH owned AS MATERIALIZED (
    SELECT number, run_count FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       AND cancel_requested_at IS NULL
       FOR NO KEY UPDATE
), inserted AS (
    INSERT INTO draftsman.job_steps (job, key, owner, invocation_id, run)
    SELECT number, %(key)s, %(owner)s, %(invocation)s, run_count FROM owned
        ON CONFLICT (job, key) DO NOTHING
    RETURNING invocation_id
)
SELECT m.number IS NOT NULL, s.status::text, s.invocation_id, s.result
  FROM (SELECT 1) one
  LEFT JOIN owned m ON true
  LEFT JOIN draftsman.job_steps s
    ON s.job = m.number AND s.key = %(key)s AND s.owner = %(owner)s

-- name: finish_step
WITH owned AS MATERIALIZED (
    SELECT number, run_count FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       AND cancel_requested_at IS NULL
       FOR NO KEY UPDATE
), written AS (
    UPDATE draftsman.job_steps s
       SET status = 'done', result = %(result)s, run = m.run_count,
           finished_at = draftsman.now()
      FROM owned m
     WHERE s.job = m.number AND s.key = %(key)s AND s.owner = %(owner)s
       AND s.status = 'pending'
)
SELECT number FROM owned

-- name: steps
SELECT key, status::text, invocation_id, result, owner FROM draftsman.job_steps
 WHERE job = %(job)s
 ORDER BY created_at, key

-- The newest steps, without their results.
-- name: step_summaries
SELECT key, status::text, run, octet_length(result::text) AS size, created_at, finished_at
  FROM draftsman.job_steps
 WHERE job = %(job)s
 ORDER BY created_at DESC, key DESC
 LIMIT %(limit)s

-- The checkpoints that are kept, newest first, without their data.
-- name: checkpoint_summaries
SELECT c.run, octet_length(c.data::text) AS size,
       (SELECT a.size FROM draftsman.artifacts a WHERE a.id = c.bundle) AS work_size, c.created_at
  FROM draftsman.job_checkpoints c
 WHERE c.job = %(job)s
 ORDER BY c.id DESC
 LIMIT %(limit)s

-- A run that repeats an event, because no reply arrived, gets the event that was stored.
-- name: event
WITH owned AS MATERIALIZED (
    SELECT number, run_count, worker_id FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       AND cancel_requested_at IS NULL
       FOR NO KEY UPDATE
), sent AS MATERIALIZED (
    SELECT e.id FROM owned m
      JOIN draftsman.events e ON e.job = m.number AND e.run = m.run_count
     WHERE e.id > %(after)s::bigint AND e.kind = %(kind)s AND e.payload = %(payload)s
     LIMIT 1
), inserted AS (
    INSERT INTO draftsman.job_events (job, run, kind, actor, payload)
    SELECT number, run_count, %(kind)s, 'worker:' || worker_id, %(payload)s FROM owned
     WHERE NOT EXISTS (SELECT FROM sent)
    RETURNING id
)
SELECT id FROM sent UNION ALL SELECT id FROM inserted

-- name: artifact
WITH owned AS MATERIALIZED (
    SELECT number, run_count FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       AND cancel_requested_at IS NULL
       FOR NO KEY UPDATE
)
INSERT INTO draftsman.artifacts (job, run, name, kind, size, sha256, added, removed)
SELECT number, run_count, %(name)s, %(kind)s, %(size)s, %(sha256)s, %(added)s, %(removed)s FROM owned
    ON CONFLICT (job, run, name) DO UPDATE
       SET kind = excluded.kind, size = excluded.size, sha256 = excluded.sha256,
           added = excluded.added, removed = excluded.removed,
           created_at = draftsman.now()
RETURNING id

-- name: clear_chunks
DELETE FROM draftsman.artifact_chunks WHERE artifact = %(artifact)s

-- name: chunk
INSERT INTO draftsman.artifact_chunks (artifact, seq, data)
VALUES (%(artifact)s, %(seq)s, %(data)s)

-- A chunk, if the logs of the job have room for it.
-- name: log
WITH owned AS MATERIALIZED (
    SELECT number, run_count FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       FOR NO KEY UPDATE
), counted AS (
    INSERT INTO draftsman.job_quotas AS q (job, quota, count, bytes)
    SELECT number, 'log', 1, octet_length(%(text)s::text) FROM owned
     WHERE octet_length(%(text)s::text) <= %(limit)s::bigint
        ON CONFLICT (job, quota) DO UPDATE
           SET count = q.count + 1, bytes = q.bytes + excluded.bytes
         WHERE q.bytes + excluded.bytes <= %(limit)s::bigint
    RETURNING job
), written AS (
    INSERT INTO draftsman.run_log_chunks (job, run, seq, text, created_at)
    SELECT m.number, m.run_count, %(seq)s, %(text)s,
           draftsman.now() - make_interval(secs => %(age)s)
      FROM owned m JOIN counted c ON c.job = m.number
        ON CONFLICT DO NOTHING
)
SELECT EXISTS (SELECT FROM owned), EXISTS (SELECT FROM counted)

-- A line about the end of a run that has parked: its token proves that the run was the caller's. The
-- job is locked, so that the deletion of old logs is over.
-- name: log_parked
WITH locked AS MATERIALIZED (
    SELECT number FROM draftsman.job_states WHERE number = %(job)s FOR NO KEY UPDATE
), parked AS MATERIALIZED (
    SELECT r.job, r.ordinal FROM locked l
      JOIN draftsman.job_runs r ON r.job = l.number
     WHERE r.lease_token = %(token)s AND r.status = 'parked'
)
INSERT INTO draftsman.run_log_chunks (job, run, seq, text)
SELECT p.job, p.ordinal, coalesce((SELECT max(c.seq) + 1 FROM draftsman.run_log_chunks c
                                    WHERE c.job = p.job AND c.run = p.ordinal), 0), %(text)s
  FROM parked p

-- A use of a quota; a use over the limit is not counted. The job's lock serializes writes.
-- name: consume_quota
WITH owned AS MATERIALIZED (
    SELECT number FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       FOR NO KEY UPDATE
), counted AS (
    INSERT INTO draftsman.job_quotas AS q (job, quota, count, bytes)
    SELECT number, %(quota)s, 1, %(bytes)s FROM owned
     WHERE %(most)s::bigint >= 1 AND %(bytes)s::bigint <= %(most_bytes)s::bigint
        ON CONFLICT (job, quota) DO UPDATE
           SET count = q.count + 1, bytes = q.bytes + excluded.bytes
         WHERE q.count < %(most)s::bigint
           AND q.bytes + excluded.bytes <= %(most_bytes)s::bigint
    RETURNING job
)
SELECT EXISTS (SELECT FROM owned), EXISTS (SELECT FROM counted)

-- name: artifacts
SELECT id, job, run, name, kind, size, sha256, created_at FROM draftsman.artifacts
 WHERE job = %(job)s AND kind <> 'bundle'
 ORDER BY run, id

-- The newest artifact with this name.
-- name: find_artifact
SELECT id, job, run, name, kind, size, sha256, created_at FROM draftsman.artifacts
 WHERE job = %(job)s AND name = %(name)s
 ORDER BY run DESC
 LIMIT 1

-- The patch of a run, or the newest patch of the job.
-- name: find_patch
SELECT id, job, run, name, kind, size, sha256, created_at FROM draftsman.artifacts
 WHERE job = %(job)s AND kind = 'patch' AND (%(run)s::int IS NULL OR run = %(run)s)
 ORDER BY run DESC, id DESC
 LIMIT 1

-- The first chunks, or all.
-- name: chunks
SELECT data FROM draftsman.artifact_chunks
 WHERE artifact = %(artifact)s AND seq < coalesce(%(most)s::int, 2147483647)
 ORDER BY seq

-- Chunks after (run, seq); a run of 0 starts at the beginning.
-- name: logs
SELECT run, seq, text, created_at FROM draftsman.run_log_chunks
 WHERE job = %(job)s AND (run, seq) > (%(run)s, %(seq)s)
 ORDER BY run, seq
 LIMIT %(limit)s

-- The end of a job's log: the newest chunks between two (run, seq).
-- name: log_end
SELECT run, seq, text, created_at FROM draftsman.run_log_chunks
 WHERE job = %(job)s AND (run, seq) > (%(run)s, %(seq)s)
   AND (run, seq) < (%(before_run)s, %(before_seq)s)
 ORDER BY run DESC, seq DESC
 LIMIT %(limit)s

-- name: now
SELECT draftsman.now()
