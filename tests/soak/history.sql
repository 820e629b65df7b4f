-- 200,000 jobs that ended and 20,000 that wait for people, with their runs, events, questions and
-- answers; and a few hundred in each live state. Everything goes through the triggers.

-- name: submit
INSERT INTO draftsman.jobs (id, type, idempotency_key, request_digest, status, source, invoker_id,
       payload, tags, agent, repo_owner, repo_name, max_attempts, run_at, queued_at)
SELECT gen_random_uuid(), 'seed', 'seed:' || %(state)s || g, md5(g::text) || md5(g::text),
       CASE WHEN %(state)s = 'scheduled' THEN 'scheduled' ELSE 'queued' END::draftsman.job_status,
       'cli', 'seed', jsonb_build_object('i', g), ARRAY['tag' || g %% 7], 'tidy', 'acme',
       'repo' || g %% 50, 3,
       CASE WHEN %(state)s = 'scheduled' THEN draftsman.now() + (g - 20) * interval '1 minute' END,
       CASE WHEN %(state)s <> 'scheduled' THEN draftsman.now() END
  FROM generate_series(%(first)s::int, %(last)s::int) g

-- What was just submitted, which is all that is queued, starts to run.
-- name: start
WITH taken AS (
    UPDATE draftsman.jobs
       SET status = 'running', version = version + 2, run_count = 1, worker_id = %(worker)s,
           lease_token = nextval('draftsman.lease_tokens'), claimed_at = draftsman.now(),
           started_at = draftsman.now(), updated_at = draftsman.now()
     WHERE status = 'queued'
    RETURNING number, run_count, worker_id, lease_token
)
INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token)
SELECT number, run_count, worker_id, lease_token FROM taken

-- One in fifty fails, one in two hundred was canceled.
-- name: finish
WITH ended AS (
    UPDATE draftsman.jobs
       SET status = CASE WHEN number %% 50 = 0 THEN 'failed' WHEN number %% 200 = 1 THEN 'canceled'
                    ELSE 'completed' END::draftsman.job_status,
           last_error = CASE WHEN number %% 50 = 0 THEN 'seeded' END,
           error_class = CASE WHEN number %% 50 = 0 THEN 'PERMANENT'::draftsman.error_class END,
           cancel_requested_at = CASE WHEN number %% 200 = 1 THEN draftsman.now() END,
           cancel_requested_by = CASE WHEN number %% 200 = 1 THEN 'seed' END,
           worker_id = NULL, lease_token = NULL, version = version + 1,
           finished_at = draftsman.now(), updated_at = draftsman.now()
     WHERE status = 'running'
    RETURNING number, run_count, status
)
UPDATE draftsman.job_runs r
   SET status = e.status::text::draftsman.run_status, finished_at = draftsman.now()
  FROM ended e
 WHERE r.job = e.number AND r.ordinal = e.run_count AND r.status = 'running'

-- One in ten of those that ended had asked, and was answered.
-- name: answered
WITH asked AS (
    INSERT INTO draftsman.job_questions (job, ordinal, run, key, kind, status, text,
           freeform_allowed, digest, resolution, expires_at, answered_at)
    SELECT number, 1, 1, 'pick', 'input', 'answered', 'Which one?', true, 'seed',
           '{"outcome": "answered", "via": "person", "text": "red"}',
           draftsman.now() + interval '1 day', draftsman.now()
      FROM draftsman.jobs
     WHERE status = 'completed' AND number %% 10 = 0
    RETURNING job, ordinal
)
INSERT INTO draftsman.job_answers (job, question, kind, source, source_event_id, responder_id,
       voter, payload, accepted)
SELECT job, ordinal, 'input', 'cli', 'seed', 'seed', 'seed', '{"text": "red"}', true FROM asked

-- What runs asks and waits; thirty of the questions are due.
-- name: ask
WITH asking AS (
    UPDATE draftsman.jobs
       SET status = CASE WHEN number %% 10 = 0 THEN 'waiting_for_approval'
                    ELSE 'waiting_for_input' END::draftsman.job_status,
           worker_id = NULL, lease_token = NULL, version = version + 1,
           updated_at = draftsman.now()
     WHERE status = 'running'
    RETURNING number, run_count, status
), paused AS (
    UPDATE draftsman.job_runs r
       SET status = 'paused', finished_at = draftsman.now()
      FROM asking a
     WHERE r.job = a.number AND r.ordinal = a.run_count AND r.status = 'running'
)
INSERT INTO draftsman.job_questions (job, ordinal, run, key, kind, text, freeform_allowed, digest,
       expires_at)
SELECT number, 1, run_count, 'pick', k.kind, 'Which one?', k.kind = 'input', 'seed',
       draftsman.now() + (row_number() OVER (ORDER BY number) - 30) * interval '1 minute'
  FROM asking
 CROSS JOIN LATERAL (SELECT (CASE WHEN status = 'waiting_for_input' THEN 'input'
                             ELSE 'approval' END)::draftsman.question_kind AS kind) k

-- What runs failed for a passing reason; twenty retries are due.
-- name: retry
WITH failed AS (
    UPDATE draftsman.jobs
       SET status = 'retrying', last_error = 'seeded', error_class = 'TRANSIENT_INFRA',
           next_retry_at = draftsman.now() + (number %% 300 - 20) * interval '1 minute',
           attempts = 1, worker_id = NULL, lease_token = NULL, version = version + 1,
           updated_at = draftsman.now()
     WHERE status = 'running'
    RETURNING number, run_count
)
UPDATE draftsman.job_runs r
   SET status = 'failed', finished_at = draftsman.now(), error = 'seeded'
  FROM failed f
 WHERE r.job = f.number AND r.ordinal = f.run_count AND r.status = 'running'
