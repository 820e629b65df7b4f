-- Threads that show runs while they work.

-- The threads of running jobs in a channel that are not shown yet. A thread that shows only the
-- session of another job is taken over.
-- name: add
INSERT INTO draftsman.live_threads (thread_key, job, run)
SELECT DISTINCT ON (t.thread_key) t.thread_key, t.job, s.run_count
  FROM (SELECT number, run_count FROM draftsman.job_states
         WHERE status = 'running'
         ORDER BY number DESC
         LIMIT %(limit)s) s
  JOIN draftsman.job_targets t ON t.job = s.number
 WHERE t.channel = %(channel)s AND 'status' = ANY (t.kinds)
   AND NOT EXISTS (SELECT FROM draftsman.live_threads l
                    WHERE l.thread_key = t.thread_key
                      AND (l.job = t.job OR l.job_version IS NULL OR l.token IS NOT NULL))
 ORDER BY t.thread_key, t.job DESC
    ON CONFLICT (thread_key) DO UPDATE
   SET job = EXCLUDED.job, run = EXCLUDED.run, stream = 'none', started_at = NULL,
       quiet = false, job_version = NULL, added_at = EXCLUDED.added_at, due_at = EXCLUDED.due_at
 WHERE live_threads.job_version IS NOT NULL AND live_threads.token IS NULL

-- A thread is due at its time; one that shows only the session of its job, when the job changes.
-- A claim is void when another process claims the thread, which is due again after the lease. Edits
-- of messages do not remove the status of a thread, new messages do.
-- name: claim
WITH due AS MATERIALIZED (
    SELECT l.thread_key
      FROM draftsman.live_threads l
      JOIN draftsman.job_states s ON s.number = l.job
     WHERE l.due_at <= draftsman.now() OR (s.version > l.job_version AND l.token IS NULL)
     ORDER BY l.due_at
     LIMIT %(limit)s
       FOR NO KEY UPDATE OF l SKIP LOCKED
), claimed AS (
    UPDATE draftsman.live_threads l
       SET due_at = draftsman.now() + make_interval(secs => %(lease)s), token = %(token)s
      FROM due d
     WHERE l.thread_key = d.thread_key
    RETURNING l.*
)
SELECT c.thread_key, c.job, c.run, c.stream, c.stream_ref, c.started_at, c.shown, c.status_text,
       c.status_at, c.quiet, c.session, c.added_at, c.token, t.target, t.thread,
       (SELECT r.external_ref FROM draftsman.deliveries r
         WHERE r.job = c.job AND r.thread_key = c.thread_key
           AND r.kind = 'status' AND r.status = 'sent'
         ORDER BY r.seq DESC
         LIMIT 1) AS root,
       coalesce(j.ticket_title, j.type) AS title, j.invoker_id, j.status AS job_status,
       j.version AS job_version, j.run_count AS current_run,
       (SELECT max(d.sent_at) FROM draftsman.deliveries d
         WHERE d.job = c.job AND d.thread_key = c.thread_key AND d.status = 'sent'
           AND d.kind NOT IN ('status', 'question_closed')) AS messages_at,
       draftsman.now() AS now
  FROM claimed c
  JOIN draftsman.job_targets t ON t.job = c.job AND t.thread_key = c.thread_key
  JOIN draftsman.jobs j ON j.number = c.job

-- The newest plan of each run, and the newest other row of its last rows, but thoughts.
-- name: progress
SELECT r.job, a.*
  FROM unnest(%(jobs)s::bigint[], %(runs)s::int[]) AS r (job, run)
 CROSS JOIN LATERAL (
       (SELECT run, seq, kind, state, key, text, detail, continues, created_at
          FROM draftsman.run_activity
         WHERE job = r.job AND run = r.run AND kind = 'plan'
         ORDER BY seq DESC
         LIMIT 1)
        UNION ALL
       (SELECT run, seq, kind, state, key, left(text, 500), detail, continues, created_at
          FROM (SELECT * FROM draftsman.run_activity
                 WHERE job = r.job AND run = r.run
                 ORDER BY seq DESC
                 LIMIT 20) n
         WHERE kind IN ('message', 'tool', 'file')
         ORDER BY seq DESC
         LIMIT 1)) a

-- The newest steps of the handlers of jobs, oldest first.
-- name: steps
SELECT n.*
  FROM unnest(%(jobs)s::bigint[]) AS j (job)
 CROSS JOIN LATERAL (
       SELECT job, key, status, created_at FROM draftsman.job_steps
        WHERE job = j.job AND owner = 'handler'
        ORDER BY created_at DESC, key DESC
        LIMIT %(limit)s) n
 ORDER BY n.job, n.created_at, n.key

-- Written before the call that starts the stream: a run has a single stream, also after a crash.
-- name: begin_stream
UPDATE draftsman.live_threads SET stream = 'starting', started_at = draftsman.now()
 WHERE thread_key = %(key)s AND token = %(token)s AND stream = 'none'
RETURNING started_at

-- Records the state of a thread; `release` ends the claim. With a `version`, that of its job, the
-- thread shows only the session.
-- name: record
UPDATE draftsman.live_threads
   SET run = %(run)s, stream = %(stream)s, stream_ref = %(ref)s, started_at = %(started_at)s,
       shown = %(shown)s, status_text = %(text)s, status_at = %(status_at)s, quiet = %(quiet)s,
       session = %(session)s, job_version = %(version)s, added_at = %(added_at)s, token = CASE WHEN NOT %(release)s THEN token END,
       due_at = draftsman.now() + make_interval(secs => %(due)s)
 WHERE thread_key = %(key)s AND token = %(token)s
RETURNING thread_key

-- name: remove
DELETE FROM draftsman.live_threads WHERE thread_key = %(key)s AND token = %(token)s

-- name: known_streams
SELECT stream_ref FROM draftsman.live_threads WHERE stream_ref = ANY (%(refs)s::text[])
