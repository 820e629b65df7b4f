-- Jobs: submission, the state machine, cancels and pauses, messages and attachments, and runs.

INSERT INTO draftsman.schema_functions (name) VALUES ('jobs')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Jobs as they are read ---------------------------------------------------------------------------

-- The jobs as they are read: the request of each with its state.
CREATE OR REPLACE VIEW draftsman.jobs AS
    SELECT number, r.id, r.type, r.idempotency_key, r.request_digest, s.queue, s.priority,
           s.position, s.subject_key, s.concurrency_key, s.hold, s.limits, s.held_by, s.status,
           s.claimed_from, r.mode, r.source, r.source_type, r.external_event_id, r.invoker_id,
           r.invoker_display_name, r.repo_host, r.repo_owner, r.repo_name, r.ticket_url,
           r.ticket_title, r.ticket_text, r.payload, r.overrides, r.requested_skills, r.tags,
           r.agent, r.retry_of, r.chain_length, r.template, r.template_version, s.run_at,
           s.run_count, s.attempts, s.max_attempts, s.retry_count, s.max_retries, s.next_retry_at,
           s.last_error, s.error_class, s.on_lost, s.worker_id, s.lease_token,
           s.cancel_requested_at, s.cancel_requested_by, s.cancel_reason, s.pr_url, s.result,
           s.has_targets, s.version, r.created_at, s.queued_at, s.claimed_at, s.started_at,
           s.finished_at, s.updated_at
      FROM draftsman.job_states s
      JOIN draftsman.job_requests r USING (number);

-- The files that a job gets. Files that it shares with another job, or has from several, are
-- refused for it beyond the limit of a job; those that were stored first remain.
CREATE OR REPLACE VIEW draftsman.job_files AS
    SELECT f.job, f.ordinal, f.message, f.id, f.name, f.media_type,
           CASE WHEN f.over THEN 'refused' ELSE f.status END AS status,
           CASE WHEN f.over THEN draftsman.sentence('jobs.most_file_bytes')::text
                ELSE f.reason END AS reason,
           CASE WHEN NOT f.over THEN f.size END AS size,
           CASE WHEN NOT f.over THEN f.sha256 END AS sha256, f.created_at
      FROM (SELECT j.job, j.ordinal, j.message, a.*, a.size IS NOT NULL AND sum(a.size) OVER (
                       PARTITION BY j.job ORDER BY a.ended_at, j.ordinal) > 26214400 AS over
              FROM draftsman.job_attachments j
              JOIN draftsman.attachments a ON a.id = j.attachment) f;

-- Submission --------------------------------------------------------------------------------------

-- Guards and triggers of a statement rather than of each row: a WHEN clause is parsed again for
-- each statement, and a BEFORE trigger looks at each row once more. A session plans the statements
-- of a trigger once, maybe when a table is empty: rows are looked up by index (enable_seqscan).
--
-- The state of a single job is looked up. Those of a batch are read as a range of numbers, in which
-- only rows of concurrent batches are not of this batch, and the payload of the event is built once
-- for all jobs that share it. As in record_transitions(), the CASE keeps the full join, which is
-- never a nested loop. A job that is retried is looked up here because a foreign key would queue a
-- trigger for each row.
CREATE OR REPLACE FUNCTION draftsman.record_creation() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET enable_seqscan = off AS $$
DECLARE
    wrong  record;
    role   text := draftsman.session_kind();
    who    text;
    detail jsonb := '{}';
BEGIN
    IF role = 'owner' THEN  -- as session_actor(), whose expression is initialized for each call
        who := coalesce(nullif(current_setting('draftsman.actor', true), ''), session_user);
    ELSE
        who := coalesce(draftsman.session_actor(), session_user);
    END IF;
    IF role IN ('owner', 'worker') AND current_setting('draftsman.detail', true) <> '' THEN
        detail := current_setting('draftsman.detail');
    END IF;
    INSERT INTO draftsman.job_events (job, kind, to_status, actor, payload)
    SELECT n.number, 'job_created', s.status, who,
           jsonb_strip_nulls(jsonb_build_object('type', n.type, 'source', n.source,
               'mode', n.mode, 'agent', n.agent, 'repo_name', n.repo_name,
               'retry_of', n.retry_of)) || detail
      FROM new_requests n
      LEFT JOIN LATERAL (
           SELECT * FROM draftsman.job_states WHERE number = n.number LIMIT 1) s ON true
     WHERE (SELECT count(*) FROM new_requests) = 1
       AND CASE
           WHEN draftsman.is_new_job(n::draftsman.job_requests, s::draftsman.job_states)
            AND (n.retry_of IS NULL
                 OR (SELECT number FROM draftsman.job_requests WHERE number = n.retry_of) > 0)
            AND (n.template_version IS NULL
                 OR draftsman.is_template(n.template, n.template_version))
            THEN true
           ELSE draftsman.refuse_creation(n, s) END;
    IF NOT FOUND THEN
        INSERT INTO draftsman.job_events (job, jobs, kind, to_status, actor, payload)
        SELECT CASE WHEN g.count = 1 THEN g.first ELSE g.block END,
               CASE WHEN g.count > 1 THEN g.jobs END, 'job_created', g.status, who, g.payload
          FROM (SELECT draftsman.event_block(n.number) AS block, count(*), min(n.number) AS first,
                       array_agg(n.number) AS jobs, s.status,
                       jsonb_strip_nulls(jsonb_build_object('type', n.type, 'source', n.source,
                           'mode', n.mode, 'agent', n.agent, 'repo_name', n.repo_name,
                           'retry_of', n.retry_of)) || detail AS payload
                  FROM new_requests n
                  FULL JOIN (
                       SELECT * FROM draftsman.job_states
                        WHERE number BETWEEN (SELECT min(number) FROM new_requests)
                                         AND (SELECT max(number) FROM new_requests)) s
                    ON s.number = n.number
                 WHERE CASE
                       WHEN n.number IS NULL THEN false
                       WHEN draftsman.is_new_job(n::draftsman.job_requests, s::draftsman.job_states)
                        AND (n.retry_of IS NULL
                             OR (SELECT number FROM draftsman.job_requests
                                  WHERE number = n.retry_of) > 0)
                        AND (n.template_version IS NULL
                             OR draftsman.is_template(n.template, n.template_version))
                        THEN true
                       ELSE draftsman.refuse_creation(n, s) END
                 GROUP BY block, s.status, n.type, n.source, n.mode, n.agent, n.repo_name,
                          n.retry_of) g
         ORDER BY g.block;
    END IF;
    IF role <> 'owner' THEN
        SELECT n.invoker_id AS invoker, draftsman.forged_column(j.job) AS forged INTO wrong
          FROM new_requests n
         CROSS JOIN LATERAL (
               SELECT j AS job FROM draftsman.jobs j WHERE j.number = n.number LIMIT 1) j
         WHERE n.number NOT BETWEEN 1 AND (SELECT last_value FROM draftsman.job_requests_number_seq)
            OR draftsman.forged_column(j.job) IS NOT NULL
            OR draftsman.may_submit(j.job, role, who) IS NOT TRUE
         LIMIT 1;
        IF FOUND THEN
            PERFORM draftsman.deny_access(
                CASE WHEN wrong.forged IS NOT NULL THEN 'jobs.column' ELSE 'jobs.submit' END,
                jsonb_build_object('column', wrong.forged, 'actor', who, 'person', wrong.invoker));
        END IF;
        INSERT INTO draftsman.unlinked_jobs (job)
        SELECT n.number FROM new_requests n
         WHERE (SELECT s.hold FROM draftsman.job_states s WHERE s.number = n.number) = 'parents';
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_requests_inserted AFTER INSERT ON draftsman.job_requests
    REFERENCING NEW TABLE AS new_requests FOR EACH STATEMENT
    EXECUTE FUNCTION draftsman.record_creation();

-- The name of the rule that a request violates; see violated_rule().
CREATE OR REPLACE FUNCTION draftsman.violated_request_rule(r draftsman.job_requests) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN CASE
    WHEN NOT (r.chain_length BETWEEN 0 AND 1000) THEN 'job_requests_chain_length_check'
    WHEN NOT (r.idempotency_key <> '') THEN 'job_requests_idempotency_key_check'
    WHEN NOT (r.mode IS NOT NULL OR (r.type <> 'run_agent' AND r.agent IS NULL))
        THEN 'job_requests_mode'
    WHEN NOT ((r.template IS NULL) = (r.template_version IS NULL)) THEN 'job_requests_template'
    WHEN NOT (r.type <> '') THEN 'job_requests_type_check'
END;

-- Whether a request and its state are those of a new job.
CREATE OR REPLACE FUNCTION draftsman.is_new_job(
    r draftsman.job_requests, s draftsman.job_states
) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    draftsman.violated_request_rule(r) IS NULL AND s.type = r.type
    AND s.status IN ('scheduled', 'queued') AND s.version = 1 AND s.run_count = 0
    AND s.attempts = 0 AND s.retry_count = 0 AND s.cancel_requested_at IS NULL
    AND (NOT starts_with(r.idempotency_key, 'auto:') OR r.idempotency_key = 'auto:' || r.id);

CREATE OR REPLACE FUNCTION draftsman.refuse_creation(
    r draftsman.job_requests, s draftsman.job_states
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    violated text := draftsman.violated_request_rule(r);
BEGIN
    IF violated IS NOT NULL THEN
        PERFORM draftsman.refuse('23514', 'jobs.constraint', jsonb_build_object(
                    'job', r.number, 'table', 'job_requests', 'constraint', violated));
    END IF;
    PERFORM draftsman.refuse('DM001', CASE
        WHEN s.number IS NULL THEN 'jobs.no_state'
        WHEN s.type <> r.type THEN 'jobs.type_of_state'
        WHEN starts_with(r.idempotency_key, 'auto:') AND r.idempotency_key <> 'auto:' || r.id
        THEN 'jobs.generated_key'
        WHEN r.retry_of IS NOT NULL AND NOT EXISTS (
             SELECT FROM draftsman.job_requests WHERE number = r.retry_of)
        THEN 'jobs.no_retried_job'
        WHEN r.template_version IS NOT NULL
             AND NOT draftsman.is_template(r.template, r.template_version) THEN 'jobs.no_template'
        ELSE 'jobs.not_new' END,
        jsonb_build_object('job', r.number, 'type', r.type, 'type_of_state', s.type,
                           'status', s.status, 'key', r.idempotency_key, 'retry_of', r.retry_of,
                           'template', r.template, 'version', r.template_version));
    RETURN false;
END $$;

-- The name of the repository of a request, `host/owner/name` in lower case: two spellings are one
-- repository. Empty without a repository.
CREATE OR REPLACE FUNCTION draftsman.repo_of(r draftsman.job_requests) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    lower(concat_ws('/', r.repo_host, r.repo_owner, r.repo_name));

-- Whether a repository, with or without its host, is one of these, `owner/name` or `name` in lower
-- case. What belongs to no repository belongs to any. Restricted, as `is_job_of`: lists read few
-- rows, in the order of an index, and parallel workers would read more.
CREATE OR REPLACE FUNCTION draftsman.is_repo_of(repo text, repos text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL RESTRICTED RETURN
    coalesce(repo, '') = '' OR EXISTS (
        SELECT FROM unnest(repos) AS r (name)
         WHERE right('/' || lower(repo), length(r.name) + 1) = '/' || r.name);

-- Whether a job belongs to one of these repositories.
CREATE OR REPLACE FUNCTION draftsman.is_job_of(job bigint, repos text[]) RETURNS boolean
LANGUAGE sql STABLE PARALLEL RESTRICTED RETURN
    job IS NULL OR EXISTS (
        SELECT FROM draftsman.job_requests r
         WHERE r.number = job AND draftsman.is_repo_of(draftsman.repo_of(r), repos));

-- Permission to submit a job: a person submits own requests, a bot requests of people in its
-- channels, a worker retries of lost jobs, the jobs of schedules and follow-ups on pull requests. A
-- retry repeats the earlier request under the key of its chain, on behalf of the person who made
-- that request or of an operator.
CREATE OR REPLACE FUNCTION draftsman.may_submit(
    job draftsman.jobs, kind text, actor text
) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text := draftsman.person_of_actor(actor);
BEGIN
    IF job.retry_of IS NOT NULL AND NOT EXISTS (
        SELECT FROM draftsman.jobs o
         WHERE o.number = job.retry_of AND o.finished_at IS NOT NULL
           AND (kind = 'worker' OR o.invoker_id IN (person, actor)
                OR draftsman.has_role(person, 'operator'))
           AND job.idempotency_key = 'retry:' || CASE WHEN o.retry_of IS NULL THEN o.number::text
               ELSE split_part(o.idempotency_key, ':', 2) END || ':' || (o.chain_length + 1)
           AND job.chain_length = o.chain_length + 1
           AND job.overrides - 'answers' = o.overrides - 'answers'
           AND (job.type, job.payload, job.request_digest, job.agent, job.mode, job.repo_host,
                job.repo_owner, job.repo_name, job.ticket_url, job.ticket_title,
                job.ticket_text, job.template, job.template_version) IS NOT DISTINCT FROM
               (o.type, o.payload, o.request_digest, o.agent, o.mode, o.repo_host, o.repo_owner,
                o.repo_name, o.ticket_url, o.ticket_title, o.ticket_text, o.template,
                o.template_version)) THEN
        RETURN false;
    END IF;
    IF kind = 'worker' THEN
        RETURN CASE WHEN job.retry_of IS NOT NULL THEN job.source = 'internal'
               WHEN job.source = 'internal'
               THEN draftsman.is_spawned(job.idempotency_key, job.invoker_id)
               WHEN job.source = 'forge'
               THEN draftsman.is_follow_up(job.idempotency_key, job.invoker_id)
               ELSE job.source = 'schedule'
                AND draftsman.is_scheduled(job.idempotency_key, job.invoker_id) END;
    END IF;
    RETURN kind IN ('person', 'bot') AND draftsman.may_act_as(job.source || ':' ||
               substr(actor, strpos(actor, ':') + 1))
       AND job.invoker_id = person
       AND (job.retry_of IS NOT NULL OR (draftsman.has_role(person, 'invoker')
            AND job.idempotency_key !~ '^(retry|schedule|spawn|follow-up):'));
END $$;

-- The column with a value that no program stores for a request, NULL without any. It is evaluated
-- for every session but the owner's, whose programs check the same (draftsman.jobs.requests). The
-- clock, the position and the state belong to the database: the roles may insert only the columns
-- of a request.
CREATE OR REPLACE FUNCTION draftsman.forged_column(job draftsman.jobs) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN job.created_at <> draftsman.now() THEN 'created_at'
        WHEN job.updated_at <> draftsman.now() THEN 'updated_at'
        WHEN job.queued_at <> draftsman.now() THEN 'queued_at'
        WHEN job.run_at NOT BETWEEN '1970-01-01Z' AND '2201-01-02Z' THEN 'run_at'
        WHEN (job.status = 'scheduled') <> coalesce(job.run_at > draftsman.now(), false)
            THEN 'status'
        WHEN job.priority NOT BETWEEN -1000 AND 1000 THEN 'priority'
        WHEN job.hold = 'paused' THEN 'hold'
        WHEN job.chain_length > 0 AND job.retry_of IS NULL THEN 'chain_length'
        WHEN char_length(job.type) > 100 THEN 'type'
        WHEN char_length(job.idempotency_key) > 600 THEN 'idempotency_key'
        WHEN char_length(job.request_digest) > 64 THEN 'request_digest'
        WHEN char_length(job.queue) > 63 THEN 'queue'
        WHEN char_length(job.subject_key) > 500 THEN 'subject_key'
        WHEN char_length(job.concurrency_key) > 4000 THEN 'concurrency_key'
        WHEN char_length(job.external_event_id) > 500 THEN 'external_event_id'
        WHEN char_length(job.invoker_display_name) > 200 THEN 'invoker_display_name'
        WHEN char_length(job.repo_host) > 4000 THEN 'repo_host'
        WHEN char_length(job.repo_owner) > 4000 THEN 'repo_owner'
        WHEN char_length(job.repo_name) > 4000 THEN 'repo_name'
        WHEN char_length(job.ticket_url) > 2000 THEN 'ticket_url'
        WHEN char_length(job.ticket_title) > 500 THEN 'ticket_title'
        WHEN char_length(job.ticket_text) > 200000 THEN 'ticket_text'
        WHEN char_length(job.agent) > 100 THEN 'agent'
        WHEN draftsman.has_long_texts(job.requested_skills, 100, 200) THEN 'requested_skills'
        WHEN draftsman.has_long_texts(job.tags, 100, 200) THEN 'tags'
        WHEN draftsman.is_document(job.payload, 3145728) IS NOT TRUE THEN 'payload'
        WHEN draftsman.is_document(job.overrides, 3145728) IS NOT TRUE THEN 'overrides' END
$$;

-- The rules of a state; and its request, instead of a foreign key, which looks up the request of
-- each row in a query of its own.
CREATE OR REPLACE FUNCTION draftsman.check_request() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET enable_seqscan = off AS $$
DECLARE
    wrong bigint; keyed boolean;
BEGIN
    SELECT min(n.number) FILTER (WHERE
               draftsman.refuse_state(n.number, draftsman.violated_rule(n::draftsman.job_states))
            OR (SELECT number FROM draftsman.job_requests WHERE number = n.number) IS NULL),
           bool_or(n.concurrency_key IS NOT NULL AND n.hold IS DISTINCT FROM 'parents')
      INTO wrong, keyed FROM new_states n;
    IF wrong IS NOT NULL THEN
        PERFORM draftsman.refuse('DM001', 'jobs.no_request', jsonb_build_object('job', wrong));
    END IF;
    IF keyed AND EXISTS (SELECT FROM new_states n
                          WHERE n.concurrency_key IS NOT NULL AND n.hold IS NULL) THEN
        PERFORM draftsman.deny_access('jobs.waits_for_key');
    END IF;
    IF keyed OR EXISTS (SELECT FROM draftsman.limits) THEN
        PERFORM draftsman.place_jobs(array_agg(n.number), array_agg(n.concurrency_key) FILTER (
                    WHERE n.concurrency_key IS NOT NULL AND n.hold IS DISTINCT FROM 'parents'))
           FROM new_states n;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_states_inserted AFTER INSERT ON draftsman.job_states
    REFERENCING NEW TABLE AS new_states FOR EACH STATEMENT
    EXECUTE FUNCTION draftsman.check_request();

-- A key is stored with its request, before anything happens to the job, and after the end of a job
-- that it replaces: no session but the owner's gives a key to an earlier job, which requests would
-- then join.
CREATE OR REPLACE FUNCTION draftsman.check_unique_key() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM draftsman.job_states s
      WHERE s.number = NEW.job AND s.version = 1 AND s.status IN ('scheduled', 'queued');
    IF NOT FOUND OR draftsman.session_kind() <> 'owner' AND (
           (SELECT r.created_at FROM draftsman.job_requests r WHERE r.number = NEW.job)
               <> draftsman.now()
        OR (SELECT s.status = 'canceled' AND s.finished_at = draftsman.now()
              FROM draftsman.job_states s WHERE s.number = NEW.replaces) IS NOT TRUE
           AND NEW.replaces IS NOT NULL
        OR char_length(NEW.key) > 1200
        OR NEW.debounce_until > draftsman.now() + interval '367 days') THEN
        PERFORM draftsman.refuse('DM001', 'jobs.late_unique_key', jsonb_build_object(
                    'job', NEW.job));
    END IF;
    IF NEW.debounce_until IS NOT NULL AND (
           (SELECT s.run_at FROM draftsman.job_states s WHERE s.number = NEW.job)
               > NEW.debounce_until
        OR (SELECT k.debounce_until < NEW.debounce_until OR k.debounce_until <= draftsman.now()
              FROM draftsman.unique_keys k WHERE k.job = NEW.replaces)) THEN
        PERFORM draftsman.refuse('DM001', 'jobs.debounce', jsonb_build_object('job', NEW.job));
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER unique_keys_inserted AFTER INSERT ON draftsman.unique_keys FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_unique_key();

-- Records a request that joined the live job of its subject: once for each key, and once for each
-- person and digest, so that a repeated request has a single event; at most 200 events a job.
CREATE OR REPLACE FUNCTION draftsman.join_request(
    job bigint, actor text, request jsonb
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.may_act_as(actor) AND (
           draftsman.session_kind() = 'bot'  -- also for a board
           OR (draftsman.has_role(draftsman.person_of_actor(actor), 'invoker')
               AND request ->> 'requester' = draftsman.person_of_actor(actor)))) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('jobs.join', jsonb_build_object('actor', actor, 'job', job));
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT job, 'request_joined', actor, request
     WHERE (SELECT count(*) < 200
               AND count(*) FILTER (WHERE e.payload -> 'key' = request -> 'key'
                   OR (e.payload -> 'digest', e.payload -> 'requester')
                      = (request -> 'digest', request -> 'requester')) = 0
              FROM draftsman.events e
             WHERE e.job = join_request.job AND e.kind = 'request_joined');
END $$;

-- Copies the newest checkpoint and its work bundle to a retry or a follow-up, as those of a run
-- before its first.
CREATE OR REPLACE FUNCTION draftsman.inherit_checkpoint(old bigint, new bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latest draftsman.job_checkpoints;
    copied bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.jobs j
                    WHERE j.number = new AND j.run_count = 0
                      AND (j.retry_of = old OR draftsman.follows_up(old, new)))
       OR EXISTS (SELECT FROM draftsman.job_checkpoints c WHERE c.job = new) THEN
        RETURN false;
    END IF;
    SELECT * INTO latest FROM draftsman.job_checkpoints c
     WHERE c.job = old
       AND (c.bundle IS NULL
            OR (SELECT a.kind FROM draftsman.artifacts a WHERE a.id = c.bundle) = 'bundle')
     ORDER BY c.id DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.artifacts (job, run, name, kind, size, sha256)
    SELECT new, 0, a.name, a.kind, a.size, a.sha256
      FROM draftsman.artifacts a WHERE a.id = latest.bundle
    RETURNING id INTO copied;
    INSERT INTO draftsman.artifact_chunks (artifact, seq, data)
    SELECT copied, k.seq, k.data FROM draftsman.artifact_chunks k WHERE k.artifact = latest.bundle;
    INSERT INTO draftsman.job_checkpoints (job, run, data, bundle)
    VALUES (new, 0, latest.data, copied);
    RETURN true;
END $$;

-- State machine -----------------------------------------------------------------------------------

-- Checks the changes of jobs, records their events, and does all that follows from them. The events
-- that differ only in their job are in a single row, and so are those of a fused transition.
--
-- A session plans the statements of a trigger once, for the first batch that it sees, and the plan
-- has to fit every later batch. A full join is a hash or merge join, never a nested loop; `number`
-- is immutable, so each new row has its old row and the full join is an inner join. The CASE keeps
-- the planner from replacing it by an inner join. Runs and questions are looked up by index
-- (enable_seqscan). JIT is off because PostgreSQL before 18 adds 1e10 to the cost of a disabled
-- node and would compile the plan: 0.5 to 1.6 s for a change of 1 ms.
CREATE OR REPLACE FUNCTION draftsman.record_transitions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET enable_seqscan = off AS $$
DECLARE
    who      text;
    detail   jsonb := coalesce(nullif(current_setting('draftsman.detail', true), ''), '{}');
    notified CONSTANT int := 1;
    keyed    CONSTANT int := 2;
    limited  CONSTANT int := 4;
    queued   CONSTANT int := 8;
    parents  CONSTANT int := 16;
    reserved CONSTANT int := 32;
    failed   CONSTANT int := 64;
    needed   int;
    ended    bigint[]; waiting bigint[]; keys text[]; buckets text[]; changes int[]; waited text[];
    arrived  bigint[]; jobs bigint[];
BEGIN
    -- a worker sets no actor, and PL/pgSQL prepares an expression again for each transaction
    IF coalesce(current_setting('draftsman.actor', true), '') <> ''
       OR draftsman.session_kind() = 'person' THEN
        who := draftsman.session_actor();
    END IF;
    WITH changed AS (
        SELECT n.number, draftsman.event_block(n.number) AS block,
               CASE WHEN 'running' IN (o.status, n.status) THEN n.run_count END AS run,
               CASE WHEN n.version = o.version + 2 THEN 'job_started'
                    WHEN n.status = 'completed' THEN 'job_completed'
               ELSE draftsman.transition_kind(o.status, n.status) END AS kind,
               o.status AS from_status, n.status AS to_status,
               CASE WHEN n.status = 'canceled' AND n.cancel_requested_by = 'system' THEN 'system'
               ELSE coalesce(who, 'worker:' || coalesce(n.worker_id, o.worker_id),
                             session_user) END AS actor,
               CASE WHEN n.status IN ('running', 'claimed', 'queued', 'resumed')
                         OR n.status = 'completed' AND (n.result ? 'summary') IS NOT TRUE
                    THEN detail
               ELSE draftsman.transition_details(n.number, n.status, n.result, n.last_error,
                    n.error_class, n.attempts, n.retry_count, n.next_retry_at, n.run_at,
                    n.cancel_reason, n.cancel_requested_by) || detail END AS payload
          FROM new_states n
          FULL JOIN old_states o ON o.number = n.number
         WHERE CASE
               WHEN draftsman.refuse_state(
                    n.number, draftsman.violated_rule(n::draftsman.job_states)) THEN false
               WHEN o.status = n.status AND n.version = o.version
                    AND n.lease_token IS NOT DISTINCT FROM o.lease_token
                   THEN o.finished_at IS NOT NULL AND draftsman.refuse_finished_job(n.number)
               WHEN n.status = 'running' AND o.status IN ('queued', 'resumed')
                    AND n.version = o.version + 2 THEN true
               WHEN n.status = 'completed' AND o.status = 'running'
                    AND n.version = o.version + 1
                   THEN n.result_token = o.lease_token OR draftsman.refuse_inconsistency(
                       n.number, 'jobs.result_of_run')
               ELSE draftsman.check_transition(n.number, o.status, n.status, o.version, n.version,
                    o.claimed_from, o.run_count, n.lease_token = o.lease_token)
               END
           AND CASE
               WHEN (n.status = 'running') <> ((
                   SELECT r.job FROM draftsman.job_runs r
                    WHERE r.job = n.number AND r.status = 'running') IS NOT NULL)
                   THEN draftsman.refuse_inconsistency(n.number, 'jobs.open_run')
               WHEN (n.status IN ('waiting_for_input', 'waiting_for_approval')) <> ((
                   SELECT q.job FROM draftsman.job_questions q
                    WHERE q.job = n.number AND q.status = 'open' LIMIT 1) IS NOT NULL)
                   THEN draftsman.refuse_inconsistency(n.number, 'jobs.open_questions')
               ELSE true
               END
    )
    INSERT INTO draftsman.job_events (job, run, kind, from_status, to_status, actor, payload, jobs)
    SELECT CASE WHEN count(*) = 1 THEN min(number) ELSE block END, run, kind, from_status,
           to_status, actor, payload, CASE WHEN count(*) > 1 THEN array_agg(number) END
      FROM changed
     GROUP BY block, run, kind, from_status, to_status, actor, payload;

    -- a single aggregate: PostgreSQL looks up each of them again for each statement
    SELECT bit_or(
           CASE WHEN has_targets OR status IN ('waiting_for_input', 'resumed', 'dead_letter')
                THEN notified ELSE 0 END
           | CASE WHEN concurrency_key IS NOT NULL THEN keyed ELSE 0 END
           | CASE WHEN limits IS NULL THEN 0
                  WHEN status IN ('queued', 'resumed') THEN limited | queued ELSE limited END
           | CASE WHEN has_children AND finished_at IS NOT NULL THEN parents ELSE 0 END
           | CASE WHEN status IN ('failed', 'dead_letter') THEN failed ELSE 0 END
           | CASE WHEN EXISTS (SELECT FROM draftsman.queue_reservations) THEN reserved ELSE 0 END)
      INTO needed FROM new_states;
    IF coalesce(needed, 0) = 0 THEN
        RETURN NULL;
    END IF;
    IF needed & failed <> 0 THEN
        INSERT INTO draftsman.open_failures (job, status)
        SELECT number, status FROM new_states
         WHERE status IN ('failed', 'dead_letter') AND error_class IS DISTINCT FROM 'DENIED';
    END IF;
    IF needed & parents <> 0 THEN
        SELECT array_agg(number) INTO ended
          FROM new_states WHERE has_children AND finished_at IS NOT NULL;
    END IF;
    IF needed & keyed <> 0 THEN
        SELECT array_agg(n.number) INTO waiting
          FROM new_states n
          FULL JOIN old_states o ON o.number = n.number
         WHERE CASE WHEN n.concurrency_key IS NOT NULL AND n.status <> o.status
               THEN n.status IN ('waiting_for_input', 'waiting_for_approval') END;
        SELECT array_agg(n.concurrency_key) INTO keys
          FROM new_states n
          FULL JOIN old_states o ON o.number = n.number
         WHERE CASE WHEN n.finished_at IS NOT NULL
               THEN o.finished_at IS NULL AND o.hold IS DISTINCT FROM 'parents'
               WHEN n.status IN ('queued', 'resumed') THEN (n.status, n.priority, n.position)
                    <> (o.status, o.priority, o.position)
               ELSE n.status <> 'scheduled' AND n.hold = 'key' AND o.hold IS NULL END;
    END IF;
    IF needed & limited <> 0 THEN  -- a claim keeps its places
        SELECT array_agg(c.bucket), array_agg(c.change) INTO buckets, changes
          FROM (SELECT b AS bucket, sum(p.change)::int AS change
                  FROM (SELECT limits, sum(change) AS change
                          FROM (SELECT n.limits, 1 AS change FROM new_states n
                                 WHERE draftsman.has_place(n::draftsman.job_states)
                                 UNION ALL
                                SELECT o.limits, -1 FROM old_states o
                                 WHERE draftsman.has_place(o::draftsman.job_states)) h
                         GROUP BY limits HAVING sum(change) <> 0) p
                 CROSS JOIN LATERAL unnest(p.limits) b
                 GROUP BY b HAVING sum(p.change) <> 0) c;
        IF needed & queued <> 0 THEN
            SELECT array_agg(DISTINCT n.held_by) FILTER (WHERE draftsman.begins_to_wait(
                       o::draftsman.job_states, n::draftsman.job_states)),
                   array_agg(n.number) FILTER (WHERE draftsman.has_arrived(
                       o::draftsman.job_states, n::draftsman.job_states))
              INTO waited, arrived
              FROM new_states n FULL JOIN old_states o ON o.number = n.number;
        END IF;
    END IF;
    IF needed & reserved <> 0 THEN  -- a job that asked for places has them now, or waits for them
        SELECT array_agg(number) INTO jobs FROM new_states;
    END IF;
    IF num_nonnulls(ended, waiting, keys, buckets, waited, arrived, jobs) > 0 THEN
        PERFORM draftsman.follow_transitions(
            ended, waiting, keys, buckets, changes, waited, arrived, jobs);
    END IF;
    IF needed & notified <> 0 THEN
        PERFORM draftsman.enqueue_deliveries(o::draftsman.job_states, n::draftsman.job_states)
           FROM new_states n
           FULL JOIN old_states o ON o.number = n.number
          WHERE CASE WHEN n.status <> o.status
                THEN n.has_targets OR n.status IN ('resumed', 'dead_letter')
                     OR (o.status = 'waiting_for_approval' AND n.status = 'waiting_for_input') END;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_states_updated AFTER UPDATE ON draftsman.job_states
    REFERENCING OLD TABLE AS old_states NEW TABLE AS new_states FOR EACH STATEMENT
    EXECUTE FUNCTION draftsman.record_transitions();

-- Whether a held state violates the rule of its hold. PL/pgSQL is not inlined; see
-- transition_kind().
CREATE OR REPLACE FUNCTION draftsman.violates_hold(
    hold draftsman.job_hold, held_by text, status draftsman.job_status, run_count int,
    concurrency_key text, limits text[]
) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE hold
        WHEN 'parents' THEN run_count > 0 OR status NOT IN ('queued', 'scheduled')
        WHEN 'key' THEN concurrency_key IS NULL OR status NOT IN ('scheduled', 'queued', 'resumed',
             'waiting_for_input', 'waiting_for_approval')
        ELSE status NOT IN ('queued', 'resumed') OR CASE hold
             WHEN 'limit' THEN held_by IS NULL OR coalesce(limits, '{}') = '{}'
             ELSE concurrency_key IS NOT NULL OR limits <> '{}' END END;
END $$;

-- The name of the rule that a state violates. A CHECK constraint is parsed again for each
-- statement, a third of the fixed cost of a claim; these rules are in plans of triggers, which a
-- session keeps.
CREATE OR REPLACE FUNCTION draftsman.violated_rule(s draftsman.job_states) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN CASE
    WHEN NOT (s.attempts BETWEEN 0 AND s.max_attempts AND s.max_attempts BETWEEN 1 AND 100)
        THEN 'job_states_attempts'
    WHEN NOT ((s.cancel_requested_at IS NULL) = (s.cancel_requested_by IS NULL))
        THEN 'job_states_cancel'
    WHEN NOT ((s.claimed_from IS NOT NULL) = (s.status = 'claimed'))
        THEN 'job_states_claimed_from'
    WHEN NOT (s.claimed_from IN ('queued', 'resumed')) THEN 'job_states_claimed_from_check'
    WHEN NOT (s.status NOT IN ('failed', 'dead_letter') OR s.last_error IS NOT NULL)
        THEN 'job_states_error'
    WHEN NOT ((s.finished_at IS NOT NULL)
              = (s.status IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired')))
        THEN 'job_states_finished'
    WHEN s.held_by IS NOT NULL AND s.hold IS DISTINCT FROM 'limit' THEN 'job_states_held_by'
    WHEN s.hold IS NOT NULL AND draftsman.violates_hold(
         s.hold, s.held_by, s.status, s.run_count, s.concurrency_key, s.limits)
        THEN 'job_states_hold'
    WHEN NOT ((s.lease_token IS NOT NULL) = (s.status IN ('claimed', 'running')))
        THEN 'job_states_lease'
    WHEN NOT (s.queue <> '') THEN 'job_states_queue_check'
    WHEN NOT ((s.result_token IS NOT NULL) = (s.status = 'completed'))
        THEN 'job_states_result_token'
    WHEN NOT (s.retry_count BETWEEN 0 AND s.max_retries AND s.max_retries <= 100)
        THEN 'job_states_retries'
    WHEN NOT ((s.next_retry_at IS NOT NULL) = (s.status = 'retrying'))
        THEN 'job_states_retry_time'
    WHEN NOT (s.run_count >= 0) THEN 'job_states_run_count_check'
    WHEN NOT (s.status <> 'scheduled' OR s.run_at IS NOT NULL) THEN 'job_states_run_time'
    WHEN NOT ((s.worker_id IS NOT NULL) = (s.status IN ('claimed', 'running')))
        THEN 'job_states_worker'
END;

-- The error of a CHECK constraint. STRICT: a state that violates no rule costs no call.
CREATE OR REPLACE FUNCTION draftsman.refuse_state(job bigint, violated text) RETURNS boolean
LANGUAGE plpgsql STRICT AS $$
BEGIN
    PERFORM draftsman.refuse('23514', 'jobs.constraint', jsonb_build_object(
                'job', job, 'table', 'job_states', 'constraint', violated));
    RETURN false;
END $$;

-- Raises an error unless a job may change so. The cases are rendered from TRANSITIONS and FUSED in
-- draftsman.jobs.job. A fused transition (version + 2) passes through `claimed`. A claimed job
-- returns to the status that it was claimed from; a scheduled job that ran before becomes
-- `resumed`; a lease changes only with the status. Values, not rows: a join with whole rows copies
-- every column.
CREATE OR REPLACE FUNCTION draftsman.check_transition(
    job bigint, before draftsman.job_status, after draftsman.job_status, version int, next int,
    claimed_from draftsman.job_status, runs int, keeps_lease boolean
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF (next = version + CASE before
            WHEN 'scheduled' THEN CASE WHEN after IN ('queued', 'resumed', 'canceled') THEN 1 END
            WHEN 'queued' THEN CASE WHEN after IN ('claimed', 'canceled') THEN 1
                                    WHEN after = 'running' THEN 2 END
            WHEN 'claimed' THEN CASE WHEN after IN ('running', 'queued', 'resumed', 'canceled')
                THEN 1 END
            WHEN 'running' THEN CASE WHEN after IN ('waiting_for_input', 'waiting_for_approval',
                'scheduled', 'completed', 'failed', 'dead_letter', 'retrying', 'canceled',
                'resumed') THEN 1 END
            WHEN 'waiting_for_input' THEN CASE WHEN after IN ('resumed', 'expired', 'canceled')
                THEN 1 END
            WHEN 'waiting_for_approval' THEN CASE WHEN after IN ('waiting_for_input', 'resumed',
                'failed', 'expired', 'canceled') THEN 1 END
            WHEN 'resumed' THEN CASE WHEN after IN ('claimed', 'canceled') THEN 1
                                     WHEN after = 'running' THEN 2 END
            WHEN 'retrying' THEN CASE WHEN after IN ('queued', 'canceled') THEN 1 END
            END
        AND (before <> 'claimed' OR after IN ('running', 'canceled', claimed_from))
        AND (before <> 'claimed' OR after <> 'running' OR keeps_lease)
        AND (before <> 'scheduled' OR after <> 'queued' OR runs = 0)
        AND (before <> 'scheduled' OR after <> 'resumed' OR runs > 0)) IS NOT TRUE
    THEN
        PERFORM draftsman.refuse('DM001', 'jobs.transition', jsonb_build_object(
                    'job', job, 'before', before, 'after', after, 'version', version,
                    'next', next));
    END IF;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION draftsman.refuse_finished_job(job bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM draftsman.refuse('DM002', 'jobs.finished', jsonb_build_object('job', job));
    RETURN false;
END $$;

CREATE OR REPLACE FUNCTION draftsman.refuse_inconsistency(job bigint, rule text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM draftsman.refuse('DM003', rule, jsonb_build_object('job', job));
    RETURN false;
END $$;

-- The kind of the event of a transition. Rendered from TRANSITIONS in draftsman.jobs.job.
--
-- This function, the next, and check_transition() are in PL/pgSQL, which is not inlined into the
-- plan of record_transitions(): each operator of a plan is looked up again for each statement, and
-- the transitions of most jobs, from the queue to a run and to its completion, need none of these.
CREATE OR REPLACE FUNCTION draftsman.transition_kind(
    before draftsman.job_status, after draftsman.job_status
) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE before
        WHEN 'scheduled' THEN CASE after
            WHEN 'queued' THEN 'job_promoted'
            WHEN 'resumed' THEN 'job_woken'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'queued' THEN CASE after
            WHEN 'claimed' THEN 'job_claimed'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'claimed' THEN CASE after
            WHEN 'running' THEN 'job_started'
            WHEN 'queued' THEN 'job_returned'
            WHEN 'resumed' THEN 'job_returned'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'running' THEN CASE after
            WHEN 'waiting_for_input' THEN 'needs_input'
            WHEN 'waiting_for_approval' THEN 'needs_approval'
            WHEN 'scheduled' THEN 'job_snoozed'
            WHEN 'completed' THEN 'job_completed'
            WHEN 'failed' THEN 'job_failed'
            WHEN 'dead_letter' THEN 'job_dead_lettered'
            WHEN 'retrying' THEN 'job_retrying'
            WHEN 'canceled' THEN 'job_canceled'
            WHEN 'resumed' THEN 'job_released' END
        WHEN 'waiting_for_input' THEN CASE after
            WHEN 'resumed' THEN 'job_resumed'
            WHEN 'expired' THEN 'job_expired'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'waiting_for_approval' THEN CASE after
            WHEN 'waiting_for_input' THEN 'needs_input'
            WHEN 'resumed' THEN 'job_resumed'
            WHEN 'failed' THEN 'job_failed'
            WHEN 'expired' THEN 'job_expired'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'resumed' THEN CASE after
            WHEN 'claimed' THEN 'job_claimed'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'retrying' THEN CASE after
            WHEN 'queued' THEN 'job_retried'
            WHEN 'canceled' THEN 'job_canceled' END
    END;
END $$;

-- The data of the event of a transition besides its statuses.
CREATE OR REPLACE FUNCTION draftsman.transition_details(
    job bigint, status draftsman.job_status, result jsonb, error text,
    error_class draftsman.error_class, attempts int, retries int, next_retry_at timestamptz,
    run_at timestamptz, cancel_reason text, canceled_by text
) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF status = 'expired' THEN
        RETURN (SELECT jsonb_build_object('question', max(q.ordinal))
                  FROM draftsman.job_questions q
                 WHERE q.job = transition_details.job AND q.status = 'expired'
                   AND q.on_expire IN ('expire', 'escalate'));
    END IF;
    RETURN CASE status
        WHEN 'completed' THEN jsonb_build_object('summary', left(result ->> 'summary', 2000))
        WHEN 'failed' THEN jsonb_build_object(
             'error', CASE WHEN error_class = 'DENIED' THEN error ELSE left(error, 2000) END,
             'error_class', error_class)
        WHEN 'dead_letter' THEN jsonb_build_object('error', left(error, 2000),
             'error_class', error_class, 'attempts', attempts, 'retries', retries)
        WHEN 'retrying' THEN jsonb_build_object('error', left(error, 2000),
             'error_class', error_class, 'next_retry_at', next_retry_at)
        WHEN 'canceled' THEN jsonb_strip_nulls(jsonb_build_object(
             'reason', left(cancel_reason, 2000), 'by', canceled_by))
        WHEN 'scheduled' THEN jsonb_build_object('run_at', run_at)
        ELSE '{}' END;
END $$;

-- Error class DENIED means that an approver denied a question of the last run of the job; no run
-- has it.
CREATE OR REPLACE FUNCTION draftsman.check_denial() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.status <> 'failed' OR NOT EXISTS (
        SELECT FROM draftsman.job_questions q
         WHERE q.job = NEW.number AND q.run = NEW.run_count AND q.on_deny = 'fail'
           AND q.resolution ->> 'outcome' = 'denied') THEN
        PERFORM draftsman.refuse('DM003', 'jobs.denied', jsonb_build_object('job', NEW.number));
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER job_states_denied BEFORE UPDATE OF error_class ON draftsman.job_states
    FOR EACH ROW
    WHEN (NEW.error_class = 'DENIED' AND OLD.error_class IS DISTINCT FROM NEW.error_class)
    EXECUTE FUNCTION draftsman.check_denial();

-- Postponed work ----------------------------------------------------------------------------------

-- Whether this transaction postpones all that needs locks of others: until its `commit`, or until
-- the `sweep` of the leader, because such a lock was not free.
CREATE OR REPLACE FUNCTION draftsman.postpones() RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(current_setting('draftsman.postpone', true), '') <> '';
END $$;

-- Applies the consequences of a change of jobs. It waits for a lock for a second at most: other
-- jobs, which the same statement settles or claims, must not wait for a transaction that stays
-- open.
--   ended    jobs that have ended and have children
--   waiting  jobs with a concurrency key that have begun to wait for a person
--   keys     concurrency keys that may be free, or have a new first job
--   places   see change_places()
--   jobs     jobs that may have a reservation
CREATE OR REPLACE FUNCTION draftsman.follow_transitions(
    ended bigint[], waiting bigint[], keys text[], buckets text[], changes int[], waited text[],
    arrived bigint[], jobs bigint[]
) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '900ms' AS $$
BEGIN
    IF NOT draftsman.postpones() THEN
        BEGIN
            IF ended IS NOT NULL THEN  -- first: waits for rows could deadlock with locked keys
                PERFORM draftsman.resolve_children(ended);
            END IF;
            IF waiting IS NOT NULL THEN
                PERFORM draftsman.release_keys(waiting);
            END IF;
            IF keys IS NOT NULL THEN
                PERFORM draftsman.assign_keys(keys);
            END IF;
            IF num_nonnulls(buckets, waited, arrived) > 0 THEN
                PERFORM draftsman.change_places(buckets, changes, waited, arrived);
            END IF;
            IF jobs IS NOT NULL THEN
                PERFORM draftsman.follow_reservations(jobs);
            END IF;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM set_config('draftsman.postpone', 'sweep', true);
        END;
    END IF;
    INSERT INTO draftsman.postponed_work (ended)
    SELECT unnest(ended)
     UNION
    SELECT r.job FROM draftsman.queue_reservations r WHERE r.job = ANY (jobs);
    IF waiting IS NOT NULL THEN
        PERFORM draftsman.release_keys(waiting);
    END IF;
    IF keys IS NOT NULL THEN
        PERFORM draftsman.assign_keys(keys);
    END IF;
    INSERT INTO draftsman.postponed_work (bucket, change)
    SELECT c.name, c.change FROM unnest(buckets, changes) AS c (name, change)
     UNION ALL
    SELECT w, 0 FROM unnest(waited) w;
    IF arrived IS NOT NULL THEN
        UPDATE draftsman.job_states s SET hold = 'limit', held_by = s.limits[1]
         WHERE s.number = ANY (arrived);
    END IF;
END $$;

-- Sets the positions and places of new jobs, and gives them free concurrency keys.
CREATE OR REPLACE FUNCTION draftsman.place_jobs(numbers bigint[], keys text[]) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '900ms' AS $$
DECLARE
    limited boolean := EXISTS (SELECT FROM draftsman.limits);
BEGIN
    IF numbers IS NULL THEN
        RETURN;
    END IF;
    IF limited THEN
        -- before the buckets, as at the end of a job
        IF keys IS NOT NULL AND NOT draftsman.postpones() THEN
            PERFORM draftsman.lock_keys(keys);
        END IF;
        PERFORM draftsman.limit_jobs(numbers);
    END IF;
    IF keys IS NOT NULL THEN
        PERFORM draftsman.assign_keys(keys);
    END IF;
EXCEPTION WHEN lock_not_available THEN
    IF draftsman.postpones() THEN
        RAISE;
    END IF;
    PERFORM set_config('draftsman.postpone', 'sweep', true);
    PERFORM draftsman.place_jobs(numbers, keys);
END $$;

-- Does postponed work; false if a lock is not free, and then nothing is done.
CREATE OR REPLACE FUNCTION draftsman.do_work(work draftsman.postponed_work[]) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    ended   bigint[] := ARRAY(SELECT w.ended FROM unnest(work) w WHERE w.ended IS NOT NULL
                               ORDER BY w.ended);
    jobs    bigint[] := ARRAY(
        SELECT s.number
          FROM unnest(work) w
         CROSS JOIN unnest(w.jobs) j
         CROSS JOIN LATERAL (
               SELECT number, status, version FROM draftsman.job_states
                WHERE number = j LIMIT 1) s
         WHERE s.status IN ('queued', 'scheduled') AND s.version = 1);
    keys    text[] := ARRAY(SELECT w.key FROM unnest(work) w WHERE w.key IS NOT NULL);
    buckets text[] := ARRAY(SELECT DISTINCT w.bucket FROM unnest(work) w
                             WHERE w.bucket IS NOT NULL);
    former  text := current_setting('draftsman.postpone', true);
BEGIN
    PERFORM set_config('draftsman.postpone', '', true);
    BEGIN
        DELETE FROM draftsman.postponed_work p
         WHERE p.bucket IS NULL AND p.id = ANY (ARRAY(SELECT w.id FROM unnest(work) w));
        IF ended <> '{}' THEN
            PERFORM draftsman.resolve_more_children(e) FROM unnest(ended) e;
            BEGIN
                PERFORM draftsman.follow_reservations(ended);
            EXCEPTION WHEN lock_not_available THEN
                INSERT INTO draftsman.postponed_work (ended, due_at)
                SELECT e, draftsman.now() + interval '1 s' FROM unnest(ended) e;
            END;
        END IF;
        IF jobs <> '{}' THEN
            PERFORM draftsman.set_positions(jobs);
        END IF;
        IF keys <> '{}' THEN
            PERFORM draftsman.assign_keys(keys);
        END IF;
        IF buckets <> '{}' THEN
            PERFORM draftsman.try_places(buckets);
        END IF;
    EXCEPTION WHEN lock_not_available THEN
        PERFORM set_config('draftsman.postpone', coalesce(former, ''), true);
        RETURN false;
    END;
    PERFORM set_config('draftsman.postpone', coalesce(former, ''), true);
    RETURN true;
END $$;

-- Does the work that this transaction postponed until its commit. The leader does the rest, if a
-- lock is not free.
CREATE OR REPLACE FUNCTION draftsman.do_work_at_commit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off SET lock_timeout = '900ms' AS $$
BEGIN
    IF current_setting('draftsman.postpone', true) = 'commit' AND EXISTS (
           SELECT FROM draftsman.postponed_work p WHERE p.id = NEW.id) THEN
        PERFORM set_config('draftsman.postpone', 'sweep', true);
        PERFORM draftsman.do_work(ARRAY(
            SELECT p FROM draftsman.postponed_work p WHERE p.txid = pg_current_xact_id()));
    END IF;
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS postponed_work_commit ON draftsman.postponed_work;
CREATE CONSTRAINT TRIGGER postponed_work_commit AFTER INSERT ON draftsman.postponed_work
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION draftsman.do_work_at_commit();

-- Locks postponed work that is due, at most so many rows, and returns it. Work that another
-- transaction does now, which may stay open, is left. `these` may be NULL.
CREATE OR REPLACE FUNCTION draftsman.lock_due_work(
    most int, these bigint[], without bigint[]
) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
    SELECT id FROM draftsman.postponed_work
     WHERE due_at <= draftsman.now() AND (these IS NULL OR id = ANY (these)) AND id <> ALL (without)
     ORDER BY due_at
     LIMIT most
       FOR UPDATE SKIP LOCKED
$$;

-- Does postponed work that is due, at most so many buckets, keys and jobs, each apart; returns
-- their number. Work whose locks are not free is due again after a second. `these` and `without`
-- are rows of `postponed_work`; `these` may be NULL.
CREATE OR REPLACE FUNCTION draftsman.do_due_work(
    most int, these bigint[], without bigint[]
) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off SET lock_timeout = '20ms' AS $$
DECLARE
    due  record;
    done int := 0;
BEGIN
    FOR due IN
        SELECT array_agg(p) AS work, array_agg(p.id) AS ids
          FROM draftsman.postponed_work p
         WHERE p.id = ANY (ARRAY(SELECT draftsman.lock_due_work(most, these, without)))
         GROUP BY p.bucket, p.key, p.ended, p.jobs
         ORDER BY min(p.id)
    LOOP
        done := done + 1;
        IF NOT draftsman.do_work(due.work) THEN
            UPDATE draftsman.postponed_work p
               SET due_at = draftsman.now() + interval '1 s'
             WHERE p.id = ANY (due.ids);
        END IF;
    END LOOP;
    RETURN done;
END $$;

-- Cancels and pauses ------------------------------------------------------------------------------

-- Requests that a running job stops.
CREATE OR REPLACE FUNCTION draftsman.request_cancel(
    job bigint, by text, reason text, detail jsonb
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control(job, by, 'operator');
    RETURN draftsman.record_cancel_request(job, by, reason, detail, by);
END $$;

-- The same for a caller that has checked who cancels the job.
CREATE OR REPLACE FUNCTION draftsman.record_cancel_request(
    job bigint, by text, reason text, detail jsonb, actor text
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE draftsman.job_states j
       SET cancel_requested_at = draftsman.now(), cancel_requested_by = by, cancel_reason = reason,
           updated_at = draftsman.now()
     WHERE j.number = job AND j.status = 'running' AND j.cancel_requested_at IS NULL;
    IF FOUND THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES (job, 'cancel_requested', actor, detail);
        PERFORM pg_notify('draftsman_runs', job::text);
        RETURN true;
    END IF;
    RETURN false;
END $$;

-- Cancels an unfinished job with its open questions and its open run.
CREATE OR REPLACE FUNCTION draftsman.cancel_job(job bigint, by text, reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control(job, by, 'operator');
    PERFORM set_config('draftsman.actor', by, true), set_config('draftsman.detail', '', true);
    RETURN draftsman.end_canceled_job(job, by, reason);
END $$;

-- The same for a caller that has checked who cancels the job, and set the actor.
CREATE OR REPLACE FUNCTION draftsman.end_canceled_job(
    job bigint, by text, reason text
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE draftsman.job_questions q SET status = 'canceled', resolution = jsonb_build_object(
               'outcome', 'canceled', 'via', 'person', 'by', jsonb_build_array(by))
     WHERE q.job = end_canceled_job.job AND q.status = 'open';
    UPDATE draftsman.job_runs r SET status = 'canceled', finished_at = draftsman.now()
     WHERE r.job = end_canceled_job.job AND r.status = 'running';
    UPDATE draftsman.job_states j
       SET status = 'canceled', claimed_from = NULL, worker_id = NULL, lease_token = NULL,
           hold = NULL, held_by = NULL, next_retry_at = NULL, finished_at = draftsman.now(),
           updated_at = draftsman.now(),
           cancel_requested_at = coalesce(j.cancel_requested_at, draftsman.now()),
           cancel_requested_by = coalesce(j.cancel_requested_by, by),
           cancel_reason = coalesce(j.cancel_reason, reason), version = j.version + 1
     WHERE j.number = end_canceled_job.job AND j.finished_at IS NULL;
    IF FOUND THEN
        PERFORM pg_notify('draftsman_runs', end_canceled_job.job::text);
    END IF;
    RETURN FOUND;
END $$;

-- Pauses an unfinished job; false when it is already paused or has ended. A job that has places in
-- buckets of limits gives them to others, and waits for the end of the pause. `event` is that of a
-- channel, such as a comment.
CREATE OR REPLACE FUNCTION draftsman.pause_job(
    job bigint, reason text, actor text, event text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control(job, actor, 'operator');
    PERFORM FROM draftsman.job_states j
      WHERE j.number = job AND j.finished_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.job_pauses (job, reason, paused_by) VALUES (job, reason, actor)
        ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, 'job_paused', actor,
            jsonb_strip_nulls(jsonb_build_object('reason', left(reason, 2000), 'event', event)));
    PERFORM draftsman.notify_pause(job, draftsman.sentence('jobs.paused', jsonb_build_object(
                'job', job, 'by', draftsman.name_of_actor(actor), 'reason', reason)));
    UPDATE draftsman.job_states j SET hold = 'limit', held_by = 'pause'
     WHERE j.number = job AND j.status IN ('queued', 'resumed') AND j.hold IS NULL
       AND j.limits <> '{}';
    PERFORM pg_notify('draftsman_runs', job::text);
    RETURN true;
END $$;

-- Ends the pause of a job; false when it has none.
CREATE OR REPLACE FUNCTION draftsman.unpause_job(
    job bigint, actor text, event text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control(job, actor, 'operator');
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE;
    DELETE FROM draftsman.job_pauses p WHERE p.job = unpause_job.job;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, 'job_unpaused', actor, jsonb_strip_nulls(jsonb_build_object('event', event)));
    PERFORM draftsman.notify_pause(job, draftsman.sentence('jobs.resumed', jsonb_build_object(
                'job', job, 'by', draftsman.name_of_actor(actor))));
    UPDATE draftsman.job_states j SET held_by = j.limits[1]
     WHERE j.number = job AND j.held_by = 'pause' AND NOT EXISTS (
           SELECT FROM draftsman.queue_pauses p
            WHERE p.queue = j.queue AND (p.type IS NULL OR p.type = j.type));
    PERFORM pg_notify('draftsman_jobs', j.queue) FROM draftsman.job_states j WHERE j.number = job;
    RETURN true;
END $$;

-- Tells the targets of a job that it was paused or resumed; the caller has just written the event.
-- The status messages where people answer are edited, too.
CREATE OR REPLACE FUNCTION draftsman.notify_pause(job bigint, notice jsonb) RETURNS void
LANGUAGE sql AS $$
    SELECT draftsman.deliver_status(j.number, j.version, ARRAY(
               SELECT c.name FROM draftsman.channels c WHERE c.takes_answers))
      FROM draftsman.job_states j WHERE j.number = notify_pause.job;
    SELECT draftsman.deliver_notice(job, NULL, 'pause:' || currval('draftsman.job_event_ids'),
                                    notice)
$$;

-- Removes the pauses of jobs that have ended, at most so many.
CREATE OR REPLACE FUNCTION draftsman.delete_ended_pauses(most int) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM draftsman.job_pauses p
     WHERE p.job = ANY (ARRAY(
           SELECT o.job FROM draftsman.job_pauses o
             JOIN draftsman.job_states s ON s.number = o.job AND s.finished_at IS NOT NULL
            ORDER BY o.job LIMIT most))
$$;

-- Failures ----------------------------------------------------------------------------------------

-- Closes the failure of a job with its retry, which stands for it from now on.
CREATE OR REPLACE FUNCTION draftsman.close_retried_failure() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM draftsman.open_failures f WHERE f.job = NEW.retry_of;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_requests_retried AFTER INSERT ON draftsman.job_requests FOR EACH ROW
    WHEN (NEW.retry_of IS NOT NULL) EXECUTE FUNCTION draftsman.close_retried_failure();

-- Takes an open failure out of attention; false when it is not open: not failed, retried, denied or
-- dismissed before. The lock of the job orders it with a retry.
CREATE OR REPLACE FUNCTION draftsman.dismiss_job(
    job bigint, reason text, actor text, event text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control(job, actor, 'operator');
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE;
    DELETE FROM draftsman.open_failures f WHERE f.job = dismiss_job.job;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.dismissals (job, reason, dismissed_by) VALUES (job, reason, actor);
    PERFORM draftsman.record_dismissal(job, 'job_dismissed', reason, actor, event);
    RETURN true;
END $$;

-- Takes a dismissal back; false when there is none. A failure that was retried meanwhile stays
-- closed.
CREATE OR REPLACE FUNCTION draftsman.undismiss_job(
    job bigint, actor text, event text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control(job, actor, 'operator');
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE;
    DELETE FROM draftsman.dismissals d WHERE d.job = undismiss_job.job;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.open_failures (job, status)
    SELECT j.number, j.status FROM draftsman.job_states j
     WHERE j.number = job AND draftsman.retry_of_job(job) IS NULL;
    PERFORM draftsman.record_dismissal(job, 'job_undismissed', NULL, actor, event);
    RETURN true;
END $$;

-- Records a dismissal or its end, and edits the status messages where people act on the job.
CREATE OR REPLACE FUNCTION draftsman.record_dismissal(
    job bigint, kind text, reason text, actor text, event text
) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, kind, actor,
            jsonb_strip_nulls(jsonb_build_object('reason', left(reason, 2000), 'event', event)));
    SELECT draftsman.deliver_status(j.number, j.version, ARRAY(
               SELECT c.name FROM draftsman.channels c WHERE c.takes_answers))
      FROM draftsman.job_states j WHERE j.number = record_dismissal.job
$$;

-- The retry of a job: the next of its chain, by its idempotency key.
CREATE OR REPLACE FUNCTION draftsman.retry_of_job(job bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT n.number
      FROM draftsman.job_requests r
      JOIN draftsman.job_requests n
        ON n.type = r.type AND n.retry_of = r.number
       AND n.idempotency_key = 'retry:' || CASE WHEN r.retry_of IS NULL THEN r.number::text
           ELSE split_part(r.idempotency_key, ':', 2) END || ':' || (r.chain_length + 1)
       AND NOT starts_with(n.idempotency_key, 'auto:')
     WHERE r.number = job
$$;

-- Records an action on a job that a chat refused a person, once for each event of the chat and at
-- most 200 for a job; the caller holds the lock of the job.
CREATE OR REPLACE FUNCTION draftsman.refuse_action(
    job bigint, actor text, detail jsonb
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT draftsman.has_right(actor, NULL, '{bot}') OR pg_column_size(detail) > 16384 THEN
        PERFORM draftsman.deny_access('database.actor', jsonb_build_object('actor', actor));
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT refuse_action.job, 'action_refused', actor, detail
     WHERE (SELECT count(*) < 200
               AND count(*) FILTER (WHERE e.payload -> 'event' = detail -> 'event') = 0
              FROM draftsman.events e
             WHERE e.job = refuse_action.job AND e.kind = 'action_refused');
END $$;

-- Raises an error unless the actor may act in this session and has the role or requested the job.
-- A worker that applies a decision has the rights of its person, and no others.
CREATE OR REPLACE FUNCTION draftsman.require_control(
    job bigint, actor text, role text
) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text;
BEGIN
    IF draftsman.session_kind() = 'owner'
       OR (draftsman.session_kind() = 'worker' AND draftsman.may_act_as(actor)
           AND NOT draftsman.applies_decision(actor)) THEN
        RETURN;
    END IF;
    person := draftsman.person_of_actor(actor);
    IF NOT draftsman.may_act_as(actor) OR NOT (
        draftsman.has_role(person, role) OR EXISTS (
            SELECT FROM draftsman.job_requests j
             WHERE j.number = job AND j.invoker_id IN (person, actor))) THEN
        PERFORM draftsman.deny_access('jobs.control', jsonb_build_object(
                    'actor', actor, 'job', job));
    END IF;
END $$;

-- Messages and attachments ------------------------------------------------------------------------

-- Stores a message to an unfinished job, once for each event of its channel, and wakes the worker
-- of a running job. Returns job and number of the message, whether it is new, and whether its text
-- is this text; no row if the job has finished, and no number if it has 200 messages.
CREATE OR REPLACE FUNCTION draftsman.send_message(
    job bigint, source draftsman.channel, sender_id text, display_name text, sender text,
    source_event_id text, text text
) RETURNS TABLE (message_job bigint, message int, is_new boolean, is_equal boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    actor text := source || ':' || sender_id;
    next  int;
BEGIN
    PERFORM draftsman.require_control(job, actor, 'responder');
    IF draftsman.session_kind() = 'worker' THEN
        PERFORM draftsman.deny_access('jobs.workers_send_messages');
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE;
    RETURN QUERY
    SELECT m.job, m.ordinal, false, m.text = send_message.text FROM draftsman.job_messages m
     WHERE m.source = send_message.source AND m.source_event_id = send_message.source_event_id;
    IF FOUND OR NOT EXISTS (SELECT FROM draftsman.job_states j
                             WHERE j.number = job AND j.finished_at IS NULL) THEN
        RETURN;
    END IF;
    SELECT coalesce(max(m.ordinal), 0) + 1 INTO next FROM draftsman.job_messages m
     WHERE m.job = send_message.job;
    IF next > 200 THEN
        RETURN QUERY SELECT job, NULL::int, false, true;
        RETURN;
    END IF;
    PERFORM draftsman.add_message(job, next, source, source_event_id, sender_id, display_name,
        CASE WHEN draftsman.session_kind() = 'owner' THEN sender
        ELSE coalesce(draftsman.person_of(source::text, sender_id), actor) END, text);
    RETURN QUERY SELECT job, next, true, true;
END $$;

-- Stores a message with its event, and tells the run. The caller has the lock of the job, and has
-- checked the right of the sender.
CREATE OR REPLACE FUNCTION draftsman.add_message(
    job bigint, ordinal int, source draftsman.channel, source_event_id text, sender_id text,
    display_name text, sender text, text text
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO draftsman.job_messages
           (job, ordinal, source, source_event_id, sender_id, sender_display_name, sender, text)
    VALUES (job, ordinal, source, source_event_id, sender_id, display_name, sender, text);
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, 'message_sent', source || ':' || sender_id,
            jsonb_build_object('message', ordinal, 'text', left(text, 2000)));
    PERFORM pg_notify('draftsman_runs', job::text);
END $$;

-- Copies the messages that a finished job did not deliver to its retry, and the reasons of those who
-- denied its work as messages of these people; returns their number.
CREATE OR REPLACE FUNCTION draftsman.inherit_messages(old bigint, new bigint) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    copied int;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.jobs j
                    WHERE j.number = new AND j.retry_of = old AND j.run_count = 0) THEN
        RETURN 0;
    END IF;
    INSERT INTO draftsman.job_messages
           (job, ordinal, source, source_event_id, sender_id, sender_display_name, sender, text,
            created_at)
    SELECT new, row_number() OVER (ORDER BY m.created_at, m.event), m.source,
           format('retry:%s:%s', new, m.event), m.sender_id, m.sender_display_name, m.sender,
           m.text, m.created_at
      FROM (SELECT m.source, m.ordinal::text AS event, m.sender_id, m.sender_display_name,
                   m.sender, m.text, m.created_at
              FROM draftsman.job_messages m
             WHERE m.job = old AND m.delivered_at IS NULL
             UNION ALL
            SELECT a.source, 'denial:' || a.question, a.responder_id, a.responder_display_name,
                   a.voter, format('Denied D-%s/%s: %s', a.job, a.question, a.payload ->> 'reason'),
                   a.created_at
              FROM draftsman.job_answers a
              JOIN draftsman.job_questions q ON q.job = a.job AND q.ordinal = a.question
              JOIN draftsman.job_requests r ON r.number = new AND r.type = 'run_agent'
             WHERE a.job = old AND a.accepted AND a.payload ->> 'decision' = 'deny'
               AND q.resolution ->> 'outcome' = 'denied' AND a.payload ->> 'reason' <> ''
             ORDER BY created_at
             LIMIT 200) m
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS copied = ROW_COUNT;
    RETURN copied;
END $$;

-- Adds files of a person to an unfinished job, with the request, with a request that joined the
-- job, or with a message to the job. Returns the number of new files.
CREATE OR REPLACE FUNCTION draftsman.add_attachments(
    job bigint, actor text, message int, files jsonb
) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names jsonb;
BEGIN
    IF (message IS NULL AND draftsman.session_kind() = 'bot' AND draftsman.may_act_as(actor)
        AND EXISTS (
            SELECT FROM draftsman.events e
             WHERE e.job = add_attachments.job AND e.kind = 'request_joined'
               AND e.payload ->> 'requester' IN (draftsman.person_of_actor(add_attachments.actor),
                                                 add_attachments.actor))) IS NOT TRUE THEN
        PERFORM draftsman.require_control(job, actor, 'responder');
    END IF;
    IF draftsman.session_kind() = 'worker' THEN
        PERFORM draftsman.deny_access('jobs.workers_attach_files');
    END IF;
    PERFORM FROM draftsman.job_states j
      WHERE j.number = job AND j.finished_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN 0; END IF;
    names := draftsman.insert_attachments(job, split_part(actor, ':', 1)::draftsman.channel,
                                          message, files);
    IF names <> '[]' THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES (job, 'attachments_added', actor,
                jsonb_strip_nulls(jsonb_build_object('names', names, 'message', message)));
    END IF;
    RETURN jsonb_array_length(names);
END $$;

-- Claims pending files of a channel for their download, for so many seconds. A file whose downloads
-- failed five times is refused.
CREATE OR REPLACE FUNCTION draftsman.claim_attachments(
    channel draftsman.channel, most int, seconds float8
) RETURNS TABLE (id bigint, attempt int, reference jsonb, name text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access('jobs.bots_download');
    END IF;
    UPDATE draftsman.attachments a
       SET status = 'refused', reason = draftsman.sentence('jobs.not_downloaded')::text,
           ended_at = draftsman.now()
     WHERE a.id = ANY (ARRAY(
           SELECT p.id FROM draftsman.attachments p
            WHERE p.channel = claim_attachments.channel AND p.status = 'pending' AND p.attempts >= 5
              AND p.claimed_until < draftsman.now()
            ORDER BY p.id FOR UPDATE SKIP LOCKED));
    RETURN QUERY
    UPDATE draftsman.attachments a
       SET attempts = a.attempts + 1,
           claimed_until = draftsman.now() + make_interval(secs => seconds)
     WHERE a.id = ANY (ARRAY(
           SELECT p.id FROM draftsman.attachments p
            WHERE p.channel = claim_attachments.channel AND p.status = 'pending'
              AND (p.claimed_until IS NULL OR p.claimed_until < draftsman.now())
            ORDER BY p.id LIMIT most FOR UPDATE SKIP LOCKED))
    RETURNING a.id, a.attempts, a.reference, a.name;
END $$;

-- Stores a downloaded file, or refuses it: with the given reason, or because the files of its job
-- would have more than 25 MiB. A stored file adds `more` files, which were found in it, to its
-- first job. Returns its status; nothing if another process has ended it, or claimed it again.
CREATE OR REPLACE FUNCTION draftsman.end_attachment(
    id bigint, attempt int, data bytea, reason text, more jsonb
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first   bigint;
    total   bigint;
    problem text := reason;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access('jobs.bots_download');
    END IF;
    SELECT min(j.job) INTO first FROM draftsman.job_attachments j WHERE j.attachment = id;
    -- as add_attachments
    PERFORM FROM draftsman.job_states j WHERE j.number = first FOR NO KEY UPDATE;
    PERFORM FROM draftsman.job_attachments j WHERE j.job = first ORDER BY j.ordinal FOR UPDATE;
    PERFORM FROM draftsman.attachments a
      WHERE a.id = end_attachment.id AND a.status = 'pending' AND a.attempts = attempt
        FOR UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF problem IS NULL THEN
        SELECT coalesce(sum(a.size), 0) + octet_length(data) INTO total
          FROM draftsman.job_attachments j JOIN draftsman.attachments a ON a.id = j.attachment
         WHERE j.job = first;
        IF total > 26214400 THEN
            problem := draftsman.sentence('jobs.most_file_bytes')::text;
        END IF;
    END IF;
    IF problem IS NULL THEN
        INSERT INTO draftsman.attachment_contents (attachment, data) VALUES (id, data);
        UPDATE draftsman.attachments a
           SET status = 'stored', size = octet_length(data), sha256 = encode(sha256(data), 'hex'),
               ended_at = draftsman.now()
         WHERE a.id = end_attachment.id;
        PERFORM draftsman.insert_attachments(j.job, a.channel, j.message, more)
          FROM draftsman.job_attachments j
          JOIN draftsman.attachments a ON a.id = j.attachment
         WHERE j.attachment = end_attachment.id AND j.job = first AND more <> '[]';
        RETURN 'stored';
    END IF;
    UPDATE draftsman.attachments a
       SET status = 'refused', reason = left(problem, 500), ended_at = draftsman.now()
     WHERE a.id = end_attachment.id;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT first, 'attachment_refused', 'system',
           jsonb_build_object('name', a.name, 'reason', a.reason)
      FROM draftsman.attachments a WHERE a.id = end_attachment.id;
    RETURN 'refused';
END $$;

-- Adds files of a channel to a job, and returns their names; a file that the job has is left out,
-- and those after the twentieth are dropped. `files` are objects with reference, name, media_type
-- and reason, why a file is refused at once.
CREATE OR REPLACE FUNCTION draftsman.insert_attachments(
    job bigint, source draftsman.channel, message int, files jsonb
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    file    record;
    place   int;
    stored  bigint;
    names   jsonb := '[]';
BEGIN
    SELECT coalesce(max(a.ordinal), 0) INTO place FROM draftsman.job_attachments a
     WHERE a.job = insert_attachments.job;
    FOR file IN
        SELECT f.value ->> 'name' AS name, f.value ->> 'media_type' AS media_type,
               f.value ->> 'reason' AS reason, f.value -> 'reference' AS reference
          FROM jsonb_array_elements(files) WITH ORDINALITY f
         WHERE NOT EXISTS (
               SELECT FROM draftsman.job_attachments j
                 JOIN draftsman.attachments a ON a.id = j.attachment
                WHERE j.job = insert_attachments.job AND a.channel = source
                  AND a.reference = f.value -> 'reference')
         ORDER BY f.ordinality
    LOOP
        EXIT WHEN place >= 20;
        place := place + 1;
        INSERT INTO draftsman.attachments
               (channel, reference, name, media_type, status, reason, ended_at)
        VALUES (source, file.reference, file.name, file.media_type,
                CASE WHEN file.reason IS NULL THEN 'pending' ELSE 'refused' END, file.reason,
                CASE WHEN file.reason IS NOT NULL THEN draftsman.now() END)
        RETURNING id INTO stored;
        INSERT INTO draftsman.job_attachments VALUES (job, place, stored, message);
        names := names || jsonb_build_array(file.name);
    END LOOP;
    RETURN names;
END $$;

-- Gives a new job the attachments of the job that it retries, follows up or comes after.
CREATE OR REPLACE FUNCTION draftsman.inherit_attachments(old bigint, new bigint) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    copied int;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.jobs j
                    WHERE j.number = new AND j.retry_of = old AND j.run_count = 0)
       AND NOT EXISTS (SELECT FROM draftsman.follow_ups f WHERE f.job = new AND f.parent = old)
       AND NOT EXISTS (SELECT FROM draftsman.job_dependencies d
                        WHERE d.job = new AND d.parent = old) THEN
        RETURN 0;
    END IF;
    INSERT INTO draftsman.job_attachments (job, ordinal, attachment)
    SELECT new, p.place + row_number() OVER (ORDER BY a.ordinal), a.attachment
      FROM draftsman.job_attachments a
     CROSS JOIN (SELECT coalesce(max(o.ordinal), 0) AS place
                   FROM draftsman.job_attachments o WHERE o.job = new) p
     WHERE a.job = old AND a.ordinal <= 20 - p.place
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS copied = ROW_COUNT;
    RETURN copied;
END $$;

-- Runs --------------------------------------------------------------------------------------------

-- A new run is the newest of a running job and holds its lease. With the checks of
-- record_transitions() this excludes a second open run and a run without a job.
CREATE OR REPLACE FUNCTION draftsman.check_runs() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET enable_seqscan = off AS $$
DECLARE
    wrong record;
BEGIN
    SELECT r.job, r.ordinal INTO wrong
      FROM new_runs r
     WHERE (SELECT j.number FROM draftsman.job_states j
             WHERE j.number = r.job AND j.run_count = r.ordinal
               AND (r.status <> 'running'
                    OR (j.status = 'running' AND j.lease_token = r.lease_token))) IS NULL
     LIMIT 1;
    IF FOUND THEN
        PERFORM draftsman.refuse('DM003', 'jobs.newest_run', jsonb_build_object(
                    'job', wrong.job, 'run', wrong.ordinal));
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_runs_inserted AFTER INSERT ON draftsman.job_runs
    REFERENCING NEW TABLE AS new_runs FOR EACH STATEMENT
    EXECUTE FUNCTION draftsman.check_runs();

-- Calls of a parked run count, until the run goes on as another.
CREATE OR REPLACE FUNCTION draftsman.check_run_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status <> 'parked' OR to_jsonb(NEW) - 'usage' <> to_jsonb(OLD) - 'usage' THEN
        PERFORM draftsman.refuse('DM002', 'jobs.finished_run', jsonb_build_object(
                    'table', 'job_runs', 'operation', 'update'));
    END IF;
    RETURN NULL;
END $$;
-- AFTER, because a BEFORE UPDATE trigger locks the row first, which is logged.
CREATE OR REPLACE TRIGGER job_runs_immutable AFTER UPDATE ON draftsman.job_runs FOR EACH ROW
    WHEN (OLD.status <> 'running')
    EXECUTE FUNCTION draftsman.check_run_change();

-- The repository of a job without one may be found while it runs. Afterwards it never changes: the
-- rules and the identical questions of a repository, and its limits, are those of the job.
CREATE OR REPLACE FUNCTION draftsman.check_repo_assignment() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.repo_name IS NOT NULL AND (OLD.repo_host, OLD.repo_owner, OLD.repo_name)
       IS DISTINCT FROM (NEW.repo_host, NEW.repo_owner, NEW.repo_name) THEN
        PERFORM draftsman.refuse('DM002', 'jobs.repository', jsonb_build_object(
                    'job', NEW.number));
    END IF;
    PERFORM draftsman.refuse_finished_job(s.number)
       FROM draftsman.job_states s WHERE s.number = NEW.number AND s.finished_at IS NOT NULL;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER job_requests_repo BEFORE UPDATE OF repo_host, repo_owner, repo_name
    ON draftsman.job_requests FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_repo_assignment();

-- Sets the agent of a running job without an agent, which counts from now on for the limits of its
-- agent; false after a lost lease.
CREATE OR REPLACE FUNCTION draftsman.assign_agent(
    job bigint, token bigint, agent text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM draftsman.job_states s
      WHERE s.number = job AND s.lease_token = token AND s.status = 'running'
        AND s.cancel_requested_at IS NULL
        FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE draftsman.job_requests r SET agent = assign_agent.agent
     WHERE r.number = job AND r.agent IS NULL AND r.mode IS NOT NULL;
    IF FOUND AND EXISTS (SELECT FROM draftsman.limits l WHERE l.scope = 'agent') THEN
        UPDATE draftsman.job_states s SET limits = l.limits
          FROM (SELECT draftsman.limits_of(job) AS limits) l
         WHERE s.number = job AND s.limits IS DISTINCT FROM l.limits;
    END IF;
    RETURN true;
END $$;

-- An agent is set once, while the job runs.
CREATE OR REPLACE FUNCTION draftsman.check_agent_assignment() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.agent IS NOT NULL OR NEW.agent IS NULL OR NOT EXISTS (
       SELECT FROM draftsman.job_states s WHERE s.number = NEW.number AND s.status = 'running') THEN
        PERFORM draftsman.refuse('DM002', 'jobs.request_immutable', jsonb_build_object(
                    'table', 'job_requests', 'operation', 'update'));
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER job_requests_agent BEFORE UPDATE OF agent ON draftsman.job_requests
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_agent_assignment();

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER job_requests_immutable BEFORE UPDATE OF number, id, type, idempotency_key,
    request_digest, mode, source, source_type, external_event_id, invoker_id, invoker_display_name,
    ticket_url, ticket_title, ticket_text, payload, overrides, requested_skills, tags,
    retry_of, chain_length, template, template_version, created_at
    ON draftsman.job_requests FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.request_immutable');
CREATE OR REPLACE TRIGGER job_requests_no_delete BEFORE DELETE ON draftsman.job_requests
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.jobs_kept');
CREATE OR REPLACE TRIGGER job_requests_no_truncate BEFORE TRUNCATE ON draftsman.job_requests
    EXECUTE FUNCTION draftsman.refuse_change('jobs.jobs_kept');

CREATE OR REPLACE TRIGGER job_states_immutable BEFORE UPDATE OF number, type, concurrency_key,
    max_attempts, max_retries
    ON draftsman.job_states FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.request_immutable');
CREATE OR REPLACE TRIGGER job_states_no_delete BEFORE DELETE ON draftsman.job_states FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.jobs_kept');
CREATE OR REPLACE TRIGGER job_states_no_truncate BEFORE TRUNCATE ON draftsman.job_states
    EXECUTE FUNCTION draftsman.refuse_change('jobs.jobs_kept');

CREATE OR REPLACE TRIGGER job_runs_no_delete BEFORE DELETE ON draftsman.job_runs FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.runs_kept');
CREATE OR REPLACE TRIGGER job_runs_no_truncate BEFORE TRUNCATE ON draftsman.job_runs
    EXECUTE FUNCTION draftsman.refuse_change('jobs.runs_kept');

CREATE OR REPLACE TRIGGER job_messages_immutable
    BEFORE UPDATE OF job, ordinal, source, source_event_id,
    sender_id, sender_display_name, sender, text, created_at
    ON draftsman.job_messages FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.message_immutable');
CREATE OR REPLACE TRIGGER job_messages_delivered_once BEFORE UPDATE ON draftsman.job_messages
    FOR EACH ROW
    WHEN (OLD.delivered_at IS NOT NULL)
    EXECUTE FUNCTION draftsman.refuse_change('jobs.delivered_immutable');
CREATE OR REPLACE TRIGGER job_messages_no_delete BEFORE DELETE ON draftsman.job_messages
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.messages_kept');
CREATE OR REPLACE TRIGGER job_messages_no_truncate BEFORE TRUNCATE ON draftsman.job_messages
    EXECUTE FUNCTION draftsman.refuse_change('jobs.messages_kept');

CREATE OR REPLACE TRIGGER attachments_ended_once BEFORE UPDATE ON draftsman.attachments FOR EACH ROW
    WHEN (OLD.status <> 'pending')
    EXECUTE FUNCTION draftsman.refuse_change('jobs.ended_attachment_immutable');
CREATE OR REPLACE TRIGGER attachments_no_delete BEFORE DELETE ON draftsman.attachments FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.attachments_kept');

CREATE OR REPLACE TRIGGER attachment_contents_immutable BEFORE UPDATE OR DELETE
    ON draftsman.attachment_contents FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.content_immutable');

CREATE OR REPLACE TRIGGER job_attachments_immutable BEFORE UPDATE OR DELETE
    ON draftsman.job_attachments FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs.attachments_of_job_immutable');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_jobs() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.violated_request_rule(draftsman.job_requests),
        draftsman.repo_of(draftsman.job_requests), draftsman.is_repo_of(text, text[]),
        draftsman.is_job_of(bigint, text[]), draftsman.retry_of_job(bigint),
        draftsman.violates_hold(draftsman.job_hold, text, draftsman.job_status, int, text, text[]),
        draftsman.violated_rule(draftsman.job_states)');
    SELECT draftsman.grant_to('worker bot person', 'EXECUTE ON FUNCTION
        draftsman.join_request(bigint, text, jsonb), draftsman.inherit_checkpoint(bigint, bigint),
        draftsman.request_cancel(bigint, text, text, jsonb),
        draftsman.cancel_job(bigint, text, text), draftsman.pause_job(bigint, text, text, text),
        draftsman.unpause_job(bigint, text, text),
        draftsman.dismiss_job(bigint, text, text, text),
        draftsman.undismiss_job(bigint, text, text),
        draftsman.send_message(bigint, draftsman.channel, text, text, text, text, text),
        draftsman.inherit_messages(bigint, bigint), draftsman.inherit_attachments(bigint, bigint),
        draftsman.do_due_work(int, bigint[], bigint[]),
        draftsman.lock_due_work(int, bigint[], bigint[])');
    SELECT draftsman.grant_to('bot person', 'EXECUTE ON FUNCTION
        draftsman.add_attachments(bigint, text, int, jsonb)');
    SELECT draftsman.grant_to('bot', 'EXECUTE ON FUNCTION
        draftsman.refuse_action(bigint, text, jsonb),
        draftsman.claim_attachments(draftsman.channel, int, float8),
        draftsman.end_attachment(bigint, int, bytea, text, jsonb)');
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.assign_agent(bigint, bigint, text)');
    SELECT draftsman.grant_to('worker bot person', 'INSERT (number, id, type, idempotency_key,
        request_digest, mode, source, source_type, external_event_id, invoker_id,
        invoker_display_name, repo_host, repo_owner, repo_name, ticket_url, ticket_title,
        ticket_text, payload, overrides, requested_skills, tags, agent, retry_of, chain_length,
        template, template_version, created_at) ON draftsman.job_requests');
    SELECT draftsman.grant_to('worker', 'UPDATE (repo_host, repo_owner, repo_name)
        ON draftsman.job_requests');
    SELECT draftsman.grant_to('worker bot person', 'INSERT (number, type, queue, priority,
        subject_key, concurrency_key, hold, status, run_at, max_attempts, max_retries, on_lost,
        has_targets, queued_at, updated_at) ON draftsman.job_states');
    -- not the columns of a request, and not those of triggers: order, limits, children, targets
    SELECT draftsman.grant_to('worker', 'UPDATE (attempts, retry_count, queued_at, run_at,
        next_retry_at, cancel_requested_at, cancel_requested_by, cancel_reason, hold, held_by,
        last_error, error_class, pr_url, run_count, claimed_at, started_at, claimed_from, status,
        version, updated_at, lease_token, worker_id, finished_at, result, result_token)
        ON draftsman.job_states');
    -- a column allows SELECT ... FOR UPDATE; no update passes the triggers
    SELECT draftsman.grant_to('bot person', 'UPDATE (number) ON draftsman.job_states');
    SELECT draftsman.grant_to('worker bot person', 'INSERT (job, key, replaces, debounce_until)
        ON draftsman.unique_keys');
    SELECT draftsman.grant_to('worker', 'INSERT, UPDATE ON
        draftsman.job_runs, draftsman.job_steps, draftsman.artifacts, draftsman.job_quotas');
    SELECT draftsman.grant_to('worker', 'INSERT, DELETE ON
        draftsman.artifact_chunks, draftsman.job_checkpoints, draftsman.run_log_chunks,
        draftsman.run_activity');
    SELECT draftsman.grant_to('worker', 'UPDATE (run, delivered_at) ON draftsman.job_messages');
$$;
