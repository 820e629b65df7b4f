-- The state machine of jobs: which changes are allowed, and the event of each.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0006_transitions') AS applied \gset
\if :applied \echo '0006_transitions is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0006_transitions');

-- Raises an error unless a job may change so. The cases are rendered from TRANSITIONS and FUSED in
-- draftsman.domain.job. A fused transition (version + 2) passes through `claimed`. A claimed job
-- returns to the status that it was claimed from; a scheduled job that ran before becomes `resumed`; a
-- lease changes only with the status. Values, not rows: a join with whole rows copies every column.
CREATE FUNCTION draftsman.check_transition(
    job bigint, before draftsman.job_status, after draftsman.job_status, version int, next int,
    claimed_from draftsman.job_status, runs int, keeps_lease boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF (next = version + CASE before
            WHEN 'scheduled' THEN CASE WHEN after IN ('queued', 'resumed', 'canceled') THEN 1 END
            WHEN 'queued' THEN CASE WHEN after IN ('claimed', 'canceled') THEN 1 WHEN after = 'running' THEN 2 END
            WHEN 'claimed' THEN CASE WHEN after IN ('running', 'queued', 'resumed', 'canceled') THEN 1 END
            WHEN 'running' THEN CASE WHEN after IN ('waiting_for_input', 'waiting_for_approval', 'scheduled', 'completed', 'failed', 'dead_letter', 'retrying', 'canceled', 'resumed') THEN 1 END
            WHEN 'waiting_for_input' THEN CASE WHEN after IN ('resumed', 'expired', 'canceled') THEN 1 END
            WHEN 'waiting_for_approval' THEN CASE WHEN after IN ('waiting_for_input', 'resumed', 'failed', 'expired', 'canceled') THEN 1 END
            WHEN 'resumed' THEN CASE WHEN after IN ('claimed', 'canceled') THEN 1 WHEN after = 'running' THEN 2 END
            WHEN 'retrying' THEN CASE WHEN after IN ('queued', 'canceled') THEN 1 END
            END
        AND (before <> 'claimed' OR after IN ('running', 'canceled', claimed_from))
        AND (before <> 'claimed' OR after <> 'running' OR keeps_lease)
        AND (before <> 'scheduled' OR after <> 'queued' OR runs = 0)
        AND (before <> 'scheduled' OR after <> 'resumed' OR runs > 0)) IS NOT TRUE
    THEN
        RAISE EXCEPTION 'D-%: % to % is not allowed (version % to %)', job, before, after,
            version, next USING ERRCODE = 'DM001';
    END IF;
    RETURN true;
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
        SELECT n.invoker_id AS invoker, draftsman.forged_column(j.job) AS forged INTO wrong
          FROM new_requests n
         CROSS JOIN LATERAL (
               SELECT j AS job FROM draftsman.jobs j WHERE j.number = n.number LIMIT 1) j
         WHERE n.number NOT BETWEEN 1 AND (SELECT last_value FROM draftsman.job_requests_number_seq)
            OR draftsman.forged_column(j.job) IS NOT NULL
            OR draftsman.may_submit(j.job, role, who) IS NOT TRUE
         LIMIT 1;
        IF FOUND THEN
            PERFORM draftsman.deny_access(CASE WHEN wrong.forged IS NOT NULL
                THEN format('a request cannot have this %s', wrong.forged)
                ELSE format('%s may not submit a job of %s', who, wrong.invoker) END);
        END IF;
        INSERT INTO draftsman.unlinked_jobs (job)
        SELECT n.number FROM new_requests n
         WHERE (SELECT s.hold FROM draftsman.job_states s WHERE s.number = n.number) = 'parents';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_requests_inserted AFTER INSERT ON draftsman.job_requests
    REFERENCING NEW TABLE AS new_requests
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.record_creation();

-- Postponed work ------------------------------------------------------------------------------

-- Consequences of a change of a job that its transaction left to a later transaction: because another
-- transaction holds a lock that they need, because they are too many for a statement, or because it
-- is the transaction of a caller, which may stay open for any time and must not hold a lock that
-- workers need. Each row is of one kind:
--   bucket  the change of the places taken in a bucket; 0 if only waiting jobs ask for places
--   key     a concurrency key that may be free
--   ended   a job whose end has yet to release or cancel its children and the jobs of its group, or that
--           has a reservation which has yet to be ended
--   jobs    new jobs whose positions have yet to be set
-- The count of a bucket is its row with these changes: whoever locks the bucket adds them first.
CREATE TABLE draftsman.postponed_work (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bucket  text,
    change  int,
    key     text,
    ended   bigint,
    jobs    bigint[],
    txid    xid8 NOT NULL DEFAULT pg_current_xact_id(),
    due_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    CONSTRAINT postponed_work_kind CHECK (num_nonnulls(bucket, key, ended, jobs) = 1),
    CONSTRAINT postponed_work_change CHECK ((bucket IS NULL) = (change IS NULL))
);
CREATE INDEX postponed_work_bucket ON draftsman.postponed_work (bucket) WHERE bucket IS NOT NULL;
CREATE INDEX postponed_work_due ON draftsman.postponed_work (due_at);

-- Whether this transaction postpones all that needs locks of others: until its `commit`, or until
-- the `sweep` of the leader, because such a lock was not free.
CREATE FUNCTION draftsman.postpones() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(current_setting('draftsman.postpone', true), '') <> '';
END $$;

-- Applies the consequences of a change of jobs. It waits for a lock for a second at most: other
-- jobs, which the same statement settles or claims, must not wait for a transaction that stays open.
--   ended    jobs that have ended and have children
--   waiting  jobs with a concurrency key that have begun to wait for a person
--   keys     concurrency keys that may be free, or have a new first job
--   places   see change_places()
--   jobs     jobs that may have a reservation
CREATE FUNCTION draftsman.follow_transitions(
    ended bigint[], waiting bigint[], keys text[], buckets text[], changes int[], waited text[],
    arrived bigint[], jobs bigint[]
) RETURNS void LANGUAGE plpgsql SET lock_timeout = '900ms' AS $$
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
CREATE FUNCTION draftsman.place_jobs(numbers bigint[], keys text[]) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '900ms' AS $$
DECLARE
    limited boolean := EXISTS (SELECT FROM draftsman.limits);
BEGIN
    IF numbers IS NULL THEN
        RETURN;
    END IF;
    IF limited THEN
        IF keys IS NOT NULL AND NOT draftsman.postpones() THEN  -- before the buckets, as at the end of a job
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
CREATE FUNCTION draftsman.do_work(work draftsman.postponed_work[]) RETURNS boolean
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

-- Does the work that this transaction postponed until its commit. The leader does the rest, if a lock
-- is not free.
CREATE FUNCTION draftsman.do_work_at_commit() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp
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
CREATE CONSTRAINT TRIGGER postponed_work_commit AFTER INSERT ON draftsman.postponed_work
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION draftsman.do_work_at_commit();

-- Locks postponed work that is due, at most so many rows, and returns it. Work that another transaction
-- does now, which may stay open, is left. `these` may be NULL.
CREATE FUNCTION draftsman.lock_due_work(most int, these bigint[], without bigint[])
RETURNS SETOF bigint LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
    SELECT id FROM draftsman.postponed_work
     WHERE due_at <= draftsman.now() AND ($2 IS NULL OR id = ANY ($2)) AND id <> ALL ($3)
     ORDER BY due_at
     LIMIT $1
       FOR UPDATE SKIP LOCKED
$$;

-- Does postponed work that is due, at most so many buckets, keys and jobs, each apart; returns their
-- number. Work whose locks are not free is due again after a second. `these` and `without` are rows
-- of `postponed_work`; `these` may be NULL.
CREATE FUNCTION draftsman.do_due_work(most int, these bigint[], without bigint[]) RETURNS int
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
    IF keyed AND EXISTS (SELECT FROM new_states n WHERE n.concurrency_key IS NOT NULL AND n.hold IS NULL) THEN
        PERFORM draftsman.deny_access('a new job waits for its concurrency key');
    END IF;
    IF keyed OR EXISTS (SELECT FROM draftsman.limits) THEN
        PERFORM draftsman.place_jobs(array_agg(n.number), array_agg(n.concurrency_key) FILTER (
                    WHERE n.concurrency_key IS NOT NULL AND n.hold IS DISTINCT FROM 'parents'))
           FROM new_states n;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_states_inserted AFTER INSERT ON draftsman.job_states
    REFERENCING NEW TABLE AS new_states
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.check_request();

-- Checks the changes of jobs, records their events, and does all that follows from them. The two
-- events of a fused transition are in a single row (events_of_row).
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
    notified CONSTANT int := 1;
    keyed    CONSTANT int := 2;
    limited  CONSTANT int := 4;
    queued   CONSTANT int := 8;
    parents  CONSTANT int := 16;
    reserved CONSTANT int := 32;
    needed   int;
    ended    bigint[]; waiting bigint[]; keys text[]; buckets text[]; changes int[]; waited text[];
    arrived  bigint[]; jobs bigint[];
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
                WHEN n.status = 'completed' THEN 'job_completed'
           ELSE draftsman.transition_kind(o.status, n.status) END, o.status, n.status,
           CASE WHEN n.status = 'canceled' AND n.cancel_requested_by = 'system' THEN 'system'
           ELSE coalesce(who, 'worker:' || coalesce(n.worker_id, o.worker_id), session_user) END,
           CASE WHEN n.status IN ('running', 'claimed', 'queued', 'resumed')
                     OR n.status = 'completed' AND (n.result ? 'summary') IS NOT TRUE THEN detail
           ELSE draftsman.transition_details(n.number, n.status, n.result, n.last_error,
                n.error_class, n.attempts, n.retry_count, n.next_retry_at, n.run_at,
                n.cancel_reason, n.cancel_requested_by) || detail END
      FROM new_states n
      FULL JOIN old_states o ON o.number = n.number
     WHERE CASE
           WHEN draftsman.refuse_state(n.number, draftsman.violated_rule(n::draftsman.job_states))
               THEN false
           WHEN o.status = n.status AND n.version = o.version
                AND n.lease_token IS NOT DISTINCT FROM o.lease_token
               THEN o.finished_at IS NOT NULL AND draftsman.refuse_change(n.number)
           WHEN n.status = 'running' AND o.status IN ('queued', 'resumed')
                AND n.version = o.version + 2 THEN true
           WHEN n.status = 'completed' AND o.status = 'running'
                AND n.version = o.version + 1
               THEN n.result_token = o.lease_token OR draftsman.refuse_inconsistency(n.number,
                   'the result of a job is that of its completed run')
           ELSE draftsman.check_transition(n.number, o.status, n.status, o.version, n.version,
                o.claimed_from, o.run_count, n.lease_token = o.lease_token)
           END
       AND CASE
           WHEN (n.status = 'running') <> ((
               SELECT r.job FROM draftsman.job_runs r
                WHERE r.job = n.number AND r.status = 'running') IS NOT NULL)
               THEN draftsman.refuse_inconsistency(n.number,
                   'a running job has exactly one open run, every other job none')
           WHEN (n.status IN ('waiting_for_input', 'waiting_for_approval')) <> ((
               SELECT q.job FROM draftsman.job_questions q
                WHERE q.job = n.number AND q.status = 'open' LIMIT 1) IS NOT NULL)
               THEN draftsman.refuse_inconsistency(n.number,
                   'a waiting job has open questions, every other job none')
           ELSE true
           END;

    -- a single aggregate: PostgreSQL looks up each of them again for each statement
    SELECT bit_or(
           CASE WHEN has_targets OR status IN ('waiting_for_input', 'resumed', 'dead_letter')
                THEN notified ELSE 0 END
           | CASE WHEN concurrency_key IS NOT NULL THEN keyed ELSE 0 END
           | CASE WHEN limits IS NULL THEN 0
                  WHEN status IN ('queued', 'resumed') THEN limited | queued ELSE limited END
           | CASE WHEN has_children AND finished_at IS NOT NULL THEN parents ELSE 0 END
           | CASE WHEN EXISTS (SELECT FROM draftsman.queue_reservations) THEN reserved ELSE 0 END)
      INTO needed FROM new_states;
    IF coalesce(needed, 0) = 0 THEN
        RETURN NULL;
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

-- Calls of a parked run count, until the run goes on as another.
CREATE FUNCTION draftsman.check_run_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status <> 'parked' OR to_jsonb(NEW) - 'usage' <> to_jsonb(OLD) - 'usage' THEN
        RAISE EXCEPTION 'job_runs: update is not allowed; a finished run is immutable'
            USING ERRCODE = 'DM002';
    END IF;
    RETURN NULL;
END $$;

-- AFTER, because a BEFORE UPDATE trigger locks the row first, which is logged.
CREATE TRIGGER job_runs_immutable AFTER UPDATE ON draftsman.job_runs FOR EACH ROW
    WHEN (OLD.status <> 'running') EXECUTE FUNCTION draftsman.check_run_change();
CREATE TRIGGER job_runs_no_delete BEFORE DELETE ON draftsman.job_runs FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('runs are never deleted');
CREATE TRIGGER job_runs_no_truncate BEFORE TRUNCATE ON draftsman.job_runs
    EXECUTE FUNCTION draftsman.refuse_change('runs are never deleted');
