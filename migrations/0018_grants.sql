-- The rights of database roles: workers, bots and people write what their role allows; the owner of
-- the schema may do everything.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0018_grants');

-- Who may make these jobs: a person their own requests, a bot those of people in its channels, a
-- worker those that follow lost ones. A retry is the earlier request under the key of its chain, by
-- who asked for that or an operator.
CREATE FUNCTION draftsman.may_submit(job draftsman.jobs, kind text, actor text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text := draftsman.person_behind(actor);
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
           AND (job.type, job.payload, job.request_digest, job.agent, job.mode, job.repo_owner,
                job.repo_name, job.ticket_url, job.ticket_title, job.ticket_text)
               IS NOT DISTINCT FROM
               (o.type, o.payload, o.request_digest, o.agent, o.mode, o.repo_owner,
                o.repo_name, o.ticket_url, o.ticket_title, o.ticket_text)) THEN
        RETURN false;
    END IF;
    IF kind = 'worker' THEN
        RETURN job.source = 'internal' AND job.retry_of IS NOT NULL;
    END IF;
    RETURN kind IN ('person', 'bot') AND draftsman.speaks_for(job.source || ':' ||
               substr(actor, strpos(actor, ':') + 1))
       AND job.invoker_id = person
       AND (job.retry_of IS NOT NULL OR (draftsman.has_role(person, 'invoker')
            AND NOT starts_with(job.idempotency_key, 'retry:')));
END $$;

CREATE OR REPLACE FUNCTION draftsman.record_creation() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wrong  text;
    role   text := draftsman.session_kind();
    who    text := coalesce(draftsman.session_actor(), session_user);
    detail jsonb := CASE WHEN role IN ('owner', 'worker')
        THEN coalesce(nullif(current_setting('draftsman.detail', true), ''), '{}') ELSE '{}' END;
BEGIN
    INSERT INTO draftsman.job_events (job, kind, to_status, actor, payload)
    SELECT n.number, 'job_created', n.status, who,
           jsonb_strip_nulls(jsonb_build_object('type', n.type, 'source', n.source, 'mode', n.mode,
               'agent', n.agent, 'repo_name', n.repo_name, 'retry_of', n.retry_of)) || detail
      FROM new_jobs n
     ORDER BY n.number;

    SELECT n.status INTO wrong
      FROM new_jobs n
     WHERE n.status NOT IN ('scheduled', 'queued') OR n.version <> 1 OR n.run_count <> 0
        OR n.attempts <> 0 OR n.retry_count <> 0 OR n.cancel_requested_at IS NOT NULL
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'a job is created queued or scheduled, unstarted, with version 1; not %',
            wrong USING ERRCODE = 'DM001';
    END IF;
    SELECT n.idempotency_key INTO wrong
      FROM new_jobs n
     WHERE starts_with(n.idempotency_key, 'auto:') AND n.idempotency_key <> 'auto:' || n.id
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'a key that begins with auto: goes on with the id of the job; not %', wrong
            USING ERRCODE = 'DM001';
    END IF;
    IF role <> 'owner' THEN
        SELECT n.invoker_id INTO wrong
          FROM new_jobs n
          JOIN draftsman.jobs j ON j.number = n.number
         WHERE n.number NOT BETWEEN 1 AND (SELECT last_value FROM draftsman.jobs_number_seq)
            OR draftsman.may_submit(j, role, who) IS NOT TRUE
         LIMIT 1;
        IF FOUND THEN
            PERFORM draftsman.refuse_session(format('%s may not submit a job of %s', who, wrong));
        END IF;
    END IF;
    RETURN NULL;
END $$;

-- Triggers write what their sessions may not; the actor of a change is one that the session may
-- name, and a job leaves its gate by an approval, or a denial that it takes, alone.
CREATE FUNCTION pg_temp.patch(name text, before text, after text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    old text := pg_get_functiondef(name::regprocedure);
BEGIN
    IF strpos(old, before) = 0 THEN
        RAISE EXCEPTION '% has no: %', name, before;
    END IF;
    EXECUTE overlay(old PLACING after FROM strpos(old, before) FOR length(before));
END $$;
SELECT pg_temp.patch('draftsman.record_transitions()',
    'nullif(current_setting(''draftsman.actor'', true), '''')', 'draftsman.session_actor()');
SELECT pg_temp.patch('draftsman.tell_targets()', 'BEGIN', $patch$BEGIN
    IF OLD.status = 'waiting_for_approval' AND NEW.status = 'resumed' AND (
        SELECT q.kind = 'approval' AND q.status = 'answered'
               AND (q.resolution ->> 'outcome' = 'approved'
                    OR (q.resolution ->> 'outcome' = 'denied' AND q.on_deny = 'continue'))
          FROM draftsman.job_questions q WHERE q.job = NEW.number
         ORDER BY q.ordinal DESC LIMIT 1) IS NOT TRUE THEN
        RAISE EXCEPTION 'D-%: a job goes on from a gate when that was decided', NEW.number
            USING ERRCODE = 'DM003';
    END IF;
    IF NOT NEW.has_targets THEN
        RETURN NULL;
    END IF;$patch$);
SELECT pg_temp.patch('draftsman.greet_targets()', 'BEGIN', $patch$BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') AND EXISTS (
        SELECT FROM new_targets t
          JOIN draftsman.jobs j ON j.number = t.job
         CROSS JOIN LATERAL (SELECT draftsman.person_of('cli', session_user::text) AS name) me
         WHERE t.thread_key <> 'D-' || t.job || ' ' || t.channel || ':' || t.target
                               || coalesce('/' || t.thread, '')
            OR (draftsman.session_kind() = 'person' AND j.invoker_id IS DISTINCT FROM me.name
                AND NOT draftsman.has_role(me.name, 'invoker')
                AND NOT draftsman.has_role(me.name, 'operator'))) THEN
        PERFORM draftsman.refuse_session('a target is added with a request, in its own thread');
    END IF;$patch$);
DROP TRIGGER jobs_told ON draftsman.jobs;
CREATE TRIGGER jobs_told AFTER UPDATE OF status ON draftsman.jobs FOR EACH ROW
    WHEN ((NEW.has_targets AND NEW.status <> OLD.status AND NEW.status <> 'claimed')
          OR (OLD.status = 'waiting_for_approval' AND NEW.status = 'resumed'))
    EXECUTE FUNCTION draftsman.tell_targets();
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{record_transitions(),tell_targets(),greet_targets(),settle_copies(),
        order_deliveries(),time_question(),check_runs(),make_event_partitions(int),
        make_event_partition(date),"drop_event_month(date,text,text,text)",
        hold_event_month(date)}'::text[]
    LOOP
        EXECUTE format('ALTER FUNCTION draftsman.%s SECURITY DEFINER', name);
        EXECUTE format('ALTER FUNCTION draftsman.%s SET search_path = pg_catalog, pg_temp', name);
    END LOOP;
END $$;

-- A month that others than the owner drop is long over.
SELECT pg_temp.patch('draftsman.drop_event_month(date,text,text,text)', 'BEGIN', $patch$BEGIN
    IF draftsman.session_kind() <> 'owner' AND after > draftsman.now() - interval '1 month' THEN
        PERFORM draftsman.refuse_session('only months that are long over leave the database');
    END IF;$patch$);

-- Events that a session adds by itself, beside those of triggers and functions.
CREATE FUNCTION draftsman.may_note(job bigint, kind text, actor text, detail jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE draftsman.session_kind()
         WHEN 'owner' THEN true
         WHEN 'worker' THEN draftsman.speaks_for(actor) AND kind NOT LIKE 'job\_%'
              AND kind NOT IN ('answer_received', 'vote_received', 'token_minted',
                               'token_redeemed', 'cancel_requested')
         WHEN 'bot' THEN CASE WHEN actor = 'system'
              THEN kind LIKE 'delivery\_%' OR kind LIKE 'attachment\_%'
              ELSE draftsman.speaks_for(actor) END
         WHEN 'person' THEN draftsman.speaks_for(actor) ELSE false END
    AND (draftsman.session_kind() = 'owner'
         OR EXISTS (SELECT FROM draftsman.jobs j WHERE j.number = may_note.job))
    AND (draftsman.session_kind() IN ('owner', 'worker') OR actor = 'system'
         OR CASE kind
            WHEN 'vote_received' THEN EXISTS (
                SELECT FROM draftsman.job_answers a WHERE a.job = may_note.job AND a.accepted
                   AND a.source || ':' || a.responder_id = actor
                   AND a.question::text = detail ->> 'question' AND a.voter = detail ->> 'voter')
            WHEN 'token_minted' THEN EXISTS (
                SELECT FROM draftsman.approval_tokens t WHERE t.job = may_note.job
                   AND t.approver = draftsman.person_behind(actor))
            WHEN 'token_redeemed' THEN EXISTS (
                SELECT FROM draftsman.approval_tokens t WHERE t.job = may_note.job
                   AND t.approver = draftsman.person_behind(actor) AND t.used_at IS NOT NULL)
            ELSE kind IN ('answer_refused', 'answer_edited', 'answer_deleted', 'token_refused',
                          'action_refused', 'question_extended', 'redelivered') END);
ALTER TABLE draftsman.job_events ENABLE ROW LEVEL SECURITY;
CREATE POLICY job_events_read ON draftsman.job_events FOR SELECT USING (true);
CREATE POLICY job_events_noted ON draftsman.job_events FOR INSERT
    WITH CHECK (draftsman.may_note(job, kind, actor, payload));

-- What operators alone change in a person's session.
CREATE FUNCTION draftsman.only_operators() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() = 'person'
       AND NOT has_schema_privilege(current_user, 'draftsman', 'CREATE')  -- a trigger's own writes
       AND NOT draftsman.has_role(
        draftsman.person_of('cli', session_user::text), 'operator') THEN
        PERFORM draftsman.refuse_session(format('%s is no operator', session_user));
    END IF;
    RETURN NULL;
END $$;
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{repos,repo_mappings,repo_profiles,trello_board_configs,trello_labels,
        poll_cursors}'::text[]
    LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE OR DELETE ON draftsman.%I
            EXECUTE FUNCTION draftsman.only_operators()', name || '_operators', name);
    END LOOP;
END $$;
CREATE TRIGGER deliveries_operators BEFORE UPDATE ON draftsman.deliveries
    EXECUTE FUNCTION draftsman.only_operators();

-- Refused answers are counted one by one, a person's as their own.
CREATE FUNCTION draftsman.count_refused() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' THEN
        NEW.answers := 1 + CASE WHEN TG_OP = 'UPDATE' THEN OLD.answers ELSE 0 END;
        NEW.last_at := draftsman.now();
    END IF;
    IF draftsman.session_kind() = 'person' THEN
        NEW.last_voter := coalesce(draftsman.person_of('cli', session_user::text),
                                   'cli:' || session_user);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refused_answers_counted BEFORE INSERT OR UPDATE ON draftsman.refused_answers
    FOR EACH ROW EXECUTE FUNCTION draftsman.count_refused();

-- Gives the four roles their rights, those that exist, and makes those that are missing where this
-- session may. Returns what a DBA has to run for those that are still missing, else nothing. Safe to
-- repeat, and to be called after a restore.
CREATE FUNCTION draftsman.grant_roles() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    role     text;
    step     text;
    missing  text := '';
    readable text;
BEGIN
    REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA draftsman FROM PUBLIC;
    SELECT string_agg(format('draftsman.%I', c.relname), ', ') INTO readable
      FROM pg_class c
     WHERE c.relnamespace = 'draftsman'::regnamespace AND c.relkind IN ('r', 'p', 'v')
       AND c.relname <> 'identity_links';
    FOREACH role IN ARRAY '{draftsman_worker,draftsman_bot,draftsman_person,draftsman_reader}'::text[]
    LOOP
        IF to_regrole(role) IS NULL THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN NULL;  -- from another database
                WHEN insufficient_privilege THEN NULL;
            END;
        END IF;
        IF to_regrole(role) IS NULL THEN
            missing := missing || format('CREATE ROLE %I NOLOGIN; ', role);
            CONTINUE;
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA draftsman TO %I', role);
        EXECUTE format('GRANT SELECT ON %s TO %I', readable, role);
        EXECUTE format('GRANT SELECT (channel, external_id, display_name, person, linked_by, linked_at,
            created_at) ON draftsman.identity_links TO %I', role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION draftsman.now(), draftsman.clock_offset(),
            draftsman.session_kind(), draftsman.session_actor(), draftsman.speaks_for(text),
            draftsman.person_of(text, text), draftsman.person_behind(text),
            draftsman.may_note(bigint, text, text, jsonb), draftsman.has_role(text, text),
            draftsman.next_reminder(timestamptz, timestamptz), draftsman.feed_epoch(),
            draftsman.refuse_session(text) TO %I', role);
        CONTINUE WHEN role = 'draftsman_reader';
        EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA draftsman TO %I', role);
        FOREACH step IN ARRAY ARRAY[
            'GRANT INSERT (job, run, kind, actor, payload) ON draftsman.job_events TO %I',
            'GRANT INSERT (job, question, kind, source, source_event_id, responder_id,
                responder_display_name, voter, payload, accepted, reason)
                ON draftsman.job_answers TO %I',
            'GRANT INSERT (job, question, answers, last_voter, last_reason),
                UPDATE (answers, last_voter, last_reason, last_at)
                ON draftsman.refused_answers TO %I',
            'GRANT INSERT ON draftsman.jobs, draftsman.job_targets TO %I',
            'GRANT EXECUTE ON FUNCTION draftsman.resolve_question(bigint, int,
                draftsman.question_status, jsonb, draftsman.job_status, text, text, text, text),
                draftsman.extend_question(bigint, int, float8, text),
                draftsman.request_cancel(bigint, text, text, jsonb),
                draftsman.cancel_job(bigint, text, text), draftsman.use_token(text),
                draftsman.inherit_checkpoint(bigint, bigint), draftsman.is_borne_out(
                draftsman.job_questions, draftsman.question_status, jsonb) TO %I']
        LOOP
            EXECUTE format(step, role);
        END LOOP;
    END LOOP;
    IF to_regrole('draftsman_worker') IS NOT NULL THEN
        GRANT UPDATE ON draftsman.jobs, draftsman.claimable TO draftsman_worker;
        GRANT INSERT, UPDATE ON draftsman.job_runs, draftsman.job_steps, draftsman.job_quotas,
            draftsman.artifacts, draftsman.deliveries, draftsman.channel_limits, draftsman.leases
            TO draftsman_worker;
        GRANT INSERT, DELETE ON draftsman.artifact_chunks, draftsman.job_checkpoints,
            draftsman.run_log_chunks TO draftsman_worker;
        GRANT INSERT, UPDATE, DELETE ON draftsman.workers TO draftsman_worker;
        GRANT INSERT, UPDATE (status, resolution, answered_at, expires_at, approvers)
            ON draftsman.job_questions TO draftsman_worker;
        GRANT INSERT (job, question, escalate_to, patch_sha256), UPDATE (remind_at, reminders, escalated_at)
            ON draftsman.question_times TO draftsman_worker;
        GRANT EXECUTE ON FUNCTION draftsman.make_event_partitions(int),
            draftsman.make_event_partition(date), draftsman.hold_event_month(date),
            draftsman.drop_event_month(date, text, text, text) TO draftsman_worker;
    END IF;
    IF to_regrole('draftsman_bot') IS NOT NULL THEN
        -- one column of each is what a row can be locked by, and no update passes its triggers
        GRANT UPDATE (id) ON draftsman.jobs TO draftsman_bot;
        GRANT UPDATE (run) ON draftsman.job_questions TO draftsman_bot;
        GRANT INSERT, UPDATE ON draftsman.deliveries, draftsman.channel_limits TO draftsman_bot;
        GRANT INSERT, UPDATE, DELETE ON draftsman.trello_board_configs, draftsman.trello_labels,
            draftsman.poll_cursors TO draftsman_bot;
        GRANT EXECUTE ON FUNCTION draftsman.offer_link(
            draftsman.channel, text, text, text, float8) TO draftsman_bot;
    END IF;
    IF to_regrole('draftsman_person') IS NOT NULL THEN
        GRANT UPDATE (id) ON draftsman.jobs TO draftsman_person;
        GRANT UPDATE (run) ON draftsman.job_questions TO draftsman_person;
        GRANT UPDATE (status, in_doubt, attempts) ON draftsman.deliveries TO draftsman_person;
        GRANT INSERT, UPDATE, DELETE ON draftsman.repos, draftsman.repo_mappings,
            draftsman.repo_profiles, draftsman.trello_board_configs, draftsman.trello_labels,
            draftsman.poll_cursors TO draftsman_person;
        GRANT EXECUTE ON FUNCTION draftsman.mint_token(text, bigint, int, text, text),
            draftsman.link_identity(text, text, text),
            draftsman.unlink_identity(draftsman.channel, text) TO draftsman_person;
    END IF;
    RETURN missing;
END $$;
SELECT draftsman.grant_roles();
