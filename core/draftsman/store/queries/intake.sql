-- Requests become jobs.

-- One statement for one request or a thousand: the job, its event (by trigger), and the row that
-- was there before. Keys are inserted in sorted order, so that two batches cannot deadlock;
-- numbers and positions follow the order of the request.
-- name: submit
WITH wanted AS MATERIALIZED (
    SELECT r.*, w.ordinal
      FROM jsonb_array_elements(%(rows)s::jsonb) WITH ORDINALITY AS w (item, ordinal)
     CROSS JOIN LATERAL jsonb_to_record(w.item) AS r (
           id uuid, type text, idempotency_key text, request_digest text, queue text,
           priority int, subject_key text, mode draftsman.job_mode, source draftsman.channel,
           source_type draftsman.source_type, external_event_id text, invoker_id text,
           invoker_display_name text, repo_owner text, repo_name text, ticket_url text,
           ticket_title text, ticket_text text, payload jsonb, overrides jsonb,
           requested_skills text[], tags text[], agent text, retry_of bigint, chain_length int,
           run_at timestamptz, delay float8, max_attempts int, max_retries int,
           on_lost draftsman.on_lost, has_targets boolean)
), known AS MATERIALIZED (
    SELECT w.ordinal, j.number, j.id, j.status, j.request_digest, j.same_key
      FROM wanted w
     CROSS JOIN LATERAL (
           SELECT number, id, status, request_digest, true AS same_key
             FROM draftsman.jobs
            WHERE type = w.type AND idempotency_key = w.idempotency_key
            UNION ALL
           SELECT number, id, status, request_digest, false
             FROM draftsman.jobs
            WHERE subject_key = w.subject_key
              AND status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired')
            ORDER BY same_key DESC
            LIMIT 1) j
), fresh AS MATERIALIZED (
    SELECT w.*, nextval('draftsman.jobs_number_seq') AS number,
           nextval('draftsman.job_positions') AS position
      FROM (SELECT * FROM wanted ORDER BY ordinal) w
     WHERE NOT EXISTS (SELECT FROM known k WHERE k.ordinal = w.ordinal)
), context AS MATERIALIZED (
    SELECT set_config('draftsman.actor', %(actor)s, true),
           set_config('draftsman.detail', '', true)  -- of what led to it, earlier in a transaction
), made AS (
    INSERT INTO draftsman.jobs (number, id, type, idempotency_key, request_digest, queue, priority,
           position, subject_key, status, mode, source, source_type, external_event_id,
           invoker_id, invoker_display_name, repo_owner, repo_name, ticket_url, ticket_title,
           ticket_text, payload, overrides, requested_skills, tags, agent, retry_of,
           chain_length, run_at, max_attempts, max_retries, on_lost, has_targets, queued_at)
           OVERRIDING SYSTEM VALUE
    SELECT w.number, w.id, w.type, w.idempotency_key, w.request_digest, w.queue, w.priority,
           w.position, w.subject_key,
           CASE WHEN t.run_at > draftsman.now() THEN 'scheduled' ELSE 'queued'
           END::draftsman.job_status,
           w.mode, w.source, w.source_type, w.external_event_id, w.invoker_id,
           w.invoker_display_name, w.repo_owner, w.repo_name, w.ticket_url, w.ticket_title,
           w.ticket_text, w.payload, w.overrides, w.requested_skills, w.tags, w.agent,
           w.retry_of, w.chain_length, t.run_at, w.max_attempts, w.max_retries, w.on_lost,
           coalesce(w.has_targets, false),
           CASE WHEN t.run_at > draftsman.now() THEN NULL ELSE draftsman.now() END
      FROM fresh w
     CROSS JOIN context
     CROSS JOIN LATERAL (
           SELECT coalesce(w.run_at, draftsman.now() + make_interval(secs => w.delay)) AS run_at) t
     ORDER BY w.type, w.idempotency_key
        ON CONFLICT DO NOTHING
    RETURNING number, id, status, queue, request_digest
)
SELECT NULL::bigint AS ordinal, number, id, status, request_digest, 'created' AS how,
       CASE WHEN status = 'queued' THEN pg_notify('draftsman_jobs', queue)::text END AS told
  FROM made
 UNION ALL
SELECT ordinal, number, id, status, request_digest,
       CASE WHEN same_key THEN 'deduplicated' ELSE 'joined' END, NULL
  FROM known
