-- Insertion of requests as jobs.

-- A concurrent request with one of the subjects waits for the end of this transaction; the next
-- statement then sees its job. 1146242644 is "DRFT" in ASCII.
-- name: lock_subjects
SELECT pg_advisory_xact_lock(hashtextextended(subject, 1146242644))
  FROM unnest(%(subjects)s::text[]) AS w (subject)

-- A single request in a prepared statement: the job, and its event by trigger. A request whose job
-- exists, or is being committed by a concurrent duplicate, returns no row.
-- name: submit_one
WITH context AS MATERIALIZED (
    SELECT set_config('draftsman.actor', %(actor)s, true),
           set_config('draftsman.detail', '', true)  -- set earlier in the transaction
), request AS (
    INSERT INTO draftsman.job_requests AS r (id, type, idempotency_key, request_digest, mode,
           source, source_type, external_event_id, invoker_id, invoker_display_name, repo_owner,
           repo_name, ticket_url, ticket_title, ticket_text, payload, overrides, requested_skills,
           tags, agent, retry_of, chain_length)
    SELECT %(id)s::uuid, %(type)s::text, %(idempotency_key)s::text, %(request_digest)s::text,
           %(mode)s::draftsman.job_mode, %(source)s::draftsman.channel,
           %(source_type)s::draftsman.source_type, %(external_event_id)s::text,
           %(invoker_id)s::text, %(invoker_display_name)s::text, %(repo_owner)s::text,
           %(repo_name)s::text, %(ticket_url)s::text, %(ticket_title)s::text, %(ticket_text)s::text,
           %(payload)s::jsonb, %(overrides)s::jsonb, %(requested_skills)s::text[], %(tags)s::text[],
           %(agent)s::text, %(retry_of)s::bigint, %(chain_length)s::int
      FROM context
     WHERE (SELECT number FROM draftsman.job_requests
             WHERE type = %(type)s AND idempotency_key = %(idempotency_key)s
               AND NOT starts_with(idempotency_key, 'auto:')) IS NULL
       AND (SELECT number FROM draftsman.job_states
             WHERE subject_key = %(subject_key)s
               AND status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))
           IS NULL
        ON CONFLICT DO NOTHING
    RETURNING r.number
), state AS (
    INSERT INTO draftsman.job_states AS s (number, type, queue, priority, subject_key, status,
           run_at, max_attempts, max_retries, on_lost, has_targets, queued_at)
    SELECT r.number, %(type)s::text, %(queue)s::text, %(priority)s::int, %(subject_key)s::text,
           CASE WHEN t.run_at > draftsman.now() THEN 'scheduled' ELSE 'queued'
           END::draftsman.job_status,
           t.run_at, %(max_attempts)s::int, %(max_retries)s::int, %(on_lost)s::draftsman.on_lost,
           coalesce(%(has_targets)s::boolean, false),
           CASE WHEN t.run_at > draftsman.now() THEN NULL ELSE draftsman.now() END
      FROM request r
     CROSS JOIN (
           SELECT coalesce(%(run_at)s::timestamptz,
                           draftsman.now() + make_interval(secs => %(delay)s::float8)) AS run_at) t
    RETURNING s.number, s.status, s.queue
)
SELECT number, %(id)s::uuid, status,
       CASE WHEN status = 'queued' THEN pg_notify('draftsman_jobs', queue)::text END
  FROM state

-- The same for a batch. The columns that all requests share are read once. Keys are inserted in
-- sorted order, so that two batches cannot deadlock; numbers and positions follow the order of the
-- requests. IN … IS TRUE is a hashed lookup, whatever the planner expects; a join could be a nested
-- loop over a thousand rows.
-- name: submit
WITH fresh AS MATERIALIZED (
    SELECT w.*, nextval('draftsman.job_requests_number_seq') AS number,
           nextval('draftsman.job_positions') AS position,
           CASE WHEN t.run_at > draftsman.now() THEN 'scheduled' ELSE 'queued'
           END::draftsman.job_status AS status, t.run_at AS due
      FROM jsonb_populate_record(NULL::draftsman.request, %(shared)s::jsonb) c
     CROSS JOIN LATERAL jsonb_populate_recordset(c, %(rows)s::jsonb) w
     CROSS JOIN LATERAL (
           SELECT coalesce(w.run_at, draftsman.now() + make_interval(secs => w.delay)) AS run_at) t
     WHERE (SELECT number FROM draftsman.job_requests
             WHERE type = w.type AND idempotency_key = w.idempotency_key
               AND NOT starts_with(idempotency_key, 'auto:')) IS NULL
       AND (SELECT number FROM draftsman.job_states
             WHERE subject_key = w.subject_key
               AND status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))
           IS NULL
), context AS MATERIALIZED (
    SELECT set_config('draftsman.actor', %(actor)s, true),
           set_config('draftsman.detail', '', true)  -- set earlier in the transaction
), requests AS (
    INSERT INTO draftsman.job_requests AS r (number, id, type, idempotency_key, request_digest,
           mode, source, source_type, external_event_id, invoker_id, invoker_display_name,
           repo_owner, repo_name, ticket_url, ticket_title, ticket_text, payload, overrides,
           requested_skills, tags, agent, retry_of, chain_length) OVERRIDING SYSTEM VALUE
    SELECT w.number, w.id, w.type, w.idempotency_key, w.request_digest, w.mode, w.source,
           w.source_type, w.external_event_id, w.invoker_id, w.invoker_display_name, w.repo_owner,
           w.repo_name, w.ticket_url, w.ticket_title, w.ticket_text, w.payload, w.overrides,
           w.requested_skills, w.tags, w.agent, w.retry_of, w.chain_length
      FROM fresh w
     CROSS JOIN context
     ORDER BY w.type, w.idempotency_key
        ON CONFLICT DO NOTHING
    RETURNING r.number
), states AS (
    INSERT INTO draftsman.job_states AS s (number, type, queue, priority, position, subject_key,
           status, run_at, max_attempts, max_retries, on_lost, has_targets, queued_at)
    SELECT w.number, w.type, w.queue, w.priority, w.position, w.subject_key, w.status, w.due,
           w.max_attempts, w.max_retries, w.on_lost, coalesce(w.has_targets, false),
           CASE WHEN w.status = 'queued' THEN draftsman.now() END
      FROM fresh w
     WHERE (w.number IN (SELECT number FROM requests)) IS TRUE
     ORDER BY w.subject_key
    RETURNING s.number
)
SELECT w.number, w.id, w.status,
       CASE WHEN w.status = 'queued' THEN pg_notify('draftsman_jobs', w.queue)::text END AS notified
  FROM fresh w
 WHERE (w.number IN (SELECT number FROM states)) IS TRUE

-- The existing jobs: of the same type and key, else an active job of the same subject.
-- name: existing
SELECT w.ordinal, j.number, j.id, j.status, j.request_digest, j.same_key
  FROM unnest(%(types)s::text[], %(keys)s::text[], %(subjects)s::text[])
       WITH ORDINALITY AS w (type, idempotency_key, subject_key, ordinal)
 CROSS JOIN LATERAL (
       SELECT number, id, status, request_digest, true AS same_key
         FROM draftsman.jobs
        WHERE type = w.type AND idempotency_key = w.idempotency_key
          AND NOT starts_with(idempotency_key, 'auto:')
        UNION ALL
       SELECT number, id, status, request_digest, false
         FROM draftsman.jobs
        WHERE subject_key = w.subject_key
          AND status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired')
        ORDER BY same_key DESC
        LIMIT 1) j

-- Requests that joined active jobs add an event each, in the order of the jobs they lock.
-- name: join
SELECT draftsman.join_request(r.job, %(actor)s, r.request)
  FROM (SELECT job, request
          FROM unnest(%(jobs)s::bigint[], %(requests)s::jsonb[]) AS w (job, request)
         ORDER BY job) r

-- For each job, another job with the same invoker, text and target, submitted less than so many
-- seconds before it or meanwhile. The second transaction to commit sees the other. Only nearby jobs
-- are read, each once: the ranges have no overlaps.
-- name: recent_duplicates
WITH wanted AS MATERIALIZED (
    SELECT w.job, w.channel, w.target, r.type, r.invoker_id, r.request_digest,
           r.created_at - make_interval(secs => %(seconds)s) AS since
      FROM unnest(%(jobs)s::bigint[], %(channels)s::draftsman.delivery_channel[], %(targets)s::text[])
           AS w (job, channel, target)
      JOIN draftsman.job_requests r ON r.number = w.job
), nearby AS MATERIALIZED (
    SELECT r.number, r.type, r.invoker_id, r.request_digest, r.created_at
      FROM unnest(%(lows)s::bigint[], %(highs)s::bigint[]) AS w (low, high)
     CROSS JOIN LATERAL (
           SELECT number, type, invoker_id, request_digest, created_at
             FROM draftsman.job_requests
            WHERE number BETWEEN w.low AND w.high AND retry_of IS NULL) r
)
SELECT DISTINCT ON (w.job) w.job, o.number, s.status,
       greatest(0, extract(epoch FROM draftsman.now() - o.created_at))::float8 AS age
  FROM wanted w
  JOIN nearby o
    ON o.request_digest = w.request_digest AND o.invoker_id = w.invoker_id AND o.type = w.type
   AND o.number <> w.job AND o.number > w.job - %(near)s AND o.number < w.job + %(near)s
   AND o.created_at > w.since
  JOIN draftsman.job_states s ON s.number = o.number AND s.status <> 'canceled'
 WHERE EXISTS (SELECT FROM draftsman.job_targets t
                WHERE t.job = o.number AND t.channel = w.channel AND t.target = w.target)
 ORDER BY w.job, o.number DESC
