-- Privileges of the group roles of workers, bots, people and readers; the owner of the schema has
-- all privileges.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0029_grants') AS applied \gset
\if :applied \echo '0029_grants is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0029_grants');

-- Events that sessions insert directly, beside those of triggers and functions.
CREATE FUNCTION draftsman.may_insert_event(
    job bigint, kind text, actor text, detail jsonb
) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE draftsman.session_kind()
         WHEN 'owner' THEN true
         WHEN 'worker' THEN draftsman.may_act_as(actor) AND kind NOT LIKE 'job\_%'
              AND kind NOT IN ('answer_received', 'vote_received', 'token_minted', 'rule_applied',
                               'token_redeemed', 'cancel_requested', 'message_sent')
         WHEN 'bot' THEN CASE WHEN actor = 'system'
              THEN kind LIKE 'delivery\_%' OR kind LIKE 'attachment\_%'
              ELSE draftsman.may_act_as(actor) END
         WHEN 'person' THEN draftsman.may_act_as(actor) ELSE false END
    AND (draftsman.session_kind() = 'owner'
         OR EXISTS (SELECT FROM draftsman.job_requests j WHERE j.number = may_insert_event.job))
    AND (draftsman.session_kind() IN ('owner', 'worker') OR actor = 'system'
         OR CASE kind
            WHEN 'vote_received' THEN EXISTS (
                SELECT FROM draftsman.job_answers a WHERE a.job = may_insert_event.job AND a.accepted
                   AND a.source || ':' || a.responder_id = actor
                   AND a.question::text = detail ->> 'question' AND a.voter = detail ->> 'voter')
            WHEN 'token_minted' THEN EXISTS (
                SELECT FROM draftsman.approval_tokens t WHERE t.job = may_insert_event.job
                   AND t.approver = draftsman.person_of_actor(actor))
            WHEN 'token_redeemed' THEN EXISTS (
                SELECT FROM draftsman.approval_tokens t WHERE t.job = may_insert_event.job
                   AND t.approver = draftsman.person_of_actor(actor) AND t.used_at IS NOT NULL)
            ELSE kind IN ('answer_refused', 'answer_edited', 'answer_deleted', 'token_refused',
                          'action_refused', 'question_extended', 'redelivered') END);
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
CREATE TRIGGER deliveries_operators BEFORE UPDATE ON draftsman.deliveries
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
            draftsman.serving_workers(float8), draftsman.is_allowed_by_rule(bigint, int, jsonb),
            draftsman.identical_to(bigint, int),
            draftsman.shown_instead(bigint, draftsman.delivery_channel, text, text),
            draftsman.is_silent(bigint, int, draftsman.delivery_channel, text, text),
            draftsman.next_digest(text),
            draftsman.escalates_by_ladder(draftsman.job_questions, draftsman.job_questions)
            TO %I', role);
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
            'GRANT INSERT ON draftsman.job_requests, draftsman.job_states, draftsman.job_targets,
                draftsman.unique_keys TO %I',
            'GRANT EXECUTE ON FUNCTION draftsman.resolve_question(bigint, int,
                draftsman.question_status, jsonb, draftsman.job_status, text, text, text, text),
                draftsman.extend_question(bigint, int, float8, text),
                draftsman.request_cancel(bigint, text, text, jsonb),
                draftsman.cancel_job(bigint, text, text),
                draftsman.link_jobs(bigint[], bigint[], draftsman.dependency_condition[]),
                draftsman.cancel_tree(bigint, text, text),
                draftsman.open_group(text, text, text, text),
                draftsman.add_to_group(bigint, bigint[], bigint[]),
                draftsman.inherit_group(bigint, bigint),
                draftsman.cancel_group(bigint, text, text),
                draftsman.join_request(bigint, text, jsonb),
                draftsman.send_message(bigint, draftsman.channel, text, text, text, text, text),
                draftsman.inherit_messages(bigint, bigint),
                draftsman.inherit_attachments(bigint, bigint),
                draftsman.pause_job(bigint, text, text, text),
                draftsman.unpause_job(bigint, text, text), draftsman.use_token(text),
                draftsman.pause_queue(text, text, text, text),
                draftsman.resume_queue(text, text, text), draftsman.hold_paused_types(int),
                draftsman.release_resumed_types(int), draftsman.free_keys(int),
                draftsman.assign_keys(text[]), draftsman.check_limits(int),
                draftsman.give_places(int), draftsman.do_due_work(int), draftsman.do_pending_cancels(int),
                draftsman.lock_free_keys(text[]), draftsman.move_job(bigint, text, bigint, text),
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
        GRANT UPDATE ON draftsman.job_states, draftsman.claimable TO draftsman_worker;
        GRANT UPDATE (repo_host, repo_owner, repo_name) ON draftsman.job_requests TO draftsman_worker;
        GRANT INSERT, UPDATE ON draftsman.job_runs, draftsman.job_steps, draftsman.job_quotas,
            draftsman.artifacts, draftsman.deliveries, draftsman.channel_limits, draftsman.leases
            TO draftsman_worker;
        GRANT INSERT, DELETE ON draftsman.artifact_chunks, draftsman.job_checkpoints,
            draftsman.run_log_chunks, draftsman.run_activity TO draftsman_worker;
        GRANT INSERT, UPDATE, DELETE ON draftsman.workers, draftsman.grace_periods
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
        GRANT EXECUTE ON FUNCTION draftsman.make_event_partitions(int),
            draftsman.make_event_partition(date), draftsman.lock_event_month(date),
            draftsman.drop_event_month(date, text, text, text),
            draftsman.set_limits(jsonb, text),
            draftsman.reserve_budgets(bigint, bigint, uuid, numeric, bigint, bigint, jsonb),
            draftsman.record_usage(bigint, bigint, jsonb, text, uuid, jsonb),
            draftsman.raise_budget(bigint, bigint, int, numeric),
            draftsman.set_budgets(jsonb, text, text),
            draftsman.hand_over(text[], text[], text[], bigint),
            draftsman.claim_reserving_jobs(text[], text[]),
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
        GRANT INSERT, UPDATE ON draftsman.deliveries, draftsman.channel_limits, draftsman.leases
            TO draftsman_bot;
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
        GRANT INSERT (forge, project, number, key, kind, source, author, author_name, is_bot,
            association, verdict, title, text, label, path, line, commit, thread, url, at),
            UPDATE (answered_at) ON draftsman.forge_events TO draftsman_bot;
        GRANT UPDATE (branch_deleted_at) ON draftsman.pull_requests TO draftsman_bot;
    END IF;
    IF to_regrole('draftsman_person') IS NOT NULL THEN
        GRANT UPDATE (number) ON draftsman.job_states TO draftsman_person;
        GRANT UPDATE (run) ON draftsman.job_questions TO draftsman_person;
        GRANT UPDATE (status, in_doubt, attempts) ON draftsman.deliveries TO draftsman_person;
        GRANT INSERT, UPDATE, DELETE ON draftsman.repos, draftsman.repo_mappings,
            draftsman.repo_profiles, draftsman.trello_board_configs, draftsman.trello_labels,
            draftsman.poll_cursors TO draftsman_person;
        GRANT INSERT ON draftsman.job_templates, draftsman.schedule_fires TO draftsman_person;
        GRANT INSERT, UPDATE, DELETE ON draftsman.schedules TO draftsman_person;
        GRANT EXECUTE ON FUNCTION draftsman.mint_token(text, bigint, int, text, text),
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
