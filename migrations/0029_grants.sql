-- Privileges of the group roles of workers, bots, people and readers; the owner of the schema has
-- all privileges.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0029_grants') AS applied \gset
\if :applied \echo '0029_grants is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0029_grants');

-- Events that workers and bots insert directly, beside those of triggers and functions, which write the
-- event of each change that they make: a person's session inserts none. A worker inserts those of its runs
-- and sweeps, and both those of deliveries that they send. The list has the kinds that only functions
-- write.
CREATE FUNCTION draftsman.may_insert_event(
    job bigint, kind text, actor text, detail jsonb
) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE draftsman.session_kind()
         WHEN 'owner' THEN true
         WHEN 'worker' THEN draftsman.may_act_as(actor) AND actor !~ '^(internal|schedule):'
              AND NOT draftsman.applies_decision(actor) AND kind <> ALL (
              '{action_refused,answer_deleted,answer_edited,answer_received,answer_refused,
                attachment_refused,attachments_added,budget_raised,cancel_requested,message_sent,
                question_acknowledged,question_delegated,question_extended,question_notified,
                question_unacknowledged,queue_reserved,redelivered,request_joined,
                reservation_ended,rule_applied,token_minted,token_redeemed,token_refused,
                vote_received}'::text[]) AND kind NOT LIKE 'job\_%' AND kind NOT LIKE 'needs\_%'
         WHEN 'bot' THEN actor = 'system' AND kind IN ('delivery_sent', 'delivery_dead_lettered',
              'attachment_uploaded', 'attachment_failed')
         ELSE false END
    AND (draftsman.session_kind() = 'owner'
         OR EXISTS (SELECT FROM draftsman.job_requests j WHERE j.number = may_insert_event.job))
    AND (draftsman.session_kind() = 'owner' OR kind !~ '^(delivery|attachment)_'
         OR EXISTS (SELECT FROM draftsman.deliveries d  -- as it is before this statement ends it
                     WHERE d.job = may_insert_event.job AND d.status = 'sending'
                       AND to_jsonb(d.seq) = detail -> 'delivery'
                       AND d.seq = CASE WHEN jsonb_typeof(detail -> 'delivery') = 'number'
                                   THEN (detail ->> 'delivery')::numeric END));
ALTER TABLE draftsman.job_events ENABLE ROW LEVEL SECURITY;
CREATE POLICY job_events_read ON draftsman.job_events FOR SELECT USING (true);
CREATE POLICY job_events_insert ON draftsman.job_events FOR INSERT
    WITH CHECK (draftsman.may_insert_event(job, kind, actor, payload));

-- Tables that a person's session may change only as an operator.
CREATE FUNCTION draftsman.require_operator() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() = 'person'
       AND NOT has_schema_privilege(current_user, 'draftsman', 'CREATE')  -- a trigger's own writes
       AND NOT draftsman.has_role(
        draftsman.person_of('cli', session_user::text), 'operator') THEN
        PERFORM draftsman.deny_access(format('%s is not an operator', session_user));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER repos_operators BEFORE INSERT OR UPDATE OR DELETE ON draftsman.repos
    EXECUTE FUNCTION draftsman.require_operator();
CREATE TRIGGER repo_mappings_operators BEFORE INSERT OR UPDATE OR DELETE ON draftsman.repo_mappings
    EXECUTE FUNCTION draftsman.require_operator();
CREATE TRIGGER repo_profiles_operators BEFORE INSERT OR UPDATE OR DELETE ON draftsman.repo_profiles
    EXECUTE FUNCTION draftsman.require_operator();
CREATE TRIGGER job_templates_operators BEFORE INSERT OR UPDATE OR DELETE ON draftsman.job_templates
    EXECUTE FUNCTION draftsman.require_operator();
CREATE TRIGGER trello_board_configs_operators
    BEFORE INSERT OR UPDATE OR DELETE ON draftsman.trello_board_configs
    EXECUTE FUNCTION draftsman.require_operator();
CREATE TRIGGER trello_labels_operators BEFORE INSERT OR UPDATE OR DELETE ON draftsman.trello_labels
    EXECUTE FUNCTION draftsman.require_operator();
CREATE TRIGGER poll_cursors_operators BEFORE INSERT OR UPDATE OR DELETE ON draftsman.poll_cursors
    EXECUTE FUNCTION draftsman.require_operator();

-- Grants the privileges of the four group roles, creating missing roles where this session may.
-- Returns the statements that a DBA has to run for the roles that are still missing, else nothing.
-- Safe to repeat, and to run after a restore.
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
       AND c.relname NOT IN ('identity_links', 'web_links', 'web_sessions');
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
            draftsman.session_kind(), draftsman.session_actor(), draftsman.may_act_as(text),
            draftsman.has_long_texts(text[], int, int),
            draftsman.person_of(text, text), draftsman.person_of_actor(text),
            draftsman.may_insert_event(bigint, text, text, jsonb), draftsman.has_role(text, text),
            draftsman.next_reminder(timestamptz, timestamptz), draftsman.current_epoch(),
            draftsman.violated_rule(draftsman.job_states),
            draftsman.violates_hold(draftsman.job_hold, text, draftsman.job_status, int, text, text[]),
            draftsman.violated_request_rule(draftsman.job_requests), draftsman.deny_access(text),
            draftsman.is_template(text, int), draftsman.has_place(draftsman.job_states),
            draftsman.free_places(draftsman.limit_buckets),
            draftsman.next_start(draftsman.limit_buckets), draftsman.descendants(bigint),
            draftsman.current_members(bigint),
            draftsman.is_met(draftsman.dependency_condition, draftsman.job_status),
            draftsman.label_of(jsonb, text), draftsman.is_reserving(bigint, bigint),
            draftsman.budget_reply(draftsman.budget_state), draftsman.acts_in_chat(text, text), draftsman.is_controlled_in_chat(text),
            draftsman.budget_day(), draftsman.seconds_left(date), draftsman.budget_of(text, jsonb),
            draftsman.budget_states(draftsman.budget_uses, uuid),
            draftsman.events_of_row(bigint, int, text, draftsman.job_status, draftsman.job_status),
            draftsman.applies_decision(text), draftsman.figures_of(),
            draftsman.are_plain_words(text[]), draftsman.is_inner_path(text),
            draftsman.is_pattern(text[]), draftsman.matches_pattern(text[], text[]),
            draftsman.serving_workers(float8), draftsman.is_connected(int),
            draftsman.types_found_by_type(text), draftsman.is_served(text, text[]),
            draftsman.waiting_for_types(float8, int), draftsman.queues_in_use(),
            draftsman.verdict(draftsman.suspect_status, bigint, bigint),
            draftsman.is_allowed_by_rule(bigint, int, jsonb),
            draftsman.identical_to(bigint, int),
            draftsman.shown_instead(bigint, draftsman.delivery_channel, text, text),
            draftsman.is_silent(bigint, int, draftsman.delivery_channel, text, text),
            draftsman.next_digest(text),
            draftsman.escalates_by_ladder(draftsman.job_questions, draftsman.job_questions)
            TO %I', role);
        CONTINUE WHEN role = 'draftsman_reader';
        EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA draftsman TO %I', role);
        FOREACH step IN ARRAY ARRAY[
            'GRANT INSERT (job, question, kind, source, source_event_id, responder_id,
                responder_display_name, voter, payload, accepted, reason)
                ON draftsman.job_answers TO %I',
            'GRANT INSERT (number, id, type, idempotency_key, request_digest, mode, source,
                source_type, external_event_id, invoker_id, invoker_display_name, repo_host,
                repo_owner, repo_name, ticket_url, ticket_title, ticket_text, payload, overrides,
                requested_skills, tags, agent, retry_of, chain_length, template, template_version,
                created_at) ON draftsman.job_requests TO %I',
            'GRANT INSERT (number, type, queue, priority, subject_key, concurrency_key, hold,
                status, run_at, max_attempts, max_retries, on_lost, has_targets, queued_at,
                updated_at) ON draftsman.job_states TO %I',
            'GRANT INSERT (job, ordinal, channel, target, thread, thread_key, kinds, outcomes)
                ON draftsman.job_targets TO %I',
            'GRANT INSERT (job, key, replaces, debounce_until) ON draftsman.unique_keys TO %I',
            'GRANT EXECUTE ON FUNCTION draftsman.resolve_question(bigint, int,
                draftsman.question_status, jsonb, draftsman.job_status, text, text, text, text),
                draftsman.extend_question(bigint, int, float8, text),
                draftsman.count_refused(bigint, int, text, text),
                draftsman.redeliver(bigint[], text),
                draftsman.request_cancel(bigint, text, text, jsonb),
                draftsman.cancel_job(bigint, text, text),
                draftsman.link_jobs(bigint[], bigint[], draftsman.dependency_condition[]),
                draftsman.cancel_tree(bigint, text, text),
                draftsman.open_group(text, text, text, text),
                draftsman.add_to_group(bigint, bigint[], bigint[], boolean),
                draftsman.inherit_group(bigint, bigint),
                draftsman.cancel_group(bigint, text, text),
                draftsman.join_request(bigint, text, jsonb),
                draftsman.send_message(bigint, draftsman.channel, text, text, text, text, text),
                draftsman.inherit_messages(bigint, bigint),
                draftsman.inherit_attachments(bigint, bigint),
                draftsman.pause_job(bigint, text, text, text),
                draftsman.unpause_job(bigint, text, text), draftsman.use_token(text, text),
                draftsman.pause_queue(text, text, text, text),
                draftsman.resume_queue(text, text, text), draftsman.hold_paused_types(int),
                draftsman.release_resumed_types(int), draftsman.lock_free_keys(int),
                draftsman.assign_keys(text[]), draftsman.check_limits(int),
                draftsman.give_places(int), draftsman.do_due_work(int, bigint[], bigint[]),
                draftsman.do_pending_cancels(int, bigint[], bigint[]),
                draftsman.lock_due_work(int, bigint[], bigint[]), draftsman.move_job(bigint, text, bigint, text),
                draftsman.prioritize_job(bigint, int, text),
                draftsman.reserve_queue(bigint, float8, text), draftsman.release_queue(text, text),
                draftsman.delete_expired_reservations(),
                draftsman.inherit_checkpoint(bigint, bigint), draftsman.is_resolution_valid(
                draftsman.job_questions, draftsman.question_status, jsonb),
                draftsman.take_decision(bigint, boolean),
                draftsman.finish_decision(bigint) TO %I']
        LOOP
            EXECUTE format(step, role);
        END LOOP;
    END LOOP;
    FOREACH role IN ARRAY '{draftsman_worker,draftsman_bot}'::text[] LOOP
        CONTINUE WHEN to_regrole(role) IS NULL;
        EXECUTE format('GRANT INSERT, UPDATE (status, attempts, in_doubt, next_attempt_at,
            lease_token, sender_lock_id, call_ends_at, external_ref, last_error, sent_at)
            ON draftsman.deliveries TO %I', role);
    END LOOP;
    FOREACH role IN ARRAY '{draftsman_bot,draftsman_person}'::text[] LOOP
        CONTINUE WHEN to_regrole(role) IS NULL;
        EXECUTE format('GRANT EXECUTE ON FUNCTION draftsman.undo_decision(bigint),
            draftsman.add_attachments(bigint, text, int, jsonb),
            draftsman.hold_decision(bigint, int, draftsman.channel, text, text, text, text,
            boolean, jsonb, jsonb, float8),
            draftsman.request_follow_up(bigint, draftsman.channel, text, text, text, text),
            draftsman.record_views(bigint[], int[], draftsman.channel, text, text),
            draftsman.acknowledge_question(bigint, int, draftsman.channel, text, text, float8),
            draftsman.snooze_question(bigint, int, draftsman.channel, text, text, float8),
            draftsman.choose_digest(text, time[], text, text),
            draftsman.delegate_question(bigint, int, draftsman.channel, text, text, float8, text,
            text)
            TO %I', role);
    END LOOP;
    IF to_regrole('draftsman_worker') IS NOT NULL THEN
        GRANT EXECUTE ON FUNCTION draftsman.record_spawn(bigint, bigint, bigint),
            draftsman.completed_spawn(bigint, text),
            draftsman.await_jobs(bigint, bigint, bigint[]),
            draftsman.assign_agent(bigint, bigint, text) TO draftsman_worker;
        GRANT INSERT (job, run, kind, actor, payload) ON draftsman.job_events TO draftsman_worker;
        -- not the columns of a request, and not those of triggers: order, limits, children, targets
        GRANT UPDATE (attempts, retry_count, queued_at, run_at, next_retry_at, cancel_requested_at,
            cancel_requested_by, cancel_reason, hold, held_by, last_error, error_class, pr_url,
            run_count, claimed_at, started_at, claimed_from, status, version, updated_at,
            lease_token, worker_id, finished_at, result, result_token) ON draftsman.job_states TO draftsman_worker;
        -- allows SELECT ... FOR UPDATE; an update of the view would have the rights of its owner
        GRANT UPDATE (number) ON draftsman.claimable TO draftsman_worker;
        GRANT UPDATE (repo_host, repo_owner, repo_name) ON draftsman.job_requests TO draftsman_worker;
        GRANT INSERT, UPDATE ON draftsman.job_runs, draftsman.job_steps, draftsman.job_quotas,
            draftsman.artifacts, draftsman.channel_limits, draftsman.leases TO draftsman_worker;
        GRANT INSERT, DELETE ON draftsman.artifact_chunks, draftsman.job_checkpoints,
            draftsman.run_log_chunks, draftsman.run_activity TO draftsman_worker;
        GRANT INSERT, UPDATE, DELETE ON draftsman.workers, draftsman.grace_periods, draftsman.suspects
            TO draftsman_worker;
        GRANT DELETE ON draftsman.unnotified_jobs TO draftsman_worker;
        GRANT UPDATE (due_at, fire_at, last_job) ON draftsman.schedules TO draftsman_worker;
        GRANT UPDATE (expires_at) ON draftsman.queue_reservations TO draftsman_worker;
        GRANT UPDATE (run, delivered_at) ON draftsman.job_messages TO draftsman_worker;
        GRANT DELETE, UPDATE (created_at) ON draftsman.budget_reservations TO draftsman_worker;
        GRANT INSERT, UPDATE, DELETE ON draftsman.schedule_fires TO draftsman_worker;
        GRANT INSERT, UPDATE (status, resolution, answered_at, expires_at, approvers)
            ON draftsman.job_questions TO draftsman_worker;
        GRANT INSERT (job, question, escalate_to, patch_sha256, critical),
            UPDATE (remind_at, reminders, escalated_at)
            ON draftsman.question_times TO draftsman_worker;
        GRANT EXECUTE ON FUNCTION draftsman.try_suspects(bigint[], bigint[]), draftsman.make_event_partitions(int),
            draftsman.make_event_partition(date), draftsman.lock_event_month(date),
            draftsman.drop_event_month(date, text, text, text),
            draftsman.set_limits(jsonb, text),
            draftsman.reserve_budgets(bigint, bigint, uuid, numeric, bigint, bigint, jsonb),
            draftsman.record_usage(bigint, bigint, jsonb, text, uuid, jsonb),
            draftsman.raise_budget(bigint, bigint, int, numeric),
            draftsman.set_budgets(jsonb, text, text),
            draftsman.hand_over(text[], text[], text[], bigint),
            draftsman.claim_reserving_jobs(text[], text[]),
            draftsman.claimable_by_type(text[], text[], bigint), draftsman.set_by_type(float8, int),
            draftsman.set_unhandled_types(float8, text[], int),
            draftsman.send_forge_event(bigint, bigint, text, text),
            draftsman.decide_by_rule(bigint, int, text[]),
            draftsman.propose_rule(text, text[], bigint, float8, text),
            draftsman.take_ladder_step(bigint, int, int, timestamptz, timestamptz, jsonb, text[],
            float8) TO draftsman_worker;
        GRANT UPDATE (outcome, reason, job, message, processed_at)
            ON draftsman.forge_events TO draftsman_worker;
        GRANT UPDATE (state, ended_at) ON draftsman.pull_requests TO draftsman_worker;
        GRANT INSERT ON draftsman.follow_ups TO draftsman_worker;
        GRANT UPDATE (sent_at) ON draftsman.digest_questions TO draftsman_worker;
        GRANT INSERT (job, question, name, steps, owners, due_at) ON draftsman.question_ladders
            TO draftsman_worker;
    END IF;

    IF to_regrole('draftsman_bot') IS NOT NULL THEN
        -- a column of each allows SELECT ... FOR UPDATE; no update passes the triggers
        GRANT UPDATE (number) ON draftsman.job_states TO draftsman_bot;
        GRANT UPDATE (run) ON draftsman.job_questions TO draftsman_bot;
        GRANT INSERT, UPDATE ON draftsman.channel_limits, draftsman.leases TO draftsman_bot;
        GRANT INSERT, UPDATE, DELETE ON draftsman.trello_board_configs, draftsman.trello_labels,
            draftsman.poll_cursors, draftsman.live_threads, draftsman.trello_checklists,
            draftsman.trello_due_dates TO draftsman_bot;
        GRANT INSERT, DELETE, UPDATE (due_at, fire_at, paused_at, paused_by, pause_reason)
            ON draftsman.schedules TO draftsman_bot;
        GRANT EXECUTE ON FUNCTION draftsman.issue_link_code(
            draftsman.channel, text, text, text, float8),
            draftsman.person_of_web_link(text), draftsman.find_web_session(text),
            draftsman.create_web_link(text, text, float8),
            draftsman.open_web_session(text, text, text, text, text, float8),
            draftsman.close_web_session(text),
            draftsman.claim_attachments(draftsman.channel, int, float8),
            draftsman.end_attachment(bigint, int, bytea, text, jsonb),
            draftsman.finish_forge_event(bigint, text),
            draftsman.record_pager_event(text, text, bigint, int, text, timestamptz),
            draftsman.ratify_rule(bigint, text, text, float8),
            draftsman.revoke_rule(bigint, text, text, text) TO draftsman_bot;
        GRANT EXECUTE ON FUNCTION draftsman.refuse_action(bigint, text, jsonb),
            draftsman.bind_account(text, text),
            draftsman.record_answer_change(bigint, int, text, text, text, jsonb)
            TO draftsman_bot;
        GRANT INSERT (job, kind, actor, payload) ON draftsman.job_events TO draftsman_bot;
        GRANT INSERT (forge, project, number, key, kind, source, author, author_name, author_id, is_bot,
            association, verdict, title, text, label, path, line, commit, thread, url, at),
            UPDATE (answered_at) ON draftsman.forge_events TO draftsman_bot;
        GRANT UPDATE (branch_deleted_at) ON draftsman.pull_requests TO draftsman_bot;
    END IF;
    IF to_regrole('draftsman_person') IS NOT NULL THEN
        GRANT UPDATE (number) ON draftsman.job_states TO draftsman_person;
        GRANT UPDATE (run) ON draftsman.job_questions TO draftsman_person;
        GRANT INSERT, UPDATE, DELETE ON draftsman.repos, draftsman.repo_mappings,
            draftsman.repo_profiles, draftsman.trello_board_configs, draftsman.trello_labels,
            draftsman.poll_cursors TO draftsman_person;
        GRANT INSERT ON draftsman.job_templates, draftsman.schedule_fires TO draftsman_person;
        GRANT INSERT, UPDATE, DELETE ON draftsman.schedules TO draftsman_person;
        GRANT EXECUTE ON FUNCTION draftsman.mint_token(text, bigint, int, text, text, text),
            draftsman.refuse_token(bigint, int, text, text, text, text, int),
            draftsman.link_identity(text, text, text),
            draftsman.unlink_identity(draftsman.channel, text),
            draftsman.create_web_link(text, text, float8), draftsman.list_web_sessions(int),
            draftsman.end_web_sessions(bigint, text),
            draftsman.ratify_rule(bigint, text, text, float8),
            draftsman.revoke_rule(bigint, text, text, text),
            draftsman.propose_rule(text, text[], bigint, float8, text) TO draftsman_person;
    END IF;
    RETURN missing;
END $$;
SELECT draftsman.grant_roles();
