-- The state machine of jobs: which changes are allowed, and the event of each.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0006_transitions') AS applied \gset
\if :applied \echo '0006_transitions is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0006_transitions');

-- The kind of the event of a transition. Rendered from TRANSITIONS in draftsman.domain.job.
CREATE FUNCTION draftsman.transition_kind(
    before draftsman.job_status, after draftsman.job_status
) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE before
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
    END
$$;

CREATE FUNCTION draftsman.refuse_transition(
    job bigint, before draftsman.job_status, after draftsman.job_status, version int, next int
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'D-%: % to % is not allowed (version % to %)', job, before, after, version, next
        USING ERRCODE = 'DM001';
END $$;

CREATE FUNCTION draftsman.refuse_change(job bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'D-%: update is not allowed; a finished job is immutable', job
        USING ERRCODE = 'DM002';
END $$;

-- Guards and triggers of a statement rather than of each row: a WHEN clause is parsed again for
-- each statement, and a BEFORE trigger looks at each row once more. A session plans the statements
-- of a trigger once, maybe when a table is empty: rows are looked up by index (enable_seqscan).
--
-- The state of a single job is looked up. Those of a batch are read as a range of numbers, in which
-- only rows of concurrent batches are not of this batch, and the payload of the event is built once
-- for all jobs that share it. As in record_transitions(), the CASE keeps the full join, which is
-- never a nested loop. A job that is retried is looked up here because a foreign key would queue a
-- trigger for each row.
CREATE FUNCTION draftsman.record_creation() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET jit = off SET enable_seqscan = off AS $$
DECLARE
    wrong  text;
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
        INSERT INTO draftsman.job_events (job, kind, to_status, actor, payload)
        SELECT unnest(g.jobs) AS job, 'job_created', g.status, who, g.payload
          FROM (SELECT array_agg(n.number) AS jobs, s.status,
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
                             OR (SELECT number FROM draftsman.job_requests WHERE number = n.retry_of) > 0)
                        AND (n.template_version IS NULL
                             OR draftsman.is_template(n.template, n.template_version))
                        THEN true
                       ELSE draftsman.refuse_creation(n, s) END
                 GROUP BY s.status, n.type, n.source, n.mode, n.agent, n.repo_name, n.retry_of) g
         ORDER BY job;
    END IF;
    IF role <> 'owner' THEN
        SELECT n.invoker_id INTO wrong
          FROM new_requests n
         CROSS JOIN LATERAL (
               SELECT j AS job FROM draftsman.jobs j WHERE j.number = n.number LIMIT 1) j
         WHERE n.number NOT BETWEEN 1 AND (SELECT last_value FROM draftsman.job_requests_number_seq)
            OR draftsman.may_submit(j.job, role, who) IS NOT TRUE
         LIMIT 1;
        IF FOUND THEN
            PERFORM draftsman.deny_access(format('%s may not submit a job of %s', who, wrong));
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_requests_inserted AFTER INSERT ON draftsman.job_requests
    REFERENCING NEW TABLE AS new_requests
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.record_creation();

-- The rules of a state; and its request, instead of a foreign key, which looks up the request of
-- each row in a query of its own.
CREATE FUNCTION draftsman.check_request() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET jit = off SET enable_seqscan = off AS $$
DECLARE
    wrong bigint; keyed boolean;
BEGIN
    SELECT min(n.number) FILTER (WHERE
               draftsman.refuse_state(n.number, draftsman.violated_rule(n::draftsman.job_states))
            OR (SELECT number FROM draftsman.job_requests WHERE number = n.number) IS NULL),
           bool_or(n.concurrency_key IS NOT NULL AND n.hold IS DISTINCT FROM 'parents')
      INTO wrong, keyed FROM new_states n;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'D-%: the state has no request', wrong USING ERRCODE = 'DM001';
    END IF;
    IF EXISTS (SELECT FROM draftsman.limits) THEN
        IF keyed THEN  -- before the buckets, as at the end of a job
            PERFORM draftsman.lock_keys(array_agg(n.concurrency_key)) FROM new_states n
              WHERE n.hold IS DISTINCT FROM 'parents';
        END IF;
        PERFORM draftsman.limit_jobs(array_agg(number)) FROM new_states;
    END IF;
    IF keyed THEN
        PERFORM draftsman.assign_keys(array_agg(n.concurrency_key)) FROM new_states n
          WHERE n.hold IS DISTINCT FROM 'parents';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_states_inserted AFTER INSERT ON draftsman.job_states
    REFERENCING NEW TABLE AS new_states
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.check_request();

-- The cases are rendered from TRANSITIONS and FUSED in draftsman.domain.job. A fused transition
-- (version + 2) passes through `claimed`; its two events are in a single row (events_of_row). A
-- claimed job returns to the status that it was claimed from; a scheduled job that ran before
-- becomes `resumed`; a lease changes only with the status.
--
-- A session plans the statements of a trigger once, for the first batch that it sees, and the plan
-- has to fit every later batch. A full join is a hash or merge join, never a nested loop; `number`
-- is immutable, so each new row has its old row and the full join is an inner join. The CASE keeps
-- the planner from replacing it by an inner join. Runs and questions are looked up by index
-- (enable_seqscan). JIT is off because PostgreSQL before 18 adds 1e10 to the cost of a disabled
-- node and would compile the plan: 0.5 to 1.6 s for a change of 1 ms.
CREATE FUNCTION draftsman.record_transitions() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET jit = off SET enable_seqscan = off AS $$
DECLARE
    who      text;
    detail   jsonb := coalesce(nullif(current_setting('draftsman.detail', true), ''), '{}');
    notified boolean;
    keyed    boolean;
    limited  boolean;
    reserved boolean;
    parents  boolean;
    queued   boolean;
    buckets  text[]; changes int[]; waited text[]; arrived bigint[];
BEGIN
    -- a worker sets no actor, and PL/pgSQL prepares an expression again for each transaction
    IF coalesce(current_setting('draftsman.actor', true), '') <> ''
       OR draftsman.session_kind() = 'person' THEN
        who := draftsman.session_actor();
    END IF;
    INSERT INTO draftsman.job_events (job, run, kind, from_status, to_status, actor, payload)
    SELECT n.number,
           CASE WHEN 'running' IN (o.status, n.status) THEN n.run_count END,
           CASE WHEN n.version = o.version + 2 THEN 'job_started'
           ELSE draftsman.transition_kind(o.status, n.status) END, o.status, n.status,
           CASE WHEN n.status = 'canceled' AND n.cancel_requested_by = 'system' THEN 'system'
           ELSE coalesce(who, 'worker:' || coalesce(n.worker_id, o.worker_id), session_user) END,
           CASE n.status
               WHEN 'completed' THEN CASE WHEN n.result ? 'summary'
                    THEN jsonb_build_object('summary', left(n.result ->> 'summary', 2000)) || detail
                    ELSE detail END
               WHEN 'failed' THEN jsonb_build_object('error', left(n.last_error, 2000),
                    'error_class', n.error_class) || detail
               WHEN 'dead_letter' THEN jsonb_build_object('error', left(n.last_error, 2000),
                    'error_class', n.error_class, 'attempts', n.attempts, 'retries', n.retry_count)
                    || detail
               WHEN 'retrying' THEN jsonb_build_object('error', left(n.last_error, 2000),
                    'error_class', n.error_class, 'next_retry_at', n.next_retry_at) || detail
               WHEN 'canceled' THEN jsonb_strip_nulls(jsonb_build_object(
                    'reason', left(n.cancel_reason, 2000), 'by', n.cancel_requested_by)) || detail
               WHEN 'scheduled' THEN jsonb_build_object('run_at', n.run_at) || detail
               WHEN 'expired' THEN jsonb_build_object('question', (
                    SELECT max(q.ordinal) FROM draftsman.job_questions q WHERE q.job = n.number))
                    || detail
               ELSE detail
           END
      FROM new_states n
      FULL JOIN old_states o ON o.number = n.number
     WHERE CASE
           WHEN draftsman.refuse_state(n.number, draftsman.violated_rule(n::draftsman.job_states))
               THEN false
           WHEN o.status = n.status AND n.version = o.version
                AND n.lease_token IS NOT DISTINCT FROM o.lease_token
               THEN o.finished_at IS NOT NULL AND draftsman.refuse_change(n.number)
           WHEN o.status <> n.status AND n.version = o.version + CASE o.status
                WHEN 'scheduled' THEN CASE WHEN n.status IN ('queued', 'resumed', 'canceled') THEN 1 END
                WHEN 'queued' THEN CASE WHEN n.status IN ('claimed', 'canceled') THEN 1 WHEN n.status = 'running' THEN 2 END
                WHEN 'claimed' THEN CASE WHEN n.status IN ('running', 'queued', 'resumed', 'canceled') THEN 1 END
                WHEN 'running' THEN CASE WHEN n.status IN ('waiting_for_input', 'waiting_for_approval', 'scheduled', 'completed', 'failed', 'dead_letter', 'retrying', 'canceled', 'resumed') THEN 1 END
                WHEN 'waiting_for_input' THEN CASE WHEN n.status IN ('resumed', 'expired', 'canceled') THEN 1 END
                WHEN 'waiting_for_approval' THEN CASE WHEN n.status IN ('resumed', 'failed', 'expired', 'canceled') THEN 1 END
                WHEN 'resumed' THEN CASE WHEN n.status IN ('claimed', 'canceled') THEN 1 WHEN n.status = 'running' THEN 2 END
                WHEN 'retrying' THEN CASE WHEN n.status IN ('queued', 'canceled') THEN 1 END
            END
               AND (o.status <> 'claimed' OR n.status IN ('running', 'canceled', o.claimed_from))
               AND (o.status <> 'claimed' OR n.status <> 'running'
                    OR n.lease_token = o.lease_token)
               AND (o.status <> 'scheduled' OR n.status <> 'queued' OR o.run_count = 0)
               AND (o.status <> 'scheduled' OR n.status <> 'resumed' OR o.run_count > 0) THEN true
           ELSE draftsman.refuse_transition(n.number, o.status, n.status, o.version, n.version)
           END
       AND CASE
           WHEN (n.status = 'running')::int <> (
               SELECT count(*) FROM draftsman.job_runs r
                WHERE r.job = n.number AND r.status = 'running')
               THEN draftsman.refuse_inconsistency(n.number,
                   'a running job has exactly one open run, every other job none')
           WHEN (n.status IN ('waiting_for_input', 'waiting_for_approval')) <> ((
               SELECT q.job FROM draftsman.job_questions q
                WHERE q.job = n.number AND q.status = 'open') IS NOT NULL)
               THEN draftsman.refuse_inconsistency(n.number,
                   'a waiting job has exactly one open question, every other job none')
           ELSE true
           END;

    SELECT bool_or(has_targets OR status IN ('resumed', 'dead_letter')),
           bool_or(concurrency_key IS NOT NULL), bool_or(limits IS NOT NULL),
           bool_or(has_children AND finished_at IS NOT NULL),
           bool_or(limits IS NOT NULL AND status IN ('queued', 'resumed')),
           (SELECT true FROM draftsman.queue_reservations LIMIT 1)
      INTO notified, keyed, limited, parents, queued, reserved FROM new_states;
    IF parents THEN  -- before keys are locked, which waits for rows could deadlock with
        PERFORM draftsman.resolve_children(array_agg(number))
           FROM new_states WHERE has_children AND finished_at IS NOT NULL;
    END IF;
    IF keyed THEN
        PERFORM draftsman.release_keys(array_agg(n.number))
           FROM new_states n
           FULL JOIN old_states o ON o.number = n.number
          WHERE CASE WHEN n.concurrency_key IS NOT NULL AND n.status <> o.status
                THEN n.status IN ('waiting_for_input', 'waiting_for_approval') END;
        PERFORM draftsman.assign_keys(array_agg(n.concurrency_key))
           FROM new_states n
           FULL JOIN old_states o ON o.number = n.number
          WHERE CASE WHEN n.finished_at IS NOT NULL
                THEN o.finished_at IS NULL AND o.hold IS DISTINCT FROM 'parents'
                WHEN n.status IN ('queued', 'resumed') THEN (n.status, n.priority, n.position)
                     <> (o.status, o.priority, o.position)
                ELSE n.status <> 'scheduled' AND n.hold = 'key' AND o.hold IS NULL END;
    END IF;
    IF limited THEN  -- a claim keeps its places
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
        IF queued THEN
            SELECT array_agg(DISTINCT n.held_by) FILTER (WHERE draftsman.begins_to_wait(
                       o::draftsman.job_states, n::draftsman.job_states)),
                   array_agg(n.number) FILTER (WHERE draftsman.has_arrived(
                       o::draftsman.job_states, n::draftsman.job_states))
              INTO waited, arrived
              FROM new_states n FULL JOIN old_states o ON o.number = n.number;
        END IF;
        IF num_nonnulls(buckets, waited, arrived) > 0 THEN
            PERFORM draftsman.change_places(buckets, changes, waited, arrived);
        END IF;
    END IF;
    IF reserved THEN  -- a job that asked for places has them now, or waits for them
        PERFORM draftsman.follow_reservations(array_agg(number)) FROM new_states;
    END IF;
    IF notified THEN
        PERFORM draftsman.enqueue_deliveries(o::draftsman.job_states, n::draftsman.job_states)
           FROM new_states n
           FULL JOIN old_states o ON o.number = n.number
          WHERE CASE WHEN n.status <> o.status
                THEN n.has_targets OR n.status IN ('resumed', 'dead_letter') END;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_states_updated AFTER UPDATE ON draftsman.job_states
    REFERENCING OLD TABLE AS old_states NEW TABLE AS new_states
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.record_transitions();

-- Jobs stay as they were requested -------------------------------------------------------------

CREATE TRIGGER job_requests_immutable BEFORE UPDATE OF number, id, type, idempotency_key,
    request_digest, mode, source, source_type, external_event_id, invoker_id, invoker_display_name,
    ticket_url, ticket_title, ticket_text, payload, overrides, requested_skills, tags,
    retry_of, chain_length, template, template_version, created_at
    ON draftsman.job_requests FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('the request of a job is immutable');
CREATE TRIGGER job_states_immutable BEFORE UPDATE OF number, type, concurrency_key,
    max_attempts, max_retries ON draftsman.job_states FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('the request of a job is immutable');
CREATE TRIGGER job_requests_no_delete BEFORE DELETE ON draftsman.job_requests FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs are never deleted');
CREATE TRIGGER job_requests_no_truncate BEFORE TRUNCATE ON draftsman.job_requests
    EXECUTE FUNCTION draftsman.refuse_change('jobs are never deleted');
CREATE TRIGGER job_states_no_delete BEFORE DELETE ON draftsman.job_states FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs are never deleted');
CREATE TRIGGER job_states_no_truncate BEFORE TRUNCATE ON draftsman.job_states
    EXECUTE FUNCTION draftsman.refuse_change('jobs are never deleted');

-- Runs ----------------------------------------------------------------------------------------

-- A new run is the newest of a running job and holds its lease. With the checks of
-- record_transitions() this excludes a second open run and a run without a job.
CREATE FUNCTION draftsman.check_runs() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET jit = off SET enable_seqscan = off AS $$
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
        RAISE EXCEPTION 'D-%: run % is not the newest run of a running job',
            wrong.job, wrong.ordinal USING ERRCODE = 'DM003';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_runs_inserted AFTER INSERT ON draftsman.job_runs
    REFERENCING NEW TABLE AS new_runs
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.check_runs();

-- AFTER, because a BEFORE UPDATE trigger locks the row first, which is logged. Calls of a parked run count.
CREATE TRIGGER job_runs_immutable AFTER UPDATE ON draftsman.job_runs FOR EACH ROW
    WHEN (OLD.status <> 'running' AND (OLD.status <> 'parked'
          OR to_jsonb(NEW) - 'usage' <> to_jsonb(OLD) - 'usage'))
    EXECUTE FUNCTION draftsman.refuse_change('a finished run is immutable');
CREATE TRIGGER job_runs_no_delete BEFORE DELETE ON draftsman.job_runs FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('runs are never deleted');
CREATE TRIGGER job_runs_no_truncate BEFORE TRUNCATE ON draftsman.job_runs
    EXECUTE FUNCTION draftsman.refuse_change('runs are never deleted');
