-- Insertion of requests as jobs.

-- part: request
    INSERT INTO draftsman.job_requests AS r (id, type, idempotency_key, request_digest, mode,
           source, source_type, external_event_id, invoker_id, invoker_display_name, repo_host,
           repo_owner, repo_name, ticket_url, ticket_title, ticket_text, payload, overrides, requested_skills,
           tags, agent, retry_of, chain_length, template, template_version)
    SELECT %(id)s::uuid, %(type)s::text,
           coalesce(%(idempotency_key)s::text, 'auto:' || %(id)s::uuid), %(request_digest)s::text,
           %(mode)s::draftsman.job_mode, %(source)s::draftsman.channel,
           %(source_type)s::draftsman.source_type, %(external_event_id)s::text,
           %(invoker_id)s::text, %(invoker_display_name)s::text, %(repo_host)s::text,
           %(repo_owner)s::text, %(repo_name)s::text, %(ticket_url)s::text, %(ticket_title)s::text, %(ticket_text)s::text,
           %(payload)s::jsonb, %(overrides)s::jsonb, %(requested_skills)s::text[], %(tags)s::text[],
           %(agent)s::text, %(retry_of)s::bigint, %(chain_length)s::int, %(template)s::text,
           %(template_version)s::int
     WHERE set_config('draftsman.actor', %(actor)s, true) IS NOT NULL
       AND set_config('draftsman.detail', '', true) IS NOT NULL  -- set earlier in the transaction

-- part: created
    RETURNING r.number, r.created_at AS now,
              coalesce(%(run_at)s::timestamptz,
                       r.created_at + make_interval(secs => %(delay)s::float8)) AS due
)
INSERT INTO draftsman.job_states AS s (number, type, queue, priority, subject_key, concurrency_key,
       hold, status, run_at, max_attempts, max_retries, on_lost, has_targets, queued_at, updated_at)
SELECT r.number, %(type)s::text, %(queue)s::text, %(priority)s::int, %(subject_key)s::text,
       %(concurrency_key)s::text,
       coalesce(%(hold)s, CASE WHEN %(concurrency_key)s::text IS NOT NULL THEN 'key' END)::draftsman.job_hold,
       CASE WHEN r.due > r.now THEN 'scheduled' ELSE 'queued' END::draftsman.job_status, r.due,
       %(max_attempts)s::int, %(max_retries)s::int, %(on_lost)s::draftsman.on_lost,
       coalesce(%(has_targets)s::boolean, false), CASE WHEN r.due > r.now THEN NULL ELSE r.now END,
       r.now
  FROM request r
RETURNING 1 AS ordinal, s.number, s.status = 'scheduled' AS scheduled,
          CASE WHEN s.status = 'queued' THEN pg_notify('draftsman_jobs', s.queue)::text END

-- The columns that all requests of a batch share are in a record, the others in arrays, in the order
-- of the requests, which numbers and positions follow.
-- part: batch
WITH shared AS MATERIALIZED (
    SELECT c.*, draftsman.now() AS now, set_config('draftsman.actor', %(actor)s, true),
           set_config('draftsman.detail', '', true)  -- set earlier in the transaction
      FROM jsonb_populate_record(NULL::draftsman.request, %(shared)s::jsonb) c
), fresh AS MATERIALIZED (
    SELECT w.*, nextval('draftsman.job_requests_number_seq') AS number,
           coalesce(w.run_at, c.run_at, c.now + make_interval(secs => coalesce(w.delay, c.delay)))
           AS due, c.now
      FROM shared c
     CROSS JOIN unnest(
               %(own_id)s::uuid[], %(own_type)s::text[], %(own_idempotency_key)s::text[],
               %(own_request_digest)s::text[], %(own_queue)s::text[], %(own_priority)s::int[],
               %(own_subject_key)s::text[], %(own_concurrency_key)s::text[], %(own_mode)s::draftsman.job_mode[],
               %(own_source)s::draftsman.channel[], %(own_source_type)s::draftsman.source_type[],
               %(own_external_event_id)s::text[], %(own_invoker_id)s::text[],
               %(own_invoker_display_name)s::text[], %(own_repo_host)s::text[], %(own_repo_owner)s::text[],
               %(own_repo_name)s::text[], %(own_ticket_url)s::text[], %(own_ticket_title)s::text[],
               %(own_ticket_text)s::text[], %(own_payload)s::jsonb[], %(own_overrides)s::jsonb[],
               %(own_requested_skills)s::text[], %(own_tags)s::text[], %(own_agent)s::text[],
               %(own_retry_of)s::bigint[], %(own_chain_length)s::int[], %(own_template)s::text[],
               %(own_template_version)s::int[], %(own_run_at)s::timestamptz[], %(own_delay)s::float8[], %(own_max_attempts)s::int[],
               %(own_max_retries)s::int[], %(own_on_lost)s::draftsman.on_lost[],
               %(own_has_targets)s::boolean[], %(own_hold)s::draftsman.job_hold[])
           WITH ORDINALITY AS w (
                 id, type, idempotency_key, request_digest, queue, priority, subject_key,
                 concurrency_key, mode, source, source_type, external_event_id, invoker_id, invoker_display_name,
                 repo_host, repo_owner, repo_name, ticket_url, ticket_title, ticket_text, payload, overrides,
                 requested_skills, tags, agent, retry_of, chain_length, template,
                 template_version, run_at, delay, max_attempts, max_retries, on_lost, has_targets, hold,
                 ordinal)

-- part: batch_requests
    INSERT INTO draftsman.job_requests AS r (number, id, type, idempotency_key, request_digest,
           mode, source, source_type, external_event_id, invoker_id, invoker_display_name,
           repo_host, repo_owner, repo_name, ticket_url, ticket_title, ticket_text, payload, overrides,
           requested_skills, tags, agent, retry_of, chain_length, template, template_version,
           created_at)
           OVERRIDING SYSTEM VALUE
    SELECT w.number, w.id, coalesce(w.type, c.type),
           coalesce(w.idempotency_key, c.idempotency_key, 'auto:' || w.id),
           coalesce(w.request_digest, c.request_digest), coalesce(w.mode, c.mode),
           coalesce(w.source, c.source), coalesce(w.source_type, c.source_type),
           coalesce(w.external_event_id, c.external_event_id),
           coalesce(w.invoker_id, c.invoker_id),
           coalesce(w.invoker_display_name, c.invoker_display_name),
           coalesce(w.repo_host, c.repo_host), coalesce(w.repo_owner, c.repo_owner), coalesce(w.repo_name, c.repo_name),
           coalesce(w.ticket_url, c.ticket_url), coalesce(w.ticket_title, c.ticket_title),
           coalesce(w.ticket_text, c.ticket_text), coalesce(w.payload, c.payload),
           coalesce(w.overrides, c.overrides),
           coalesce(w.requested_skills::text[], c.requested_skills),
           coalesce(w.tags::text[], c.tags), coalesce(w.agent, c.agent),
           coalesce(w.retry_of, c.retry_of), coalesce(w.chain_length, c.chain_length),
           coalesce(w.template, c.template), coalesce(w.template_version, c.template_version),
           w.now
      FROM fresh w
     CROSS JOIN shared c

-- Positions are defaults, in the order of the requests: no role but the owner may choose one.
-- part: batch_states
    INSERT INTO draftsman.job_states AS s (number, type, queue, priority, subject_key,
           concurrency_key, hold, status, run_at, max_attempts, max_retries, on_lost, has_targets,
           queued_at, updated_at)
    SELECT w.number, coalesce(w.type, c.type), coalesce(w.queue, c.queue),
           coalesce(w.priority, c.priority),
           coalesce(w.subject_key, c.subject_key),
           coalesce(w.concurrency_key, c.concurrency_key),
           coalesce(w.hold, c.hold, CASE WHEN coalesce(w.concurrency_key, c.concurrency_key)
                    IS NOT NULL THEN 'key'::draftsman.job_hold END),
           CASE WHEN w.due > w.now THEN 'scheduled' ELSE 'queued' END::draftsman.job_status, w.due,
           coalesce(w.max_attempts, c.max_attempts), coalesce(w.max_retries, c.max_retries),
           coalesce(w.on_lost, c.on_lost), coalesce(w.has_targets, c.has_targets, false),
           CASE WHEN w.due > w.now THEN NULL ELSE w.now END, w.now
      FROM fresh w
     CROSS JOIN shared c

-- The consequences of the changes of this transaction are applied at its commit.
-- name: postpone_until_commit
SELECT set_config('draftsman.postpone', 'commit', true)

-- A concurrent request with one of the subjects waits for the end of this transaction; the next
-- statement then sees its job. Subjects share 1,024 locks, because a batch may have more subjects than
-- the lock table of the server has room for; they are taken in order. 1146242648 is "DRFX" in ASCII.
-- name: lock_subjects
SELECT pg_advisory_xact_lock(1146242648, slot)
  FROM (SELECT DISTINCT hashtext(subject) & 1023 AS slot
          FROM unnest(%(subjects)s::text[]) AS w (subject)
         ORDER BY slot) s

-- A single request that cannot have a job: it has neither a key nor a subject. No row conflicts with
-- it, and ON CONFLICT costs a search of each unique index and a record of the log.
-- name: submit_plain
WITH request AS (
-- include: request
-- include: created

-- A single request that may have a job. If its job exists, or is being committed by a concurrent
-- duplicate, no row is returned.
-- name: submit_one
WITH request AS (
-- include: request
       AND (SELECT number FROM draftsman.job_requests
             WHERE type = %(type)s AND idempotency_key = %(idempotency_key)s
               AND NOT starts_with(idempotency_key, 'auto:')) IS NULL
       AND (SELECT number FROM draftsman.job_states
             WHERE subject_key = %(subject_key)s
               AND status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))
           IS NULL
        ON CONFLICT DO NOTHING
-- include: created

-- A batch of requests that cannot have a job: none has a key or a subject. All numbers are returned
-- in a row, and the positions of those that are scheduled for later.
-- name: submit_new
-- include: batch
), requests AS (
-- include: batch_requests
), states AS (
-- include: batch_states
     ORDER BY w.ordinal
    RETURNING s.queue, s.status
)
SELECT array_agg(w.number ORDER BY w.ordinal) AS numbers,
       array_agg(w.ordinal) FILTER (WHERE w.due > w.now) AS scheduled,
       (SELECT count(pg_notify('draftsman_jobs', queue))
          FROM (SELECT DISTINCT queue FROM states WHERE status = 'queued') q) AS notified
  FROM fresh w

-- Keys are inserted in sorted order, so that two batches cannot deadlock. IN … IS TRUE is a hashed
-- lookup, whatever the planner expects; a join could be a nested loop over a thousand rows.
-- part: keyed
-- include: batch
     WHERE (SELECT number FROM draftsman.job_requests
             WHERE type = coalesce(w.type, c.type)
               AND idempotency_key = coalesce(w.idempotency_key, c.idempotency_key)
               AND NOT starts_with(idempotency_key, 'auto:')) IS NULL
       AND (SELECT number FROM draftsman.job_states
             WHERE subject_key = coalesce(w.subject_key, c.subject_key)
               AND status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))
           IS NULL
), requests AS (
-- include: batch_requests
     ORDER BY w.type, w.idempotency_key
        ON CONFLICT DO NOTHING
    RETURNING r.number
), states AS (
-- include: batch_states
     WHERE (w.number IN (SELECT number FROM requests)) IS TRUE
     ORDER BY w.ordinal
    RETURNING s.number, s.queue, s.status
), created AS MATERIALIZED (
    SELECT w.ordinal, w.number, (w.due > w.now) IS TRUE AS scheduled
      FROM fresh w
     WHERE (w.number IN (SELECT number FROM states)) IS TRUE

-- part: keyed_result
)
SELECT ordinal, number, scheduled,
       (SELECT count(pg_notify('draftsman_jobs', queue))
          FROM (SELECT DISTINCT queue FROM states WHERE status = 'queued') q) AS notified
  FROM created

-- A batch of requests that may have jobs.
-- name: submit_keyed
-- include: keyed
-- include: keyed_result

-- The same with the targets of the new jobs: an array of targets for each request.
-- name: submit_with_targets
-- include: keyed
), targets AS (
    INSERT INTO draftsman.job_targets (job, ordinal, channel, target, thread, thread_key, kinds,
           outcomes)
    SELECT n.number, t.ordinal, t.channel, t.target, t.thread,
           'D-' || n.number || ' ' || t.channel || ':' || t.target
                || coalesce('/' || t.thread, ''),
           t.kinds, t.outcomes
      FROM created n
     CROSS JOIN LATERAL jsonb_to_recordset(%(targets)s::jsonb -> (n.ordinal - 1)::int) AS t (
           ordinal int, channel draftsman.channel, target text, thread text,
           kinds draftsman.delivery_kind[], outcomes draftsman.job_status[])
        ON CONFLICT (job, thread_key) DO NOTHING
-- include: keyed_result

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
      FROM unnest(%(jobs)s::bigint[], %(channels)s::draftsman.channel[], %(targets)s::text[])
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

-- The newest job with a unique key that a request repeats, of the last hundred with this key; and
-- the seconds until a debounced job starts in any case.
-- name: repeated
SELECT j.number, j.id, j.status, j.request_digest,
       extract(epoch FROM u.debounce_until - draftsman.now())::float8 AS debounce_left
  FROM (SELECT job, debounce_until FROM draftsman.unique_keys WHERE key = %(key)s ORDER BY job DESC LIMIT 100) u
 CROSS JOIN LATERAL (
       SELECT number, id, status, request_digest
         FROM draftsman.jobs
        WHERE number = u.job
          AND (%(seconds)s::float8 IS NULL
               OR created_at > draftsman.now() - make_interval(secs => %(seconds)s))
          AND (%(states)s = 'any'
               OR %(states)s = 'successful' AND status = 'completed'
               OR status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))
        LIMIT 1) j
 ORDER BY j.number DESC
 LIMIT 1

-- name: keep_unique_key
INSERT INTO draftsman.unique_keys (job, key, replaces, debounce_until)
SELECT %(job)s::bigint, %(key)s::text, %(replaces)s::bigint,
       CASE WHEN %(debounce_limit)s::float8 IS NOT NULL THEN coalesce(
            (SELECT debounce_until FROM draftsman.unique_keys WHERE job = %(replaces)s::bigint),
            draftsman.now() + make_interval(secs => %(debounce_limit)s::float8)) END

-- Jobs with an idempotency key, of each type that has keys, by the index of keys. A loose scan reads
-- an entry of each type.
-- name: of_idempotency_key
WITH RECURSIVE types AS (
    (SELECT type FROM draftsman.job_requests
      WHERE NOT starts_with(idempotency_key, 'auto:')
      ORDER BY type
      LIMIT 1)
     UNION ALL
    SELECT n.type
      FROM types t
     CROSS JOIN LATERAL (
           SELECT type FROM draftsman.job_requests
            WHERE NOT starts_with(idempotency_key, 'auto:') AND type > t.type
            ORDER BY type
            LIMIT 1) n
)
SELECT r.number
  FROM types t
 CROSS JOIN LATERAL (
       SELECT number FROM draftsman.job_requests
        WHERE NOT starts_with(idempotency_key, 'auto:') AND type = t.type
          AND idempotency_key = %(key)s
        LIMIT 1) r
 ORDER BY r.number DESC
 LIMIT %(limit)s
