-- A past of draftsman, written set by set with the triggers off: jobs that completed, with their
-- run and their four events, and jobs that wait for an answer, with an open question.

-- name: jobs
INSERT INTO draftsman.job_requests (number, id, type, idempotency_key, request_digest, source,
       invoker_id, payload)
OVERRIDING SYSTEM VALUE
SELECT g, gen_random_uuid(), 'noop', 'past:' || g, md5(g::text) || md5(g::text), 'cli', 'bench',
       jsonb_build_object('i', g)
  FROM generate_series(%(first)s::int, %(last)s::int) g

-- name: states
INSERT INTO draftsman.job_states (number, type, status, run_count, version, queued_at, claimed_at,
       started_at, finished_at, result_token)
SELECT g, 'noop', CASE WHEN g <= %(finished)s THEN 'completed' ELSE 'waiting_for_input'
       END::draftsman.job_status, 1, 4, now(), now(), now(),
       CASE WHEN g <= %(finished)s THEN now() END, CASE WHEN g <= %(finished)s THEN g END
  FROM generate_series(%(first)s::int, %(last)s::int) g

-- name: runs
INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token, status, finished_at)
SELECT g, 1, %(worker)s, g,
       CASE WHEN g <= %(finished)s THEN 'completed' ELSE 'parked' END::draftsman.run_status, now()
  FROM generate_series(%(first)s::int, %(last)s::int) g

-- name: events
INSERT INTO draftsman.job_events (job, jobs, run, kind, from_status, to_status, actor)
SELECT draftsman.event_block(g), array_agg(g::bigint), CASE WHEN s.step > 1 THEN 1 END,
       CASE s.step WHEN 1 THEN 'job_created' WHEN 2 THEN 'job_started'
            ELSE draftsman.transition_kind(s.before, s.after) END,
       s.before, s.after, 'worker:bench'
  FROM generate_series(%(first)s::int, %(last)s::int) g
 CROSS JOIN LATERAL (VALUES
       (1, NULL::draftsman.job_status, 'queued'::draftsman.job_status),
       (2, 'queued', 'running'),
       (3, 'running', CASE WHEN g <= %(finished)s THEN 'completed' ELSE 'waiting_for_input'
                      END::draftsman.job_status)) AS s (step, before, after)
 GROUP BY draftsman.event_block(g), g / 32, s.step, s.before, s.after
 ORDER BY s.step

-- name: questions
INSERT INTO draftsman.job_questions (job, ordinal, run, key, kind, text, choices, digest,
       expires_at)
SELECT g, 1, 1, 'pick', 'input', 'Which one?', '[{"value": "red", "label": "red"}]', 'past', now() + interval '1 day'
  FROM generate_series(greatest(%(first)s::int, %(finished)s::int + 1), %(last)s::int) g

-- name: done
SELECT setval(pg_get_serial_sequence('draftsman.job_requests', 'number'), greatest(%(last)s::int, 1)),
       setval('draftsman.lease_tokens', greatest(%(last)s::int, 1))
