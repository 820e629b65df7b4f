-- Queues: pauses, concurrency keys, the order of jobs, and the jobs that a worker may claim.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0011_queues') AS applied \gset
\if :applied \echo '0011_queues is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0011_queues');

-- A pause of a queue (`type` is NULL), or of a type in a queue. The claim reads this table once, so
-- a pause takes effect with its own commit and writes no job. A job that is submitted, promoted or
-- resumed meanwhile needs no check either.
CREATE TABLE draftsman.queue_pauses (
    queue      text NOT NULL CHECK (queue <> ''),
    type       text CHECK (type <> ''),
    reason     text NOT NULL CHECK (reason <> ''),
    paused_by  text NOT NULL,
    paused_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    CONSTRAINT queue_pauses_unique UNIQUE NULLS NOT DISTINCT (queue, type)
);

-- The history of pauses and reservations.
CREATE TABLE draftsman.queue_changes (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue       text NOT NULL,
    type        text,
    action      text NOT NULL CHECK (action IN ('pause', 'resume', 'reserve', 'release')),
    actor       text NOT NULL,
    reason      text,
    created_at  timestamptz NOT NULL DEFAULT draftsman.now()
);
CREATE TRIGGER queue_changes_append_only BEFORE UPDATE OR DELETE ON draftsman.queue_changes
    FOR EACH ROW EXECUTE FUNCTION draftsman.refuse_change('changes of queues are append-only');
CREATE TRIGGER queue_changes_no_truncate BEFORE TRUNCATE ON draftsman.queue_changes
    EXECUTE FUNCTION draftsman.refuse_change('changes of queues are append-only');

-- A pause of a job, in any state but a final one. As for the pause of a queue, the claim reads this
-- table, so that a job that is promoted, resumed or released meanwhile needs no check. The worker of
-- a running job, and of a job that was claimed at the same time, learns of it with its heartbeat.
CREATE TABLE draftsman.job_pauses (
    job        bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    reason     text NOT NULL CHECK (reason <> ''),
    paused_by  text NOT NULL CHECK (paused_by <> ''),
    paused_at  timestamptz NOT NULL DEFAULT draftsman.now()
);

-- The types of queues that have jobs, but no worker that handles them now, as the leader found them. The
-- claim does not read it: a worker claims the jobs of its own types. It keeps places of limits for the
-- jobs that a worker can run (admit).
CREATE TABLE draftsman.unhandled_types (
    queue  text NOT NULL CHECK (queue <> ''),
    type   text NOT NULL CHECK (type <> ''),
    since  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (queue, type)
);

-- The jobs that a worker may claim from a queue that is not paused, and the location of each state
-- in its table. Both the claim and the explanation of a waiting job read this view, so that they
-- cannot disagree. The array is computed once for a statement; the second condition is reached only
-- by jobs of a type that is paused in some queue. The first condition on
-- pauses of jobs is evaluated once for a statement.
CREATE VIEW draftsman.claimable AS
    SELECT s.ctid AS location, s.number, s.queue, s.type, s.priority, s.position, s.status,
           s.run_count, s.by_type
      FROM draftsman.job_states s
     WHERE s.status IN ('queued', 'resumed') AND s.hold IS NULL
       AND (s.type <> ALL (ARRAY(SELECT p.type FROM draftsman.queue_pauses p
                                  WHERE p.type IS NOT NULL))
            OR NOT EXISTS (SELECT FROM draftsman.queue_pauses p
                            WHERE p.queue = s.queue AND p.type = s.type))
       AND (NOT EXISTS (SELECT FROM draftsman.job_pauses)
            OR NOT EXISTS (SELECT FROM draftsman.job_pauses p WHERE p.job = s.number));

-- The types of a queue whose jobs are found by type (set_by_type); the index is read once for
-- each name.
CREATE FUNCTION draftsman.types_found_by_type(queue text) RETURNS SETOF text
LANGUAGE sql STABLE ROWS 1 AS $$
    WITH RECURSIVE next_type AS (
        (SELECT s.type FROM draftsman.job_states s
          WHERE s.by_type AND s.status IN ('queued', 'resumed') AND s.hold IS NULL AND s.queue = $1
          ORDER BY s.type LIMIT 1)
         UNION ALL
        SELECT (SELECT s.type FROM draftsman.job_states s
                 WHERE s.by_type AND s.status IN ('queued', 'resumed') AND s.hold IS NULL
                   AND s.queue = $1 AND s.type > n.type
                 ORDER BY s.type LIMIT 1)
          FROM next_type n
         WHERE n.type IS NOT NULL
    )
    SELECT type FROM next_type WHERE type IS NOT NULL
$$;

-- The queues with jobs that are not held; both indexes are read once for each name.
CREATE FUNCTION draftsman.queues_in_use() RETURNS SETOF text
LANGUAGE sql STABLE ROWS 10 AS $$
    WITH RECURSIVE next_queue AS (
        (SELECT s.queue FROM draftsman.job_states s
          WHERE s.status IN ('queued', 'resumed') AND s.hold IS NULL AND NOT s.by_type
          ORDER BY s.queue LIMIT 1)
         UNION ALL
        SELECT (SELECT s.queue FROM draftsman.job_states s
                 WHERE s.status IN ('queued', 'resumed') AND s.hold IS NULL AND NOT s.by_type
                   AND s.queue > n.queue
                 ORDER BY s.queue LIMIT 1)
          FROM next_queue n
         WHERE n.queue IS NOT NULL
    ), next_by_type AS (
        (SELECT s.queue FROM draftsman.job_states s
          WHERE s.by_type AND s.status IN ('queued', 'resumed') AND s.hold IS NULL
          ORDER BY s.queue LIMIT 1)
         UNION ALL
        SELECT (SELECT s.queue FROM draftsman.job_states s
                 WHERE s.by_type AND s.status IN ('queued', 'resumed') AND s.hold IS NULL
                   AND s.queue > n.queue
                 ORDER BY s.queue LIMIT 1)
          FROM next_by_type n
         WHERE n.queue IS NOT NULL
    )
    SELECT queue FROM next_queue WHERE queue IS NOT NULL
     UNION
    SELECT queue FROM next_by_type WHERE queue IS NOT NULL
$$;

-- The last sign of life of each job that a worker has: of its run, or, while it is only claimed, of
-- its worker. Both the rescue and the explanation of a job read this view, so that they cannot disagree.
CREATE VIEW draftsman.heartbeats AS
    SELECT j.number AS job, j.worker_id, w.host, j.updated_at,
           coalesce(CASE WHEN j.status = 'running' THEN r.heartbeat_at
                    ELSE greatest(w.heartbeat_at, j.claimed_at) END, j.updated_at) AS heartbeat_at
      FROM draftsman.job_states j
      LEFT JOIN draftsman.job_runs r ON r.job = j.number AND r.ordinal = j.run_count
       AND r.status = 'running'
      LEFT JOIN draftsman.workers w ON w.id = j.worker_id
     WHERE j.status IN ('claimed', 'running');

-- Raises an error unless the actor may act in this session and is an operator.
CREATE FUNCTION draftsman.require_queue_control(queue text, actor text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.session_kind() IN ('person', 'bot')
       AND draftsman.may_act_as(actor)
       AND draftsman.has_role(draftsman.person_of_actor(actor), 'operator')) IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('%s may not control the queue %s', actor, queue));
    END IF;
END $$;

-- Pauses a queue, or a type in it; false when it is already paused.
CREATE FUNCTION draftsman.pause_queue(queue text, type text, reason text, actor text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_queue_control($1, $4);
    INSERT INTO draftsman.queue_pauses (queue, type, reason, paused_by) VALUES ($1, $2, $3, $4)
        ON CONFLICT ON CONSTRAINT queue_pauses_unique DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.queue_changes (queue, type, action, actor, reason)
    VALUES ($1, $2, 'pause', $4, $3);
    RETURN true;
END $$;

-- Ends a pause; false when there is none.
CREATE FUNCTION draftsman.resume_queue(queue text, type text, actor text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_queue_control($1, $3);
    DELETE FROM draftsman.queue_pauses p
     WHERE p.queue = $1 AND p.type IS NOT DISTINCT FROM $2;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.queue_changes (queue, type, action, actor)
    VALUES ($1, $2, 'resume', $3);
    PERFORM pg_notify('draftsman_jobs', $1);
    RETURN true;
END $$;

-- Takes jobs of paused types out of the index of the claim, which would read them again for each
-- claim; returns their number. The claim leaves them out in any case, and also those that hold a
-- concurrency key, which are few and stay in the index. It looks at the first jobs of
-- each queue, which are all that a claim could pass. The lock lets a resume wait, so that it
-- releases these jobs too.
CREATE FUNCTION draftsman.hold_paused_types(most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    pause   record;
    held    int := 0;
    changed int;
BEGIN
    FOR pause IN
        SELECT p.queue, p.type FROM draftsman.queue_pauses p WHERE p.type IS NOT NULL
         ORDER BY p.queue, p.type FOR KEY SHARE
    LOOP
        UPDATE draftsman.job_states s SET hold = 'paused'
         WHERE s.ctid = ANY (ARRAY(
               SELECT j.ctid FROM draftsman.job_states j
                WHERE j.hold IS NULL AND j.status IN ('queued', 'resumed') AND j.ctid = ANY (ARRAY(
               SELECT f.location
                 FROM (SELECT ctid AS location, type, concurrency_key, limits
                         FROM draftsman.job_states
                        WHERE queue = pause.queue AND status IN ('queued', 'resumed')
                          AND hold IS NULL AND NOT by_type
                        ORDER BY priority DESC, position, number
                        LIMIT most) f
                WHERE f.type = pause.type AND f.concurrency_key IS NULL
                  AND coalesce(f.limits, '{}') = '{}')) FOR NO KEY UPDATE SKIP LOCKED));
        GET DIAGNOSTICS changed = ROW_COUNT;
        held := held + changed;
    END LOOP;
    PERFORM draftsman.delete_ended_pauses(most);
    RETURN held + draftsman.free_paused_places(most);
END $$;

-- Returns held jobs of types that are no longer paused to the claim, in queue order; returns their
-- number.
CREATE FUNCTION draftsman.release_resumed_types(most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    released int;
BEGIN
    WITH freed AS (
        UPDATE draftsman.job_states s SET hold = NULL
         WHERE s.ctid = ANY (ARRAY(
               SELECT h.ctid FROM draftsman.job_states h
                WHERE h.hold = 'paused' AND h.held_by IS NULL AND NOT EXISTS (
                      SELECT FROM draftsman.queue_pauses p
                       WHERE p.queue = h.queue AND p.type = h.type)
                ORDER BY h.priority DESC, h.position, h.number
                LIMIT most
                  FOR NO KEY UPDATE SKIP LOCKED))
        RETURNING s.queue
    )
    SELECT sum(q.count) INTO released
      FROM (SELECT count(*) AS count, pg_notify('draftsman_jobs', queue)::text
              FROM freed GROUP BY queue) q;
    RETURN coalesce(released, 0) + draftsman.request_places(most);
END $$;

-- Concurrency keys ----------------------------------------------------------------------------

-- Locks concurrency keys until the end of the transaction, in sorted order: 1,024 locks that keys
-- share, because a batch may have more keys than the lock table of the server has room for.
CREATE FUNCTION draftsman.lock_keys(keys text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    slot int;
BEGIN
    FOR slot IN SELECT DISTINCT hashtext(k) & 1023 AS s FROM unnest(keys) k
                 WHERE k IS NOT NULL ORDER BY s LOOP
        PERFORM pg_advisory_xact_lock(1146242645, slot);
    END LOOP;
END $$;

-- Gives each of these keys that no job holds to the first queued job that waits for it. A job holds
-- its key from then until it ends, also while it waits for a person unless a limit of the key says
-- otherwise; it gives it up only to a job that is ahead of it in the queue, and only before its first
-- claim and while no queue is reserved for it. A job with limits then waits for places.
--
-- The triggers of job_states call it for new jobs, for jobs that end or are queued, and for moved
-- jobs, in their transaction. A lock on each key lets a concurrent call wait and see the rows of the
-- first. Locked rows are left out: waiting for them could deadlock. Their own transaction calls
-- it too, or else the sweep `holds` does.
CREATE FUNCTION draftsman.assign_keys(keys text[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    key      text;
    holder   record;
    first    record;
    assigned int := 0;
BEGIN
    keys := ARRAY(SELECT DISTINCT k FROM unnest(keys) k WHERE k IS NOT NULL ORDER BY k);
    IF draftsman.postpones() THEN
        INSERT INTO draftsman.postponed_work (key) SELECT unnest(keys);
        RETURN 0;
    END IF;
    PERFORM draftsman.lock_keys(keys);
    FOREACH key IN ARRAY keys LOOP
        SELECT number, priority, position, queue INTO first
          FROM draftsman.job_states
         WHERE concurrency_key = key AND hold = 'key' AND held_by IS NULL
           AND status IN ('queued', 'resumed')
         ORDER BY priority DESC, position, number LIMIT 1;
        CONTINUE WHEN NOT FOUND;
        SELECT number, status, run_count, priority, position INTO holder
          FROM draftsman.job_states
         WHERE concurrency_key = key AND (hold >= 'key') IS NOT TRUE AND finished_at IS NULL;
        IF FOUND THEN
            CONTINUE WHEN holder.status <> 'queued' OR holder.run_count > 0
                OR (-holder.priority, holder.position, holder.number)
                   < (-first.priority, first.position, first.number)
                OR EXISTS (SELECT FROM draftsman.active_reservations r
                            WHERE r.job = holder.number);
            PERFORM FROM draftsman.job_states
              WHERE number = holder.number AND status = 'queued' AND run_count = 0
                FOR NO KEY UPDATE SKIP LOCKED;
            CONTINUE WHEN NOT FOUND;
            UPDATE draftsman.job_states SET hold = 'key', held_by = NULL
             WHERE number = holder.number;
        END IF;
        UPDATE draftsman.job_states s
           SET hold = CASE WHEN s.limits <> '{}' THEN 'limit' END::draftsman.job_hold,
               held_by = s.limits[1]
         WHERE s.ctid = (SELECT ctid FROM draftsman.job_states
                          WHERE concurrency_key = key AND hold = 'key' AND held_by IS NULL
                            AND status IN ('queued', 'resumed')
                          ORDER BY priority DESC, position, number LIMIT 1
                            FOR NO KEY UPDATE SKIP LOCKED)
        RETURNING s.queue INTO first.queue;
        IF FOUND THEN
            assigned := assigned + 1;
            PERFORM pg_notify('draftsman_jobs', first.queue);
        END IF;
    END LOOP;
    RETURN assigned;
END $$;

-- The keys that jobs wait for and no job holds, at most so many, locked; those whose locks are not free
-- are left out. The waiting keys are read from the index one by one.
CREATE FUNCTION draftsman.lock_free_keys(most int) RETURNS text[]
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
    WITH RECURSIVE waiting AS (
        (SELECT concurrency_key FROM draftsman.job_states
          WHERE hold = 'key' AND held_by IS NULL AND status IN ('queued', 'resumed')
          ORDER BY concurrency_key LIMIT 1)
         UNION ALL
        SELECT (SELECT s.concurrency_key FROM draftsman.job_states s
                 WHERE s.hold = 'key' AND s.held_by IS NULL AND s.status IN ('queued', 'resumed')
                   AND s.concurrency_key > w.concurrency_key
                 ORDER BY s.concurrency_key LIMIT 1)
          FROM waiting w
         WHERE w.concurrency_key IS NOT NULL
    )
    SELECT ARRAY(
        SELECT w.concurrency_key FROM waiting w
         WHERE CASE WHEN w.concurrency_key IS NOT NULL AND NOT EXISTS (
               SELECT FROM draftsman.job_states s
                WHERE s.concurrency_key = w.concurrency_key AND (s.hold >= 'key') IS NOT TRUE
                  AND s.finished_at IS NULL)
               THEN pg_try_advisory_xact_lock(1146242645, hashtext(w.concurrency_key) & 1023) END
         LIMIT most)
$$;

-- Order ---------------------------------------------------------------------------------------

-- Moves a job before or after another job of its queue, or to the top or bottom; it takes the
-- priority of its new neighbor. Returns `moved`, or which condition failed (`job`, `anchor`:
-- not queued; `queue`: another queue) and the status.
--
-- Its neighbors are unfinished jobs of any status and priority, so that a job that is queued again
-- or prioritized later keeps its place among the moved jobs. A single row is written while there is a position between the neighbors. Else the jobs behind
-- the gap are spread: as few as have room, in the same transaction.
CREATE FUNCTION draftsman.move_job(job bigint, place text, anchor bigint, actor text)
RETURNS TABLE (outcome text, status draftsman.job_status) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    moved    draftsman.job_states;
    other    draftsman.job_states;
    low      bigint;
    high     bigint;
    step     bigint;
    width    int := 8;
    followed bigint[];
BEGIN
    SELECT s.* INTO moved FROM draftsman.job_states s WHERE s.number = $1;
    PERFORM draftsman.require_queue_control(moved.queue, $4);
    PERFORM pg_advisory_xact_lock(hashtextextended(moved.queue, 1146242646));
    SELECT s.* INTO moved FROM draftsman.job_states s WHERE s.number = $1 FOR NO KEY UPDATE;
    IF moved.status NOT IN ('queued', 'resumed') THEN
        RETURN QUERY SELECT 'job', moved.status;
        RETURN;
    END IF;
    IF $2 IN ('before', 'after') THEN
        SELECT s.* INTO other FROM draftsman.job_states s WHERE s.number = $3;
        IF other.queue <> moved.queue OR other.status NOT IN ('queued', 'resumed') THEN
            RETURN QUERY SELECT CASE WHEN other.queue <> moved.queue THEN 'queue' ELSE 'anchor' END,
                                other.status;
            RETURN;
        END IF;
    ELSIF $2 = 'top' THEN
        SELECT s.* INTO other FROM draftsman.job_states s
         WHERE s.queue = moved.queue AND s.status IN ('queued', 'resumed')
         ORDER BY s.priority DESC, s.position, s.number LIMIT 1;
    ELSE
        SELECT s.* INTO other FROM draftsman.job_states s
         WHERE s.queue = moved.queue AND s.status IN ('queued', 'resumed')
         ORDER BY s.priority, s.position DESC, s.number DESC LIMIT 1;
    END IF;
    IF other.number = moved.number THEN
        RETURN QUERY SELECT 'moved', moved.status;
        RETURN;
    END IF;
    IF $2 IN ('before', 'top') THEN
        high := other.position;
        SELECT max(s.position) INTO low FROM draftsman.job_states s
         WHERE s.queue = moved.queue AND s.status < 'completed'
           AND s.number <> moved.number
           AND (s.position, s.number) < (other.position, other.number);
        low := coalesce(low, high - 200);
    ELSE
        low := other.position;
        SELECT min(s.position) INTO high FROM draftsman.job_states s
         WHERE s.queue = moved.queue AND s.status < 'completed'
           AND s.number <> moved.number
           AND (s.position, s.number) > (other.position, other.number);
    END IF;
    step := CASE WHEN high IS NULL THEN nextval('draftsman.job_positions') - low
            ELSE (high - low) / 2 END;
    WHILE step < 1 LOOP
        -- the jobs behind the gap, and the position that limits them
        SELECT array_agg(w.number ORDER BY w.position, w.number) FILTER (WHERE w.place <= width),
               min(w.position) FILTER (WHERE w.place > width)
          INTO followed, high
          FROM (SELECT s.number, s.position,
                       row_number() OVER (ORDER BY s.position, s.number) AS place
                  FROM draftsman.job_states s
                 WHERE s.queue = moved.queue AND s.status < 'completed'
                   AND s.number <> moved.number
                   AND CASE WHEN $2 IN ('before', 'top')
                       THEN (s.position, s.number) >= (other.position, other.number)
                       ELSE (s.position, s.number) > (other.position, other.number) END
                 ORDER BY s.position, s.number
                 LIMIT width + 1) w;
        WHILE high IS NULL OR (high - low < 2 * (width + 2) AND cardinality(followed) < width) LOOP
            high := nextval('draftsman.job_positions');
        END LOOP;
        step := (high - low) / (cardinality(followed) + 2);
        IF step >= 1 THEN
            UPDATE draftsman.job_states s SET position = low + step * (w.place + 1)
              FROM unnest(followed) WITH ORDINALITY AS w (number, place)
             WHERE s.number = w.number;
        END IF;
        width := width * 4;
    END LOOP;
    UPDATE draftsman.job_states s
       SET priority = other.priority, position = low + step, updated_at = draftsman.now()
     WHERE s.number = $1;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES ($1, 'job_moved', $4, jsonb_strip_nulls(jsonb_build_object(
            'place', $2, 'anchor', $3, 'priority', other.priority, 'from', moved.priority)));
    RETURN QUERY SELECT 'moved', moved.status;
END $$;

-- Changes the priority of a job that waits in its queue, or for a time; else returns its status.
CREATE FUNCTION draftsman.prioritize_job(job bigint, priority int, actor text)
RETURNS TABLE (outcome text, status draftsman.job_status) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old draftsman.job_states;
BEGIN
    SELECT s.* INTO old FROM draftsman.job_states s WHERE s.number = $1 FOR NO KEY UPDATE;
    PERFORM draftsman.require_queue_control(old.queue, $3);
    IF old.status NOT IN ('queued', 'resumed', 'scheduled', 'retrying') THEN
        RETURN QUERY SELECT 'job', old.status;
        RETURN;
    END IF;
    IF old.priority <> $2 THEN
        UPDATE draftsman.job_states s SET priority = $2, updated_at = draftsman.now()
         WHERE s.number = $1;
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES ($1, 'job_prioritized', $3,
                jsonb_build_object('priority', $2, 'from', old.priority));
    END IF;
    RETURN QUERY SELECT 'moved', old.status;
END $$;
