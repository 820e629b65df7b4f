-- Functions for people and bots, whose roles cannot write the tables: they answer, extend and
-- cancel, mint and redeem tokens, and retry.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0010_control') AS applied \gset
\if :applied \echo '0010_control is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0010_control');

-- Questions -----------------------------------------------------------------------------------

-- Closes the other open questions of a job: all of them if the job ends, else those of which
-- `alternative_of` lists the first. Returns the status in which the job waits for the rest, that of an
-- approval if one is open; NULL if nothing is open. The caller holds the job's lock.
CREATE FUNCTION draftsman.close_others(job bigint, ends boolean, alternative_of int)
RETURNS draftsman.job_status LANGUAGE sql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE draftsman.job_questions q
       SET status = 'canceled', resolution = jsonb_build_object(
               'outcome', 'canceled', 'via', 'system', 'reason',
               CASE WHEN $2 THEN 'the job has ended' ELSE 'another question was closed first' END)
     WHERE q.job = $1 AND q.status = 'open' AND ($2 OR q.alternative_of = $3);
    SELECT max(CASE q.kind WHEN 'approval' THEN 'waiting_for_approval'
               ELSE 'waiting_for_input' END::draftsman.job_status)
      FROM draftsman.job_questions q
     WHERE q.job = $1 AND q.status = 'open';
$$;

-- Closes a question, and resumes or ends its job; a job with other open questions waits for these. The
-- caller holds the locks of both. For a denial the error of the job contains the person who denied and
-- the reason.
CREATE FUNCTION draftsman.resolve_question(
    job bigint, ordinal int, status draftsman.question_status, resolution jsonb,
    job_status draftsman.job_status, actor text, detail text, kind text, error text
) RETURNS TABLE (new_status draftsman.job_status, notified text) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked   draftsman.job_questions;
    is_rule boolean;
    waits   draftsman.job_status;
BEGIN
    IF NOT draftsman.may_act_as(actor) THEN
        PERFORM draftsman.deny_access(format('%s cannot act as %s', session_user, actor));
    END IF;
    PERFORM set_config('draftsman.actor', actor, true),
            set_config('draftsman.detail', detail, true);
    UPDATE draftsman.job_questions q
       SET status = $3, resolution = $4,
           answered_at = CASE WHEN $3 = 'answered' THEN draftsman.now() END
     WHERE q.job = $1 AND q.ordinal = $2 AND q.status = 'open'
    RETURNING q.* INTO asked;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    is_rule := $4 ->> 'via' = 'rule';
    IF draftsman.session_kind() <> 'owner' AND NOT is_rule AND NOT EXISTS (
        SELECT FROM draftsman.job_answers a WHERE a.job = $1 AND a.question = $2 AND a.accepted
           AND a.source || ':' || a.responder_id = $6) THEN
        PERFORM draftsman.deny_access(format('%s did not answer D-%s/%s', $6, $1, $2));
    END IF;
    IF draftsman.session_kind() <> 'owner'
       AND ($8 <> CASE WHEN is_rule THEN 'rule_applied' ELSE 'answer_received' END
       OR $3 <> 'answered' OR $5 <> CASE WHEN $4 ->> 'outcome' = 'denied' AND asked.on_deny = 'fail'
                        THEN 'failed' ELSE 'resumed' END::draftsman.job_status) THEN
        PERFORM draftsman.deny_access(
            'an answer can only resolve its question and fail or resume the job');
    END IF;
    IF draftsman.session_kind() <> 'owner' THEN
        error := CASE WHEN job_status = 'failed' THEN error END;
        detail := (jsonb_build_object('question', ordinal, 'key', asked.key)
                   || asked.resolution)::text;
        PERFORM set_config('draftsman.detail', detail, true);
    END IF;
    detail := (detail::jsonb
        || jsonb_strip_nulls(jsonb_build_object('checkpoint', (
               SELECT max(c.id) FROM draftsman.job_checkpoints c WHERE c.job = $1),
               'label', draftsman.label_of(asked.choices, asked.resolution ->> 'value')))
        || coalesce((SELECT jsonb_build_object('answer', a.id, 'source', a.source,
                                               'responder', a.responder_id)
                       FROM draftsman.job_answers a
                      WHERE a.job = $1 AND a.question = $2 AND a.accepted
                      ORDER BY a.id DESC LIMIT 1), '{}'))::text;
    PERFORM set_config('draftsman.detail', detail, true);
    IF job_status = 'failed' AND asked.resolution ->> 'outcome' = 'denied' THEN
        error := 'denied by '
            || (SELECT string_agg(name, ', ')
                  FROM jsonb_array_elements_text(asked.resolution -> 'by') name)
            || coalesce(': ' || (asked.resolution ->> 'reason'), '');
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload) VALUES ($1, $8, $6, $7::jsonb);
    waits := draftsman.close_others($1, $5 <> 'resumed', asked.alternative_of);
    IF waits IS NOT NULL THEN
        PERFORM set_config('draftsman.detail', jsonb_build_object('question', min(q.ordinal))::text, true)
           FROM draftsman.job_questions q WHERE q.job = $1 AND q.status = 'open';
        UPDATE draftsman.job_states j
           SET status = waits, version = j.version + 1, updated_at = draftsman.now()
         WHERE j.number = $1 AND j.status <> waits;
        RETURN QUERY SELECT waits, NULL::text;
        RETURN;
    END IF;
    RETURN QUERY
    UPDATE draftsman.job_states j
       SET status = $5, version = j.version + 1, updated_at = draftsman.now(),
           last_error = coalesce($9, j.last_error),
           error_class = CASE WHEN $9 IS NULL THEN j.error_class
                         WHEN asked.resolution ->> 'outcome' = 'denied' THEN 'DENIED'
                         ELSE 'PERMANENT' END::draftsman.error_class,
           queued_at = CASE WHEN $5 = 'resumed' THEN draftsman.now() ELSE j.queued_at END,
           hold = CASE WHEN $5 = 'resumed' THEN j.hold END,
           finished_at = CASE WHEN $5 <> 'resumed' THEN draftsman.now() END
     WHERE j.number = $1 AND j.status IN ('waiting_for_input', 'waiting_for_approval')
    RETURNING j.status,
              CASE WHEN j.status = 'resumed' THEN pg_notify('draftsman_jobs', j.queue)::text END;
    PERFORM draftsman.claim_in_grace($1);
END $$;

CREATE FUNCTION draftsman.extend_question(
    job bigint, ordinal int, seconds float8, actor text
) RETURNS TABLE (expires_at timestamptz) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    until timestamptz;
BEGIN
    PERFORM draftsman.require_control($1, $4, 'operator');
    IF draftsman.session_kind() = 'worker' THEN
        PERFORM draftsman.deny_access('workers cannot extend questions');
    END IF;
    IF $3 <= 0 OR $3 > 366 * 86400 THEN
        PERFORM draftsman.deny_access(
            'a question can be extended by more than 0 s and at most 366 days');
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = $1 FOR NO KEY UPDATE;
    UPDATE draftsman.job_questions q
       SET expires_at = CASE WHEN $3 IS NULL OR q.expires_at IS NULL THEN NULL
           ELSE greatest(q.expires_at, draftsman.now()) + make_interval(secs => $3) END
     WHERE q.job = $1 AND q.ordinal = $2 AND q.status = 'open'
       AND (coalesce(q.expires_at > draftsman.now(), true)
            OR (q.on_expire = 'escalate' AND NOT EXISTS (
                SELECT FROM draftsman.question_times t
                 WHERE t.job = q.job AND t.question = q.ordinal AND t.escalated_at IS NOT NULL)))
    RETURNING q.expires_at INTO until;
    IF FOUND THEN
        PERFORM draftsman.edit_question($1, $2);
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES ($1, 'question_extended', $4,
                jsonb_build_object('question', $2, 'expires_at', until));
        RETURN QUERY SELECT until;
    END IF;
END $$;

-- Records that an accepted answer was edited or deleted in its chat, once for each change; the decision
-- stays. The caller holds the lock of the job. Returns whether it is a change of an answer of this actor.
CREATE FUNCTION draftsman.record_answer_change(
    job bigint, question int, event text, kind text, actor text, detail jsonb
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answered draftsman.job_answers;
    changed  jsonb;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') OR NOT draftsman.may_act_as($5)
       OR $4 NOT IN ('answer_edited', 'answer_deleted') OR pg_column_size($6) > 16384 THEN
        PERFORM draftsman.deny_access(format('%s cannot record a change of an answer', session_user));
    END IF;
    SELECT a.* INTO answered FROM draftsman.job_answers a
     WHERE a.job = $1 AND a.question = $2 AND a.source_event_id = $3 AND a.accepted
       AND (draftsman.session_kind() = 'owner' OR a.source || ':' || a.responder_id = $5);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    changed := $6 || jsonb_build_object('question', $2, 'answer', answered.id, 'event', $3);
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT $1, $4, $5, changed
     WHERE NOT EXISTS (SELECT FROM draftsman.job_events e
                        WHERE e.job = $1 AND e.kind = $4
                          AND e.payload @> changed);
    RETURN FOUND;
END $$;

-- Tokens --------------------------------------------------------------------------------------

-- A new token replaces the unused token of the same approver.
CREATE FUNCTION draftsman.mint_token(
    token_hash text, job bigint, question int, approver text, minted_by text, actor text
) RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text := draftsman.person_of('cli', session_user::text);
    minted text;
BEGIN
    IF draftsman.session_kind() <> 'owner' AND NOT (
        draftsman.session_kind() = 'person' AND draftsman.may_act_as($6)
        AND person = $4 AND $5 = $4
        AND draftsman.has_role(person, 'approver') AND EXISTS (
            SELECT FROM draftsman.job_questions q JOIN draftsman.jobs j ON j.number = q.job
             WHERE q.job = $2 AND q.ordinal = $3 AND draftsman.list_includes(person, q.approvers)
               AND (j.invoker_id <> person
                    OR (SELECT p.self_approval FROM draftsman.approval_policy p)))) IS TRUE THEN
        PERFORM draftsman.deny_access(format('%s cannot mint a token for %s', session_user, $4));
    END IF;
    INSERT INTO draftsman.approval_tokens AS t (token_hash, job, question, approver, minted_by)
    SELECT $1, q.job, q.ordinal, $4, $5
      FROM draftsman.job_questions q
     WHERE q.job = $2 AND q.ordinal = $3 AND q.status = 'open' AND q.kind = 'approval'
        ON CONFLICT ON CONSTRAINT approval_tokens_job_question_approver_key DO UPDATE
           SET token_hash = excluded.token_hash, minted_by = excluded.minted_by,
               created_at = draftsman.now()
         WHERE t.used_at IS NULL
    RETURNING t.approver INTO minted;
    IF FOUND THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES ($2, 'token_minted', $6,
                jsonb_build_object('question', $3, 'approver', $4, 'by', $5));
        RETURN NEXT minted;
    END IF;
END $$;

-- Records that a token was refused: always in the count of the question's refusals, and as an event
-- while they are few. The event of a person's session names an approver only if it is a known person.
CREATE FUNCTION draftsman.refuse_token(
    job bigint, question int, approver text, voter text, reason text, actor text, most int
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'person')
       OR NOT draftsman.may_act_as($6) THEN
        PERFORM draftsman.deny_access(format('%s cannot act as %s', session_user, $6));
    END IF;
    IF draftsman.count_refused($1, $2, $4, $5) <= least($7, 100) THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES ($1, 'token_refused', $6, jsonb_strip_nulls(jsonb_build_object(
            'question', $2, 'reason', left($5, 1000), 'approver',
            CASE WHEN draftsman.session_kind() = 'owner' OR EXISTS (
                      SELECT FROM draftsman.people p WHERE p.name = $3)
                 THEN left($3, 1000) END)));
    END IF;
END $$;

-- Redeems a token together with the answer that its approver has just given.
CREATE FUNCTION draftsman.use_token(token_hash text, actor text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    used draftsman.approval_tokens;
BEGIN
    UPDATE draftsman.approval_tokens t SET used_at = draftsman.now()
     WHERE t.token_hash = $1 AND t.used_at IS NULL
       AND (draftsman.session_kind() = 'owner' OR EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = t.job AND a.question = t.question AND a.accepted AND a.voter = t.approver
               AND a.source || ':' || a.responder_id = $2 AND draftsman.may_act_as($2)))
    RETURNING t.* INTO used;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (used.job, 'token_redeemed', $2,
            jsonb_build_object('question', used.question, 'approver', used.approver));
    RETURN true;
END $$;

-- Jobs ----------------------------------------------------------------------------------------

-- Records an action on a job that a chat refused a person, once for each event of the chat and at most
-- 200 for a job; the caller holds the lock of the job.
CREATE FUNCTION draftsman.refuse_action(job bigint, actor text, detail jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') OR NOT draftsman.may_act_as($2)
       OR pg_column_size($3) > 16384 THEN
        PERFORM draftsman.deny_access(format('%s cannot act as %s', session_user, $2));
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT $1, 'action_refused', $2, $3
     WHERE (SELECT count(*) < 200
               AND count(*) FILTER (WHERE e.payload -> 'event' = $3 -> 'event') = 0
              FROM draftsman.job_events e
             WHERE e.job = $1 AND e.kind = 'action_refused');
END $$;

-- Requests that a running job stops.
CREATE FUNCTION draftsman.request_cancel(job bigint, by text, reason text, detail jsonb)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control($1, $2, 'operator');
    RETURN draftsman.record_cancel_request($1, $2, $3, $4, $2);
END $$;

-- The same for a caller that has checked who cancels the job.
CREATE FUNCTION draftsman.record_cancel_request(
    job bigint, by text, reason text, detail jsonb, actor text
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE draftsman.job_states j
       SET cancel_requested_at = draftsman.now(), cancel_requested_by = $2, cancel_reason = $3,
           updated_at = draftsman.now()
     WHERE j.number = $1 AND j.status = 'running' AND j.cancel_requested_at IS NULL;
    IF FOUND THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES ($1, 'cancel_requested', $5, $4);
        PERFORM pg_notify('draftsman_runs', $1::text);
        RETURN true;
    END IF;
    RETURN false;
END $$;

-- Cancels an unfinished job with its open questions and its open run.
CREATE FUNCTION draftsman.cancel_job(job bigint, by text, reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control($1, $2, 'operator');
    PERFORM set_config('draftsman.actor', $2, true), set_config('draftsman.detail', '', true);
    RETURN draftsman.end_canceled_job($1, $2, $3);
END $$;

-- The same for a caller that has checked who cancels the job, and set the actor.
CREATE FUNCTION draftsman.end_canceled_job(job bigint, by text, reason text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE draftsman.job_questions q SET status = 'canceled', resolution = jsonb_build_object(
               'outcome', 'canceled', 'via', 'person', 'by', jsonb_build_array($2))
     WHERE q.job = $1 AND q.status = 'open';
    UPDATE draftsman.job_runs r SET status = 'canceled', finished_at = draftsman.now()
     WHERE r.job = $1 AND r.status = 'running';
    UPDATE draftsman.job_states j
       SET status = 'canceled', claimed_from = NULL, worker_id = NULL, lease_token = NULL,
           hold = NULL, held_by = NULL, next_retry_at = NULL, finished_at = draftsman.now(), updated_at = draftsman.now(),
           cancel_requested_at = coalesce(j.cancel_requested_at, draftsman.now()),
           cancel_requested_by = coalesce(j.cancel_requested_by, $2),
           cancel_reason = coalesce(j.cancel_reason, $3), version = j.version + 1
     WHERE j.number = $1 AND j.finished_at IS NULL;
    IF FOUND THEN
        PERFORM pg_notify('draftsman_runs', $1::text);
    END IF;
    RETURN FOUND;
END $$;

-- Records a request that joined the live job of its subject: once for each key, and once for each
-- person and digest, so that a repeated request has a single event; at most 200 events a job.
CREATE FUNCTION draftsman.join_request(job bigint, actor text, request jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.may_act_as(actor) AND (
           draftsman.session_kind() = 'bot'  -- also for a board
           OR (draftsman.has_role(draftsman.person_of_actor(actor), 'invoker')
               AND request ->> 'requester' = draftsman.person_of_actor(actor)))) IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('%s may not ask for D-%s', actor, job));
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = $1 FOR NO KEY UPDATE;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT $1, 'request_joined', $2, $3
     WHERE (SELECT count(*) < 200
               AND count(*) FILTER (WHERE e.payload -> 'key' = $3 -> 'key'
                   OR (e.payload -> 'digest', e.payload -> 'requester')
                      = ($3 -> 'digest', $3 -> 'requester')) = 0
              FROM draftsman.job_events e
             WHERE e.job = $1 AND e.kind = 'request_joined');
END $$;

-- Copies the newest checkpoint and its work bundle to a retry or a follow-up, as those of a run before its first.
CREATE FUNCTION draftsman.inherit_checkpoint(old bigint, new bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latest draftsman.job_checkpoints;
    copied bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.jobs j
                    WHERE j.number = $2 AND j.run_count = 0
                      AND (j.retry_of = $1 OR draftsman.follows_up($1, $2)))
       OR EXISTS (SELECT FROM draftsman.job_checkpoints c WHERE c.job = $2) THEN
        RETURN false;
    END IF;
    SELECT * INTO latest FROM draftsman.job_checkpoints c
     WHERE c.job = $1
       AND (c.bundle IS NULL
            OR (SELECT a.kind FROM draftsman.artifacts a WHERE a.id = c.bundle) = 'bundle')
     ORDER BY c.id DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.artifacts (job, run, name, kind, size, sha256)
    SELECT $2, 0, a.name, a.kind, a.size, a.sha256
      FROM draftsman.artifacts a WHERE a.id = latest.bundle
    RETURNING id INTO copied;
    INSERT INTO draftsman.artifact_chunks (artifact, seq, data)
    SELECT copied, k.seq, k.data FROM draftsman.artifact_chunks k WHERE k.artifact = latest.bundle;
    INSERT INTO draftsman.job_checkpoints (job, run, data, bundle)
    VALUES ($2, 0, latest.data, copied);
    RETURN true;
END $$;

-- Submissions -------------------------------------------------------------------------------------

-- Permission to submit a job: a person submits own requests, a bot requests of people in its channels,
-- a worker retries of lost jobs, the jobs of schedules and follow-ups on pull requests. A retry repeats the earlier request under
-- the key of its chain, on behalf of the person who made that request or of an operator.
CREATE FUNCTION draftsman.may_submit(job draftsman.jobs, kind text, actor text) RETURNS boolean
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
                job.repo_owner, job.repo_name, job.ticket_url, job.ticket_title, job.ticket_text, job.template,
                job.template_version) IS NOT DISTINCT FROM
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

-- The column with a value that no program stores for a request, NULL without any. It is evaluated for
-- every session but the owner's, whose programs check the same (draftsman.domain.requests). The clock,
-- the position and the state belong to the database: the roles may insert only the columns of a request.
CREATE FUNCTION draftsman.forged_column(job draftsman.jobs) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN job.created_at <> draftsman.now() THEN 'created_at'
        WHEN job.updated_at <> draftsman.now() THEN 'updated_at'
        WHEN job.queued_at <> draftsman.now() THEN 'queued_at'
        WHEN job.run_at NOT BETWEEN '1970-01-01Z' AND '2201-01-02Z' THEN 'run_at'
        WHEN (job.status = 'scheduled') <> coalesce(job.run_at > draftsman.now(), false) THEN 'status'
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

-- The fields of a request as clients send them: those that all requests of a batch share.
CREATE TYPE draftsman.request AS (
    id                    uuid,
    type                  text,
    idempotency_key       text,
    request_digest        text,
    queue                 text,
    priority              int,
    subject_key           text,
    concurrency_key       text,
    mode                  draftsman.job_mode,
    source                draftsman.channel,
    source_type           draftsman.source_type,
    external_event_id     text,
    invoker_id            text,
    invoker_display_name  text,
    repo_host             text,
    repo_owner            text,
    repo_name             text,
    ticket_url            text,
    ticket_title          text,
    ticket_text           text,
    payload               jsonb,
    overrides             jsonb,
    requested_skills      text[],
    tags                  text[],
    agent                 text,
    retry_of              bigint,
    chain_length          int,
    template              text,
    template_version      int,
    run_at                timestamptz,
    delay                 float8,
    max_attempts          int,
    max_retries           int,
    on_lost               draftsman.on_lost,
    has_targets           boolean,
    hold                  draftsman.job_hold
);

-- The key that a request has in common with those that repeat its job, and the job that it replaced.
-- Only requests that are to be unique have a row. A debounced job starts by `debounce_until`, which
-- the jobs that replace it inherit, so that a stream of requests cannot postpone it for ever.
CREATE TABLE draftsman.unique_keys (
    job             bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    key             text NOT NULL CHECK (key <> ''),
    replaces        bigint UNIQUE CHECK (replaces < job),
    debounce_until  timestamptz
);
--   unique_keys_key  the jobs with a key, newest first
CREATE INDEX unique_keys_key ON draftsman.unique_keys (key, job);

-- A key is stored with its request, before anything happens to the job, and after the end of a job that
-- it replaces: no session but the owner's gives a key to an earlier job, which requests would then join.
CREATE FUNCTION draftsman.check_unique_key() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
        RAISE EXCEPTION 'the unique key of D-% must be stored with its request', NEW.job
            USING ERRCODE = 'DM001';
    END IF;
    IF NEW.debounce_until IS NOT NULL AND (
           (SELECT s.run_at FROM draftsman.job_states s WHERE s.number = NEW.job)
               > NEW.debounce_until
        OR (SELECT k.debounce_until < NEW.debounce_until OR k.debounce_until <= draftsman.now()
              FROM draftsman.unique_keys k WHERE k.job = NEW.replaces)) THEN
        RAISE EXCEPTION 'D-% postpones its work past the limit of its debounce', NEW.job
            USING ERRCODE = 'DM001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER unique_keys_inserted AFTER INSERT ON draftsman.unique_keys
    FOR EACH ROW EXECUTE FUNCTION draftsman.check_unique_key();
