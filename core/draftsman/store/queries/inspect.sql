-- What people look at.

-- name: get
SELECT number, id, type, idempotency_key, request_digest, queue, priority, position, subject_key,
       status, claimed_from, mode, source, source_type::text, external_event_id, invoker_id,
       invoker_display_name, repo_owner, repo_name, ticket_url, ticket_title, ticket_text, payload,
       overrides, requested_skills, tags, agent, retry_of, chain_length, run_at, run_count,
       attempts, max_attempts, retry_count, max_retries, next_retry_at, last_error,
       error_class::text, on_lost, worker_id, lease_token, cancel_requested_at,
       cancel_requested_by, cancel_reason, result, version, created_at, queued_at, claimed_at,
       started_at, finished_at, updated_at
  FROM draftsman.jobs
 WHERE number = %(number)s

-- name: find
SELECT number FROM draftsman.jobs WHERE id BETWEEN %(lowest)s AND %(highest)s LIMIT 2

-- The newest jobs first, after a cursor; without a status the primary key gives the order, with
-- statuses the status index does.
-- name: page
SELECT number, id, type, queue, status, mode, source::text, agent, repo_owner, repo_name,
       ticket_title, invoker_id, tags, attempts, retry_count, run_count, next_retry_at, run_at,
       last_error, created_at, started_at, finished_at
  FROM draftsman.jobs
 WHERE (%(before)s::bigint IS NULL OR number < %(before)s)
   AND (%(statuses)s::draftsman.job_status[] IS NULL OR status = ANY (%(statuses)s))
   AND (%(agent)s::text IS NULL OR agent = %(agent)s)
   AND (%(repo)s::text IS NULL
        OR repo_name = %(repo)s OR repo_owner || '/' || repo_name = %(repo)s)
   AND (%(tag)s::text IS NULL OR %(tag)s = ANY (tags))
   AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s)
 ORDER BY number DESC
 LIMIT %(limit)s

-- name: runs
SELECT job, ordinal, worker_id, lease_token, params_snapshot, status, heartbeat_at, started_at,
       finished_at, exit_code, error, error_class::text, usage, result
  FROM draftsman.job_runs
 WHERE job = %(job)s
 ORDER BY ordinal

-- One job's trail: its row lock orders the ids.
-- name: trail
SELECT job, id, run, kind, from_status::text, to_status::text, actor, payload, created_at, epoch,
       txid::text::bigint AS txid
  FROM draftsman.job_events
 WHERE job = %(job)s AND id > %(after)s
 ORDER BY id
 LIMIT %(limit)s

-- Everybody's trail, safe to follow: never past a transaction that may still commit.
-- name: feed
SELECT job, id, run, kind, from_status::text, to_status::text, actor, payload, created_at, epoch,
       txid::text::bigint AS txid
  FROM draftsman.job_events
 WHERE (epoch, txid, id) > (%(epoch)s, %(txid)s::text::xid8, %(id)s)
   AND (epoch < draftsman.feed_epoch() OR txid < pg_snapshot_xmin(pg_current_snapshot()))
 ORDER BY epoch, txid, id
 LIMIT %(limit)s

-- Where the feed ends now: the cursor of somebody who wants only what comes.
-- name: feed_end
SELECT draftsman.feed_epoch(), pg_snapshot_xmin(pg_current_snapshot())::text::bigint

-- name: status
SELECT status FROM draftsman.jobs WHERE number = %(job)s

-- Why a job is where it is: its place by the claim's own view, and who could take it.
-- name: why
SELECT j.number, j.status, j.queue, j.type, j.run_at, j.next_retry_at, j.last_error, j.attempts,
       j.max_attempts, j.retry_count, j.max_retries, j.worker_id, j.cancel_requested_at,
       EXISTS (SELECT FROM draftsman.claimable c WHERE c.number = j.number) AS claimable,
       (SELECT count(*) FROM (
           SELECT FROM draftsman.claimable c
            WHERE c.queue = j.queue
              AND (c.priority > j.priority OR (c.priority = j.priority
                   AND (c.position, c.created_at, c.number)
                       < (j.position, j.created_at, j.number)))
            LIMIT 1000) b) AS ahead,
       (SELECT count(*) FROM draftsman.workers w
         WHERE j.queue = ANY (w.queues) AND NOT w.draining
           AND w.heartbeat_at > draftsman.now() - make_interval(secs => %(lease)s)) AS workers,
       (SELECT count(*) FROM draftsman.workers w
         WHERE j.queue = ANY (w.queues) AND NOT w.draining AND j.type = ANY (w.types)
           AND w.heartbeat_at > draftsman.now() - make_interval(secs => %(lease)s)) AS able,
       (SELECT coalesce(sum(w.slots), 0) FROM draftsman.workers w
         WHERE j.queue = ANY (w.queues) AND NOT w.draining
           AND w.heartbeat_at > draftsman.now() - make_interval(secs => %(lease)s)) AS slots,
       (SELECT w.host || ' pid ' || w.pid FROM draftsman.workers w WHERE w.id = j.worker_id)
           AS worker,
       (SELECT extract(epoch FROM draftsman.now() - r.heartbeat_at)::float8
          FROM draftsman.job_runs r
         WHERE r.job = j.number AND r.status = 'running') AS silent,
       extract(epoch FROM coalesce(j.next_retry_at, j.run_at) - draftsman.now())::float8 AS due_in
  FROM draftsman.jobs j
 WHERE j.number = %(job)s

-- name: counts
SELECT status::text, count(*) FROM draftsman.jobs GROUP BY status

-- name: open_counts
SELECT count(*) AS open,
       count(*) FILTER (WHERE expires_at < draftsman.now() + interval '1 hour') AS soon,
       min(expires_at) AS next
  FROM draftsman.job_questions
 WHERE status = 'open'

-- Answers of the last day: how many, and the median seconds from asking to answering.
-- name: answer_times
SELECT count(*),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM q.answered_at - q.asked_at))
  FROM draftsman.job_answers a
  JOIN draftsman.job_questions q ON q.job = a.job AND q.ordinal = a.question
 WHERE a.accepted AND q.status = 'answered'
   AND a.id > (SELECT coalesce(max(id), 0) - 10000 FROM draftsman.job_answers)
   AND q.answered_at > draftsman.now() - interval '1 day'

-- name: health
SELECT current_setting('server_version') AS version,
       extract(epoch FROM clock_timestamp())::float8 AS clock,
       current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       inet_server_addr() IS NULL AS local,
       session_user::text AS role
