-- Job groups: jobs that run at the same time or one after another, and stop together. And jobs that
-- runs spawn and gather.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0017_groups') AS applied \gset
\if :applied \echo '0017_groups is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0017_groups');

-- The row of a group is locked by additions, by a cancel, and by the end of a member that stops it.
CREATE TABLE draftsman.job_groups (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'),
    kind           text NOT NULL CHECK (kind IN ('parallel', 'sequential')),
    on_failure     text NOT NULL CHECK (on_failure IN ('stop', 'continue')),
    created_by     text NOT NULL CHECK (created_by <> ''),
    created_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    canceled_at    timestamptz,
    canceled_by    text,
    cancel_reason  text CHECK (cancel_reason <> ''),
    CONSTRAINT job_groups_name UNIQUE (name),
    CONSTRAINT job_groups_canceled CHECK ((canceled_at IS NULL) = (canceled_by IS NULL)
        AND (cancel_reason IS NULL OR canceled_at IS NOT NULL))
);

-- A job is in a single group. A retry has the ordinal of its job; the newest job of an ordinal
-- counts. `skipped_by` is the member whose end canceled a job of a parallel group before its start.
-- Jobs without a group have no row: only functions write this table.
CREATE TABLE draftsman.job_group_members (
    job         bigint PRIMARY KEY,
    group_id    bigint NOT NULL REFERENCES draftsman.job_groups,
    ordinal     int NOT NULL CHECK (ordinal > 0),
    skipped_by  bigint,
    CONSTRAINT job_group_members_skipped CHECK (skipped_by <> job)
);
--   job_group_members_pkey   the group of a job
--   job_group_members_order  the jobs of a group
--   job_group_members_skips  the jobs that were skipped because of a job
CREATE UNIQUE INDEX job_group_members_order
    ON draftsman.job_group_members (group_id, ordinal, job DESC);
CREATE INDEX job_group_members_skips ON draftsman.job_group_members (skipped_by)
    WHERE skipped_by IS NOT NULL;
CREATE TRIGGER job_group_members_no_delete BEFORE DELETE ON draftsman.job_group_members
    FOR EACH ROW EXECUTE FUNCTION draftsman.refuse_change('jobs keep their group');
CREATE TRIGGER job_group_members_no_truncate BEFORE TRUNCATE ON draftsman.job_group_members
    EXECUTE FUNCTION draftsman.refuse_change('jobs keep their group');

-- Locks a group, creating it with a kind; returns nothing for an unknown name without a kind.
CREATE FUNCTION draftsman.open_group(name text, kind text, on_failure text, by text)
RETURNS SETOF draftsman.job_groups LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF draftsman.session_kind() <> 'owner' AND draftsman.may_act_as($4) IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('%s may not create a group as %s', session_user, $4));
    END IF;
    IF $2 IS NOT NULL THEN
        INSERT INTO draftsman.job_groups (name, kind, on_failure, created_by)
        VALUES ($1, $2, coalesce($3, 'stop'), $4) ON CONFLICT (name) DO NOTHING;
    END IF;
    RETURN QUERY
    SELECT * FROM draftsman.job_groups g WHERE g.name = $1 FOR NO KEY UPDATE;
END $$;

-- The jobs of a group that count: of each ordinal the newest.
CREATE FUNCTION draftsman.current_members(group_id bigint)
RETURNS TABLE (job bigint, ordinal int) LANGUAGE sql STABLE PARALLEL SAFE ROWS 10
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT DISTINCT ON (m.ordinal) m.job, m.ordinal
      FROM draftsman.job_group_members m WHERE m.group_id = $1
     ORDER BY m.ordinal, m.job DESC
$$;

-- Cancels locked members that have not started, in the name of the system and with a skipped run.
CREATE FUNCTION draftsman.skip_members(jobs bigint[], reason text, because bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    detail text := coalesce(current_setting('draftsman.detail', true), '');
BEGIN
    PERFORM set_config('draftsman.detail', '', true);
    UPDATE draftsman.job_group_members m SET skipped_by = because WHERE m.job = ANY (jobs);
    UPDATE draftsman.job_states s
       SET status = 'canceled', hold = NULL, held_by = NULL, claimed_from = NULL, worker_id = NULL,
           lease_token = NULL, run_count = 1, version = s.version + 1,
           finished_at = draftsman.now(), updated_at = draftsman.now(),
           cancel_requested_at = draftsman.now(), cancel_requested_by = 'system',
           cancel_reason = reason
     WHERE s.number = ANY (jobs) AND s.finished_at IS NULL;
    INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token, status, finished_at)
    SELECT n, 1, '00000000-0000-0000-0000-000000000000',
           nextval('draftsman.lease_tokens'), 'skipped', draftsman.now()
      FROM unnest(jobs) AS c (n);
    PERFORM set_config('draftsman.detail', detail, true);
END $$;

-- Whether a person may add a job to a group: its creator, or if all of its jobs are the person's own. The
-- end of a job stops its group, and a job in it can be canceled by its requester.
CREATE FUNCTION draftsman.may_extend(target draftsman.job_groups, person text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT $2 IN (c.actor, coalesce(draftsman.person_of(c.channel, c.id), CASE
                  WHEN c.channel IN ('cli', 'tui', 'api') THEN c.id END))
        OR NOT EXISTS (SELECT FROM draftsman.job_group_members m
                         JOIN draftsman.job_requests r ON r.number = m.job
                        WHERE m.group_id = ($1).id AND r.invoker_id <> $2)
      FROM (SELECT ($1).created_by AS actor, split_part(($1).created_by, ':', 1) AS channel,
                   substr(($1).created_by, strpos(($1).created_by, ':') + 1) AS id) c
$$;

-- Adds new jobs, which wait for parents, to a group that this transaction has locked.
--
-- A group with jobs of others takes jobs of its creator and of operators only. That the actor is an
-- operator counts as said for the owner of the schema, whose programs know the actor; for others it is
-- looked up.
--
-- Returns each job, with the job that it waits for in a sequential group. `skipped` jobs were
-- canceled: a job has failed in a parallel group that stops, or the group was canceled. Jobs that
-- wait for nothing are released; `linked` jobs also wait for parents of their request. A failing
-- member and an addition both lock the group: the later of them sees the other.
CREATE FUNCTION draftsman.add_to_group(
    group_id bigint, jobs bigint[], linked bigint[], is_operator boolean
) RETURNS TABLE (job bigint, parent bigint, skipped boolean) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    target   draftsman.job_groups;
    last_job bigint;
    place    int;
    failed   bigint;
    reason   text;
    free     bigint[];
    invoker  text;
BEGIN
    IF draftsman.session_kind() <> 'owner' THEN
        PERFORM draftsman.require_control(n, draftsman.session_actor(), 'operator')
           FROM unnest(jobs) n;
        is_operator := false;
    END IF;
    IF EXISTS (SELECT FROM unnest(jobs) n
                WHERE (SELECT s.number FROM draftsman.job_states s
                        WHERE s.number = n AND s.hold = 'parents' AND s.version = 1) IS NULL) THEN
        RAISE EXCEPTION 'only new jobs that wait for parents can be added' USING ERRCODE = 'DM001';
    END IF;
    SELECT * INTO STRICT target FROM draftsman.job_groups g WHERE g.id = $1 FOR NO KEY UPDATE;
    IF is_operator IS NOT TRUE THEN
        SELECT r.invoker_id INTO invoker FROM draftsman.job_requests r
         WHERE r.number = ANY (jobs) AND NOT draftsman.has_role(r.invoker_id, 'operator')
           AND NOT draftsman.may_extend(target, r.invoker_id)
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION '% may not add jobs to the group %, which has jobs of others;'
                ' its creator or an operator can, or use another group', invoker, target.name
                USING ERRCODE = 'DM004';
        END IF;
    END IF;
    SELECT m.job, m.ordinal INTO last_job, place
      FROM draftsman.job_group_members m
     WHERE m.group_id = $1
     ORDER BY m.ordinal DESC, m.job DESC
     LIMIT 1;
    IF target.canceled_at IS NOT NULL THEN
        reason := format('the group %s was canceled', target.name);
    ELSIF target.kind = 'parallel' AND target.on_failure = 'stop' THEN
        SELECT m.job, draftsman.end_text(m.job, s.status) INTO failed, reason
          FROM draftsman.current_members($1) m
         CROSS JOIN LATERAL (
               SELECT status, finished_at FROM draftsman.job_states
                WHERE number = m.job LIMIT 1) s
         WHERE s.finished_at IS NOT NULL AND s.status <> 'completed'
         ORDER BY m.job
         LIMIT 1;
    END IF;
    INSERT INTO draftsman.job_group_members (job, group_id, ordinal)
    SELECT n, $1, coalesce(place, 0) + i FROM unnest(jobs) WITH ORDINALITY AS j (n, i);
    IF reason IS NOT NULL THEN
        PERFORM draftsman.skip_members(jobs, reason, failed);
        RETURN QUERY SELECT n, NULL::bigint, true FROM unnest(jobs) n;
        RETURN;
    END IF;
    IF target.kind = 'parallel' THEN
        IF target.on_failure = 'stop' THEN
            UPDATE draftsman.job_states s SET has_children = true WHERE s.number = ANY (jobs);
        END IF;
        free := ARRAY(SELECT unnest(jobs) EXCEPT SELECT unnest(linked) ORDER BY 1);
    ELSIF last_job IS NULL AND NOT jobs[1] = ANY (linked) THEN
        free := jobs[1:1];
    END IF;
    IF free <> '{}' THEN
        PERFORM draftsman.resolve_jobs(free);
    END IF;
    RETURN QUERY
    SELECT n, CASE WHEN target.kind = 'sequential' THEN CASE WHEN i = 1 THEN last_job
              ELSE jobs[i - 1] END END, false
      FROM unnest(jobs) WITH ORDINALITY AS j (n, i);
END $$;

-- Cancels the members that have not started when one of them ends otherwise than completed, in
-- parallel groups that stop. A worker that has claimed some of them cannot start them then. A
-- canceled group cancels its own jobs. Of more than 1,000, the next in the order of the claim are
-- canceled now, and the others in batches by the leader.
CREATE FUNCTION draftsman.stop_groups(ended bigint[]) RETURNS void LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    most    CONSTANT int := 1000;
    stopped record;
    waiting bigint[];
    found   bigint[];
BEGIN
    FOR stopped IN
        SELECT m.group_id, min(e.number) AS job
          FROM unnest(ended) AS e (number)
         CROSS JOIN LATERAL (
               SELECT group_id FROM draftsman.job_group_members WHERE job = e.number LIMIT 1) m
         CROSS JOIN LATERAL (
               SELECT status FROM draftsman.job_states WHERE number = e.number LIMIT 1) s
         CROSS JOIN LATERAL (
               SELECT kind, on_failure FROM draftsman.job_groups WHERE id = m.group_id LIMIT 1) g
         WHERE s.status <> 'completed' AND g.kind = 'parallel' AND g.on_failure = 'stop'
         GROUP BY m.group_id ORDER BY m.group_id
    LOOP
        PERFORM FROM draftsman.job_groups g WHERE g.id = stopped.group_id FOR NO KEY UPDATE;
        CONTINUE WHEN (SELECT g.canceled_at FROM draftsman.job_groups g
                        WHERE g.id = stopped.group_id) IS NOT NULL;
        found := ARRAY(
            SELECT s.number
              FROM draftsman.job_group_members m
              JOIN draftsman.job_states s ON s.number = m.job
             WHERE m.group_id = stopped.group_id
               AND s.status IN ('queued', 'scheduled', 'claimed') AND s.run_count = 0
             ORDER BY s.hold IS NOT NULL, s.status = 'scheduled', s.priority DESC, s.position,
                      s.number
             LIMIT most + 1);
        waiting := ARRAY(
            SELECT s.number
              FROM draftsman.job_states s
             WHERE s.number = ANY (found[:most])
               AND s.status IN ('queued', 'scheduled', 'claimed') AND s.run_count = 0
             ORDER BY s.number
               FOR NO KEY UPDATE);
        IF cardinality(found) > most THEN
            INSERT INTO draftsman.postponed_work (ended) VALUES (stopped.job);
        END IF;
        IF waiting <> '{}' THEN
            PERFORM draftsman.skip_members(waiting, (
                SELECT draftsman.end_text(s.number, s.status) FROM draftsman.job_states s
                 WHERE s.number = stopped.job), stopped.job);
        END IF;
    END LOOP;
END $$;

-- Puts a new retry in the group and at the ordinal of its job; returns whether that has a group.
CREATE FUNCTION draftsman.inherit_group(old bigint, new bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    member draftsman.job_group_members;
    target draftsman.job_groups;
BEGIN
    SELECT * INTO member FROM draftsman.job_group_members m WHERE m.job = $1;
    IF NOT FOUND OR (SELECT r.number FROM draftsman.job_requests r
                      WHERE r.number = $2 AND r.retry_of = $1) IS NULL THEN
        RETURN false;
    END IF;
    SELECT * INTO target FROM draftsman.job_groups g WHERE g.id = member.group_id FOR NO KEY UPDATE;
    INSERT INTO draftsman.job_group_members (job, group_id, ordinal)
    VALUES ($2, member.group_id, member.ordinal) ON CONFLICT DO NOTHING;
    IF target.kind = 'parallel' AND target.on_failure = 'stop' THEN
        UPDATE draftsman.job_states s SET has_children = true
         WHERE s.number = $2 AND s.finished_at IS NULL AND NOT s.has_children;
    END IF;
    RETURN true;
END $$;

-- Cancels the unfinished jobs of a group; running jobs are requested to stop. Jobs that are added
-- later are canceled at once. Members are locked before their group, as their ends lock them.
-- Returns each unfinished job, and whether its worker stops it first.
CREATE FUNCTION draftsman.cancel_group(group_id bigint, by text, reason text)
RETURNS TABLE (number bigint, requested boolean) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    members bigint[];
    locked  bigint[];
BEGIN
    LOOP
        locked := members;
        members := ARRAY(SELECT m.job FROM draftsman.job_group_members m
                          WHERE m.group_id = $1 ORDER BY m.job);
        EXIT WHEN members = locked;
        PERFORM FROM draftsman.job_states s
          WHERE s.number = ANY (members) AND s.finished_at IS NULL
          ORDER BY s.number
            FOR NO KEY UPDATE;
        PERFORM FROM draftsman.job_groups g WHERE g.id = $1 FOR NO KEY UPDATE;
    END LOOP;
    members := ARRAY(SELECT s.number FROM draftsman.job_states s
                      WHERE s.number = ANY (members) AND s.finished_at IS NULL ORDER BY s.number);
    IF draftsman.session_kind() <> 'owner' THEN
        PERFORM draftsman.require_control(n, $2, 'operator') FROM unnest(members) n;
    END IF;
    IF members <> '{}' THEN
        UPDATE draftsman.job_groups g
           SET canceled_at = draftsman.now(), canceled_by = $2, cancel_reason = $3
         WHERE g.id = $1 AND g.canceled_at IS NULL;
        PERFORM draftsman.cancel_jobs(members, $2, $3);
    END IF;
    RETURN QUERY
    SELECT s.number, s.finished_at IS NULL FROM draftsman.job_states s
     WHERE s.number = ANY (members) ORDER BY s.number;
END $$;

-- Spawned jobs -------------------------------------------------------------------------------------

-- The completed job that a job which this job retries, directly or not, spawned under a key.
CREATE FUNCTION draftsman.completed_spawn(job bigint, key text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
    WITH RECURSIVE chain (number) AS (
        SELECT r.retry_of FROM draftsman.job_requests r WHERE r.number = $1
         UNION ALL
        SELECT r.retry_of
          FROM chain c
         CROSS JOIN LATERAL (
               SELECT retry_of FROM draftsman.job_requests WHERE number = c.number LIMIT 1) r
    )
    SELECT d.parent
      FROM chain c
     CROSS JOIN LATERAL (
           SELECT parent FROM draftsman.job_dependencies
            WHERE job = c.number AND spawn_key = $2 AND spawned OFFSET 0) d
     CROSS JOIN LATERAL (
           SELECT status FROM draftsman.job_states WHERE number = d.parent LIMIT 1) s
     WHERE s.status = 'completed'
     ORDER BY c.number DESC
     LIMIT 1
$$;

-- Records a job that a run spawned, in the transaction of its submission, or a completed job that it
-- takes over. Another job under the same key is refused by job_dependencies_keys. Under keys of its MCP
-- server, which serves agents, a job has at most 20: the lock of the job lets runs and sessions count one
-- after another.
CREATE FUNCTION draftsman.record_spawn(job bigint, token bigint, spawned bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    request_key text := (SELECT r.idempotency_key FROM draftsman.job_requests r
                          WHERE r.number = $3 AND r.idempotency_key ~ '^spawn:[0-9]+:.');
    given_key   text := substr(request_key, 7 + strpos(substr(request_key, 7), ':'));
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') OR NOT EXISTS (
       SELECT FROM draftsman.job_states s
        WHERE s.number = $1 AND s.lease_token = $2 AND s.status = 'running')
       OR (starts_with(request_key, 'spawn:' || $1 || ':')
           OR $3 = draftsman.completed_spawn($1, given_key)) IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('D-%s is not running, or did not spawn D-%s', $1, $3));
    END IF;
    IF given_key LIKE 'mcp:%' THEN
        PERFORM FROM draftsman.job_states s WHERE s.number = $1 FOR NO KEY UPDATE;
        IF (SELECT count(*) FROM draftsman.job_dependencies d
             WHERE d.job = $1 AND d.spawned AND d.spawn_key LIKE 'mcp:%' AND d.parent <> $3) >= 20 THEN
            RAISE EXCEPTION 'D-% has submitted 20 jobs, the most that an agent may; finish the work in'
                ' this job', $1 USING ERRCODE = 'DM004';
        END IF;
    END IF;
    INSERT INTO draftsman.job_dependencies (job, parent, ordinal, condition, met, spawned, spawn_key)
    SELECT $1, $3, count(*) + 1, 'any', true, true, given_key
      FROM draftsman.job_dependencies d WHERE d.job = $1
        ON CONFLICT ON CONSTRAINT job_dependencies_pkey DO NOTHING;
END $$;

-- Whether a running job of this person spawns a request with this key.
CREATE FUNCTION draftsman.is_spawned(key text, invoker text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM draftsman.job_requests r
          JOIN draftsman.job_states s ON s.number = r.number AND s.status = 'running'
         WHERE $1 ~ '^spawn:[1-9][0-9]{0,17}:' AND r.invoker_id = $2
           AND r.number = CASE WHEN $1 ~ '^spawn:[1-9][0-9]{0,17}:'
                          THEN split_part($1, ':', 2)::bigint END)
$$;

-- Lets a running job wait for jobs that it spawned; returns how many have not ended, NULL if the run
-- has lost its lease. The lock of each lets its end wait, so that it sees the waiting job; without
-- any, the job need not park.
CREATE FUNCTION draftsman.await_jobs(job bigint, token bigint, spawned bigint[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    unfinished int;
BEGIN
    PERFORM FROM draftsman.job_states s
      WHERE s.number = $1 AND s.lease_token = $2 AND s.status = 'running'
        FOR NO KEY UPDATE;
    IF NOT FOUND OR draftsman.session_kind() NOT IN ('owner', 'worker') THEN
        RETURN NULL;
    END IF;
    PERFORM FROM draftsman.job_states s
      WHERE s.number = ANY ($3) AND s.finished_at IS NULL
      ORDER BY s.number
        FOR NO KEY UPDATE;
    UPDATE draftsman.job_dependencies d SET met = NULL
     WHERE d.job = $1 AND d.parent = ANY ($3) AND d.spawned AND (
           SELECT s.finished_at FROM draftsman.job_states s WHERE s.number = d.parent) IS NULL;
    GET DIAGNOSTICS unfinished = ROW_COUNT;
    UPDATE draftsman.job_states s SET has_children = true
     WHERE s.number = ANY ($3) AND s.finished_at IS NULL AND NOT s.has_children;
    RETURN unfinished;
END $$;
