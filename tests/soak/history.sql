-- A million jobs that ended, over half a year, and a hundred thousand that wait for people, with
-- their runs, events, questions, answers, steps, checkpoints, artifacts and logs; and some of each
-- other status. The rows that the transitions would leave, written in bulk with the triggers off:
-- `doctor --invariants` says whether they are.

-- name: begin
SET session_replication_role = replica;
SET synchronous_commit = off;
SET maintenance_work_mem = '512MB';
SET work_mem = '256MB';

-- The statuses that a job of a status passed.
CREATE FUNCTION pg_temp.path(status draftsman.job_status, runs int)
RETURNS draftsman.job_status[] LANGUAGE sql STABLE AS $$
    SELECT string_to_array((CASE
        WHEN status IN ('scheduled', 'queued') THEN ''
        WHEN status = 'claimed' THEN 'queued,'
        WHEN status = 'running' THEN 'queued,claimed,'
        WHEN status = 'expired' THEN 'queued,claimed,running,waiting_for_input,'
        WHEN runs > 1 THEN 'queued,claimed,running,waiting_for_input,resumed,claimed,running,'
        ELSE 'queued,claimed,running,' END) || status, ',')::draftsman.job_status[]
$$;

-- Partitions of the events of the last months, as their leaders made them.
-- name: months
SELECT set_config('draftsman.clock_offset', '-6 months', false);
SELECT draftsman.make_event_partitions(6);
RESET draftsman.clock_offset;

-- 0.5 percent are canceled, 0.5 percent dead letters, 0.2 percent expired, 2 percent failed, and
-- 10 percent have asked. Ids and times grow with the numbers.
-- name: jobs
WITH jobs (number, id, type, idempotency_key, request_digest, position, status, claimed_from, source,
invoker_id, payload, tags, agent, repo_owner, repo_name, ticket_title, retry_of, run_at, run_count,
attempts, next_retry_at, last_error, error_class, worker_id, lease_token, cancel_requested_at,
cancel_requested_by, result, version, created_at, queued_at, started_at, finished_at, updated_at,
subject_key, has_targets) AS MATERIALIZED (
SELECT g, (lpad(to_hex((extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '7'
           || substr(h.hex, 1, 3) || '8' || substr(h.hex, 4, 15))::uuid,
       'seed', 'seed:' || h.hex, h.hex || h.hex, g * 100, s.status,
       CASE WHEN s.status = 'claimed' THEN 'queued'::draftsman.job_status END,
       'cli'::draftsman.channel, 'seed', jsonb_build_object('i', g), ARRAY['tag' || g %% 7], 'agent' || g %% 3, 'acme',
       'repo' || g %% 50, 'Job ' || g,
       CASE WHEN s.status = 'queued' AND g %% 10 = 0 THEN g - 100000 END,
       CASE WHEN s.status = 'scheduled' THEN now() + (g %% 300 - 20) * interval '1 minute' END, r.runs,
       CASE WHEN s.status = 'dead_letter' THEN 3 ELSE 0 END,
       CASE WHEN s.status = 'retrying' THEN now() + (g %% 300 - 20) * interval '1 minute' END,
       CASE WHEN s.status IN ('failed', 'dead_letter', 'retrying') THEN 'seeded' END,
       CASE WHEN s.status IN ('failed', 'dead_letter') THEN 'PERMANENT'::draftsman.error_class END,
       CASE WHEN s.status IN ('claimed', 'running')
            THEN md5('worker' || g %% %(workers)s::int)::uuid END,
       CASE WHEN s.status IN ('claimed', 'running') THEN g END,
       CASE WHEN s.status = 'canceled' THEN t.at END,
       CASE WHEN s.status = 'canceled' THEN 'seed' END,
       CASE WHEN s.status = 'completed' THEN jsonb_build_object('n', g) END,
       cardinality(pg_temp.path(s.status, r.runs)), t.at, t.at,
       CASE WHEN r.runs > 0 THEN t.at + interval '1 second' END,
       CASE WHEN s.status IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired')
            THEN t.at + interval '9 seconds' END,
       t.at + interval '9 seconds', CASE WHEN g %% 100 = 99 THEN 'card' || g END, g %% 10 = 0
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) g
 CROSS JOIN LATERAL (SELECT md5(g::text) AS hex) h
 CROSS JOIN LATERAL (SELECT now() - (1 - (g - 1.0) / %(all)s::int) * %(days)s * interval '1 day' AS at) t
 CROSS JOIN LATERAL (SELECT (CASE
       WHEN %(status)s <> 'finished' THEN %(status)s
       WHEN g %% 200 = 1 THEN 'canceled'
       WHEN g %% 200 = 3 THEN 'dead_letter'
       WHEN g %% 500 = 7 THEN 'expired'
       WHEN g %% 50 = 0 THEN 'failed'
       ELSE 'completed' END)::draftsman.job_status AS status) s
 CROSS JOIN LATERAL (SELECT CASE
       WHEN s.status IN ('scheduled', 'queued', 'claimed') THEN 0
       WHEN s.status IN ('completed', 'failed') AND g %% 10 = 0 THEN 2
       ELSE 1 END AS runs) r
), requests AS (
    INSERT INTO draftsman.job_requests (number, id, type, idempotency_key, request_digest, source,
           invoker_id, payload, tags, agent, repo_owner, repo_name, ticket_title, retry_of,
           created_at)
       OVERRIDING SYSTEM VALUE
    SELECT number, id, type, idempotency_key, request_digest, source, invoker_id, payload, tags, agent, repo_owner, repo_name, ticket_title, retry_of, created_at
      FROM jobs
)
INSERT INTO draftsman.job_states (number, type, position, status, claimed_from, run_at, run_count,
       attempts, next_retry_at, last_error, error_class, worker_id, lease_token,
       cancel_requested_at, cancel_requested_by, result, version, queued_at, started_at,
       finished_at, updated_at, subject_key, has_targets, result_token)
SELECT number, type, position, status, claimed_from, run_at, run_count, attempts, next_retry_at, last_error, error_class, worker_id, lease_token, cancel_requested_at, cancel_requested_by, result, version, queued_at, started_at, finished_at, updated_at, subject_key, has_targets,
       CASE WHEN status = 'completed' THEN number END
  FROM jobs

-- name: runs
INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token, status, started_at,
       finished_at, error)
SELECT j.number, n, coalesce(j.worker_id, md5('worker' || j.number %% 20)::uuid),
       coalesce(j.lease_token, j.number),
       (CASE WHEN n < j.run_count OR j.status IN ('expired', 'waiting_for_input',
                                                  'waiting_for_approval') THEN 'parked'
             WHEN j.status IN ('dead_letter', 'retrying') THEN 'failed'
             WHEN j.status = 'resumed' THEN 'interrupted'
             ELSE j.status::text END)::draftsman.run_status,
       j.started_at, CASE WHEN j.status <> 'running' THEN j.started_at + interval '5 seconds' END,
       j.last_error
  FROM draftsman.jobs j
 CROSS JOIN LATERAL generate_series(1, j.run_count) n

-- The indexes of events are built at the end, at once.
-- name: indexes
SELECT replace(pg_get_indexdef(i), ' ON ONLY ', ' ON ')
  FROM unnest('{draftsman.job_events_job,draftsman.job_events_cursor,draftsman.job_events_kind}'::regclass[]) i

-- name: drop_indexes
DROP INDEX draftsman.job_events_job, draftsman.job_events_cursor, draftsman.job_events_kind;

-- The history has an earlier epoch with a transaction per job. Unfinished jobs were written now.
-- name: events
INSERT INTO draftsman.job_events (job, id, run, kind, from_status, to_status, actor, created_at,
       epoch, txid)
SELECT j.number, j.number * 10 + i,
       CASE WHEN 'running' IN (p.path[i - 1], p.path[i]) THEN 1 END,
       coalesce(draftsman.transition_kind(p.path[i - 1], p.path[i]), 'job_created'),
       p.path[i - 1], p.path[i], 'seed', j.created_at + i * interval '1 second',
       CASE WHEN j.finished_at IS NULL THEN 2 ELSE 1 END,
       CASE WHEN j.finished_at IS NULL THEN pg_current_xact_id()
       ELSE (3 + j.number)::text::xid8 END
  FROM draftsman.jobs j
 CROSS JOIN LATERAL (SELECT pg_temp.path(j.status, j.run_count) AS path OFFSET 0) p
 CROSS JOIN LATERAL generate_subscripts(p.path, 1) i

-- Of the open questions, 10 percent never expire, and thirty are due.
-- name: questions
INSERT INTO draftsman.job_questions (job, ordinal, run, key, kind, status, text, freeform_allowed,
       on_expire, digest, resolution, asked_at, expires_at, answered_at)
SELECT j.number, 1, 1, 'pick', k.kind, q.status, 'Which one?', k.kind = 'input',
       CASE WHEN q.status = 'open' AND j.number %% 3 = 0 THEN 'escalate' ELSE 'expire'
       END::draftsman.on_expire, 'seed',
       CASE q.status WHEN 'answered' THEN '{"outcome": "answered", "via": "person", "text": "red"}'
                     WHEN 'expired' THEN '{"outcome": "expired", "via": "system"}' END::jsonb,
       j.created_at,
       CASE WHEN q.status <> 'open' THEN j.created_at + interval '1 day'
            WHEN j.number %% 10 <> 1 THEN now() + (j.number - %(waiting)s - 30) * interval '1 minute' END,
       CASE WHEN q.status = 'answered' THEN j.created_at + interval '1 minute' END
  FROM draftsman.jobs j
 CROSS JOIN LATERAL (SELECT (CASE WHEN j.status = 'waiting_for_approval' THEN 'approval'
                             ELSE 'input' END)::draftsman.question_kind AS kind) k
 CROSS JOIN LATERAL (SELECT (CASE WHEN j.run_count = 2 THEN 'answered'
                                  WHEN j.status = 'expired' THEN 'expired'
                                  ELSE 'open' END)::draftsman.question_status AS status) q
 WHERE j.run_count = 2 OR j.status IN ('expired', 'waiting_for_input', 'waiting_for_approval')

-- Of the open questions that expire, fifty have a due reminder, and a third of these escalates.
-- name: times
INSERT INTO draftsman.question_times (job, question, since, remind_at, reminders, escalate_to)
SELECT job, ordinal, asked_at,
       CASE WHEN status = 'open' AND expires_at IS NOT NULL
            THEN now() + (job - %(waiting)s - 50) * interval '1 minute' END,
       CASE WHEN status = 'open' THEN 0 ELSE 2 END,
       CASE WHEN on_expire = 'escalate' THEN 'leads' END
  FROM draftsman.job_questions

-- Answered questions have an accepted and a refused answer, expired questions a late answer.
-- name: answers
INSERT INTO draftsman.job_answers (job, question, kind, source, source_event_id, responder_id,
       voter, session_role, payload, accepted, reason, created_at)
SELECT q.job, 1, 'input', 'cli', 'seed' || n, 'seed', 'seed', 'owner:seed',
       CASE WHEN q.status = 'expired' THEN '{"text": "red", "late": true}' ELSE '{"text": "red"}'
       END::jsonb,
       a.accepted, CASE WHEN NOT a.accepted THEN 'not a choice' END,
       q.asked_at + n * interval '30 seconds'
  FROM draftsman.job_questions q
 CROSS JOIN generate_series(1, 2) n
 CROSS JOIN LATERAL (SELECT q.status = 'answered' AND n = 2 AS accepted) a
 WHERE q.status <> 'open'
 ORDER BY q.job, n

-- name: tokens
INSERT INTO draftsman.approval_tokens (token_hash, job, question, approver)
SELECT md5('token' || job), job, ordinal, 'carol' FROM draftsman.job_questions
 WHERE kind = 'approval'

-- name: steps
INSERT INTO draftsman.job_steps (job, key, owner, status, invocation_id, run, result, created_at,
       finished_at)
SELECT job, 'step' || n, 'handler', 'done', md5(job::text || n), ordinal, '{"n": 1}', started_at, started_at
  FROM draftsman.job_runs
 CROSS JOIN generate_series(1, 2) n
 WHERE job %% 4 = 0 AND ordinal = 1

-- name: checkpoints
INSERT INTO draftsman.job_checkpoints (job, run, data, created_at)
SELECT job, ordinal, '{"at": 1}', started_at FROM draftsman.job_runs
 WHERE job %% 2 = 0 OR status = 'running'
 ORDER BY job, ordinal

-- name: artifacts
INSERT INTO draftsman.artifacts (job, run, name, kind, size, sha256)
SELECT job, ordinal, 'report', 'report', 10, md5(job::text) FROM draftsman.job_runs
 WHERE job %% 10 = 0
 ORDER BY job, ordinal

-- name: chunks
INSERT INTO draftsman.artifact_chunks (artifact, seq, data)
SELECT id, 0, '\x01020304' FROM draftsman.artifacts

-- name: logs
INSERT INTO draftsman.run_log_chunks (job, run, seq, text)
SELECT job, ordinal, n, 'a line of the log' FROM draftsman.job_runs CROSS JOIN generate_series(1, 2) n
 WHERE job %% 2 = 0

-- name: activity
INSERT INTO draftsman.run_activity (job, run, seq, kind, text)
SELECT job, ordinal, n, 'message', 'a message' FROM draftsman.job_runs CROSS JOIN generate_series(1, 2) n
 WHERE job %% 2 = 0

-- 10 percent of the jobs have a target, in fifty channels.
-- name: targets
INSERT INTO draftsman.job_targets (job, ordinal, channel, target, thread_key)
SELECT number, 1, 'slack', 'C' || number / 10 %% 50,
       'D-' || number || ' slack:C' || number / 10 %% 50
  FROM draftsman.jobs
 WHERE has_targets

-- Waiting jobs have a sent question, active jobs a pending status. 1 percent are dead letters.
-- name: deliveries
INSERT INTO draftsman.deliveries (job, question, channel, target, thread_key, kind, version, status,
       attempts, next_attempt_at, external_ref, last_error, created_at, sent_at, dedupe_key)
SELECT j.number, CASE WHEN k.kind = 'question' THEN 1 END, t.channel, t.target, t.thread_key, k.kind,
       CASE WHEN k.kind = 'status' THEN j.version END, s.status, 1,
       CASE WHEN s.status = 'pending' THEN now() + (j.number %% 900 - 600) * interval '1 second' END,
       CASE WHEN s.status = 'sent' THEN 'ref' || j.number END,
       CASE WHEN s.status = 'dead_letter' THEN 'seeded' END, j.created_at,
       CASE WHEN s.status = 'sent' THEN j.created_at END,
       CASE WHEN k.kind <> 'status' THEN k.kind || ':1' END
  FROM draftsman.jobs j
  JOIN draftsman.job_targets t ON t.job = j.number
 CROSS JOIN unnest('{status,question,result}'::draftsman.delivery_kind[]) AS k (kind)
 CROSS JOIN LATERAL (SELECT (CASE
       WHEN j.status IN ('scheduled', 'retrying', 'queued', 'resumed', 'claimed', 'running')
            THEN 'pending'
       WHEN j.finished_at IS NOT NULL AND j.number %% 1000 = 0 THEN 'dead_letter'
       ELSE 'sent' END)::draftsman.delivery_status AS status) s
 WHERE CASE k.kind WHEN 'question' THEN j.status IN ('waiting_for_input', 'waiting_for_approval')
                   WHEN 'result' THEN j.finished_at IS NOT NULL ELSE true END
 ORDER BY j.number, k.kind

-- Earlier events, which do not change the status.
-- name: archived
INSERT INTO draftsman.event_archives (month, events, sha256, host, path, last_epoch, last_txid,
       last_id)
VALUES (%(month)s, %(batch)s, '0', 'seed', '/seed', 1, '3', 1);
INSERT INTO draftsman.archived_jobs (job, month, events, transitions)
SELECT number, %(month)s, 1, 0 FROM draftsman.jobs WHERE number <= %(batch)s

-- name: workers
INSERT INTO draftsman.workers (id, host, host_id, pid, pid_started, version, types, queues, slots)
SELECT md5('worker' || n)::uuid, 'host' || n %% 20, 'host' || n %% 20, n, 1, '1', '{seed}',
       '{default}', 10
  FROM generate_series(0, %(workers)s::int - 1) n

-- name: known
INSERT INTO draftsman.repos (name, remote_url, added_by)
VALUES ('seeded', 'https://git.example/acme/seeded', 'seed');
INSERT INTO draftsman.trello_board_configs (board_id, name) VALUES (repeat('b', 24), 'Work');
-- Two thousand schedules with twenty occurrences each; fifty are due, and of twenty an occurrence
-- waits.
-- Pull requests of the first jobs: 50 are open, and each has three events, of which 50 are new.
INSERT INTO draftsman.pull_requests (root, forge, project, number, url, branch, base, head, state,
       ended_at, branch_deleted_at)
SELECT n, 'github', 'acme/pay', n, 'u', 'draftsman/D-' || n, 'main', md5(n::text),
       CASE WHEN n > 19950 THEN 'open' WHEN n %% 9 = 0 THEN 'closed' ELSE 'merged' END,
       CASE WHEN n <= 19950 THEN now() - interval '300 days' END,
       CASE WHEN n <= 19950 THEN now() - interval '300 days' END
  FROM generate_series(1, 20000) n;
INSERT INTO draftsman.forge_events (forge, project, number, key, kind, source, author, author_name,
       is_bot, title, text, outcome, processed_at)
SELECT 'github', 'acme/pay', n, 'comment:' || n || ':' || k, 'comment', 'forge', 'eve', 'Eve', false,
       '', 'x', CASE WHEN k < 3 OR n <= 19950 THEN 'ignored' END,
       CASE WHEN k < 3 OR n <= 19950 THEN now() - interval '300 days' END
  FROM generate_series(1, 20000) n
 CROSS JOIN generate_series(1, 3) k;
INSERT INTO draftsman.schedules (name, rule, timezone, template, created_by, due_at, fire_at)
SELECT 's' || n, '@daily', 'UTC', 'weekly', 'seed', t.due_at, t.due_at
  FROM generate_series(1, 2000) n
 CROSS JOIN LATERAL (
       SELECT CASE WHEN n <= 50 THEN now() ELSE now() + interval '1 year' END AS due_at) t;
INSERT INTO draftsman.schedule_fires (schedule, due_at, status, reason)
SELECT s.id, timestamptz '2001-01-01' + n * interval '1 day',
       CASE WHEN n = 20 AND s.id <= 20 THEN 'waiting' ELSE 'skipped' END, 'seed'
  FROM draftsman.schedules s
 CROSS JOIN generate_series(1, 20) n

-- Consequences that transactions left to the leader, all due: of ended jobs, of keys without jobs and of
-- queued jobs; and jobs that wait for people, which were canceled with a large tree.
-- name: postponed
INSERT INTO draftsman.postponed_work (ended, key, jobs, due_at)
SELECT CASE n %% 3 WHEN 0 THEN n END, CASE n %% 3 WHEN 1 THEN 'key' || n END,
       CASE n %% 3 WHEN 2 THEN ARRAY[%(queued)s + n] END, now() - n * interval '1 second'
  FROM generate_series(1, 3000) n;
INSERT INTO draftsman.pending_cancels (job, actor, reason, due_at)
SELECT %(waiting)s + 20000 + n, 'cli:seed', 'no longer needed', now() - n * interval '1 second'
  FROM generate_series(1, 3000) n

-- A thousand jobs that retry in some hours. Of those lost with a worker, one is on trial or, of every
-- tenth worker, convicted, and the others wait.
-- name: suspects
INSERT INTO draftsman.suspects (job, crash, worker_id, run, seconds, losses, status)
SELECT number, md5('worker' || number %% 100)::uuid, md5('worker' || number %% 100)::uuid, run_count, 60, 2,
       CASE WHEN row_number() OVER lost > 1 THEN 'waiting'
            WHEN number %% 10 = 0 THEN 'convicted'
            ELSE 'trial' END::draftsman.suspect_status
  FROM draftsman.job_states
 WHERE status = 'retrying' AND number %% 300 >= 230
WINDOW lost AS (PARTITION BY number %% 100 ORDER BY number)

-- name: end
INSERT INTO draftsman.leases (name, owner, term, expires_at)
VALUES ('leader', md5('worker0')::uuid, 1, now() + interval '1 day');
UPDATE draftsman.event_epoch SET epoch = 2;
SELECT setval('draftsman.job_requests_number_seq', max(number)),
       setval('draftsman.job_positions', max(position)),
       setval('draftsman.job_event_ids', max(number) * 10 + 10),
       setval('draftsman.lease_tokens', max(number) + 1) FROM draftsman.jobs;
RESET session_replication_role;
