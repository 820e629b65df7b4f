-- Queues: the jobs that a worker may claim, pauses, concurrency keys, the order of jobs,
-- reservations.

INSERT INTO draftsman.schema_functions (name) VALUES ('queues')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Claim -------------------------------------------------------------------------------------------

-- The jobs that a worker may claim from a queue that is not paused, and the location of each state
-- in its table. Both the claim and the explanation of a waiting job read this view, so that they
-- cannot disagree. The array is computed once for a statement; the second condition is reached only
-- by jobs of a type that is paused in some queue. The first condition on
-- pauses of jobs is evaluated once for a statement.
CREATE OR REPLACE VIEW draftsman.claimable AS
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

-- Whether this version of a job's state is the newest that is committed, although the statement may
-- see an older one. Locking a row locks its newest version, and keeps the lock where that version is
-- not claimable any more: the run that another worker has just claimed could not be settled until
-- the end of the transaction. Inlined, and reads only the row.
CREATE OR REPLACE FUNCTION draftsman.is_latest(location tid) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT currtid2('draftsman.job_states', location) = location
$$;

CREATE OR REPLACE VIEW draftsman.active_reservations AS
    SELECT queue, job, actor, seconds, reserved_at, expires_at
      FROM draftsman.queue_reservations
     WHERE expires_at > draftsman.now();

-- The locations of the reserving jobs that a worker may claim from these queues, locked. A
-- function, because PostgreSQL initializes the whole plan of a claim each time, also the parts that
-- read no row.
CREATE OR REPLACE FUNCTION draftsman.claim_reserving_jobs(
    queues text[], types text[]
) RETURNS SETOF tid
LANGUAGE sql VOLATILE ROWS 1 AS $$
    SELECT c.location
      FROM draftsman.active_reservations r
     CROSS JOIN LATERAL (
           SELECT q.location
             FROM draftsman.claimable q
            WHERE q.number = r.job AND q.type = ANY (types)
            LIMIT 1
              FOR NO KEY UPDATE SKIP LOCKED) c
     WHERE r.queue = ANY (queues)
       AND NOT EXISTS (SELECT FROM draftsman.queue_pauses p
                        WHERE p.queue = r.queue AND p.type IS NULL)
     ORDER BY r.queue
$$;

-- The locations of the first jobs of these types that a worker may claim from these queues, in the
-- order of the claim, while some jobs are found by type; 100 more than asked for, as others may
-- lock the first. STABLE: of the rows that the statement of the claim sees, which locks them one by
-- one.
CREATE OR REPLACE FUNCTION draftsman.claimable_by_type(
    queues text[], types text[], most bigint
) RETURNS SETOF tid
LANGUAGE sql STABLE ROWS 10 SET enable_sort = on SET jit = off AS $$
    SELECT c.location
      FROM unnest(queues) WITH ORDINALITY AS w (queue, rank)
     CROSS JOIN LATERAL (
           (SELECT location, priority, position, number
              FROM draftsman.claimable
             WHERE queue = w.queue AND NOT by_type AND type = ANY (types)
             ORDER BY priority DESC, position, number
             LIMIT most + 100)
            UNION ALL
           (SELECT q.location, q.priority, q.position, q.number
              FROM unnest(types) AS t (type)
             CROSS JOIN LATERAL (
                   SELECT location, priority, position, number
                     FROM draftsman.claimable
                    WHERE by_type AND queue = w.queue AND type = t.type
                    ORDER BY priority DESC, position, number
                    LIMIT most + 100) q
             WHERE NOT EXISTS (SELECT FROM draftsman.queue_pauses p
                                WHERE p.queue = w.queue AND p.type = t.type))) c
     WHERE w.queue <> ALL (ARRAY(SELECT queue FROM draftsman.queue_pauses WHERE type IS NULL))
       AND w.queue <> ALL (ARRAY(SELECT queue FROM draftsman.active_reservations))
     ORDER BY w.rank, c.priority DESC, c.position, c.number
     LIMIT most + 100
$$;

-- Types of jobs -----------------------------------------------------------------------------------

-- The types of a queue whose jobs are found by type (set_by_type); the index is read once for
-- each name.
CREATE OR REPLACE FUNCTION draftsman.types_found_by_type(queue text) RETURNS SETOF text
LANGUAGE sql STABLE ROWS 1 AS $$
    WITH RECURSIVE next_type AS (
        (SELECT s.type FROM draftsman.job_states s
          WHERE s.by_type AND s.status IN ('queued', 'resumed') AND s.hold IS NULL
            AND s.queue = types_found_by_type.queue
          ORDER BY s.type LIMIT 1)
         UNION ALL
        SELECT (SELECT s.type FROM draftsman.job_states s
                 WHERE s.by_type AND s.status IN ('queued', 'resumed') AND s.hold IS NULL
                   AND s.queue = types_found_by_type.queue AND s.type > n.type
                 ORDER BY s.type LIMIT 1)
          FROM next_type n
         WHERE n.type IS NOT NULL
    )
    SELECT type FROM next_type WHERE type IS NOT NULL
$$;

-- The queues with jobs that are not held; both indexes are read once for each name.
CREATE OR REPLACE FUNCTION draftsman.queues_in_use() RETURNS SETOF text
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

-- The types of queues with jobs that wait for a worker that handles them, although a worker serves
-- the queue: how many of the first jobs of the queue, and since when. Jobs that are found by type
-- are counted for each type.
CREATE OR REPLACE FUNCTION draftsman.waiting_for_types(
    lease float8, most int
) RETURNS TABLE (queue text, type text, jobs bigint, since timestamptz)
LANGUAGE sql STABLE SET enable_seqscan = off SET jit = off AS $$
    WITH served AS MATERIALIZED (
        SELECT q.queue, array_agg(DISTINCT t.type) AS types
          FROM draftsman.leased_workers(lease) w
         CROSS JOIN LATERAL unnest(w.queues) AS q (queue)
         CROSS JOIN LATERAL unnest(w.types) AS t (type)
         GROUP BY q.queue
    )
    SELECT v.queue, f.type, count(*), min(f.queued_at)
      FROM served v
     CROSS JOIN LATERAL (
           (SELECT s.type, s.queued_at FROM draftsman.job_states s
             WHERE s.queue = v.queue AND s.status IN ('queued', 'resumed') AND s.hold IS NULL
               AND NOT s.by_type
             ORDER BY s.priority DESC, s.position, s.number
             LIMIT most)
            UNION ALL
           (SELECT b.type, b.queued_at
              FROM draftsman.types_found_by_type(v.queue) AS t (type)
             CROSS JOIN LATERAL (
                   SELECT s.type, s.queued_at FROM draftsman.job_states s
                    WHERE s.by_type AND s.queue = v.queue AND s.type = t.type
                      AND t.type <> ALL (v.types)
                      AND s.status IN ('queued', 'resumed') AND s.hold IS NULL
                    ORDER BY s.priority DESC, s.position, s.number
                    LIMIT most) b)
            UNION ALL
           (SELECT b.type, b.queued_at
              FROM (SELECT 'pause' AS name
                     UNION ALL
                    SELECT name FROM draftsman.limit_buckets
                     LIMIT 1000) l
             CROSS JOIN LATERAL (
                   SELECT s.type, s.queue, s.queued_at FROM draftsman.job_states s
                    WHERE s.held_by = l.name AND s.status IN ('queued', 'resumed')
                    ORDER BY s.priority DESC, s.position, s.number
                    LIMIT most) b
             WHERE b.queue = v.queue)) f
     WHERE f.type <> ALL (v.types)
     GROUP BY v.queue, f.type
$$;

-- Stores the types of queues that no worker handles, and frees the places that their jobs have;
-- returns the number of these jobs. Jobs of the types `failing` keep their places until the leader
-- has failed them.
CREATE OR REPLACE FUNCTION draftsman.set_unhandled_types(
    lease float8, failing text[], most int
) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    freed int := 0;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.leased_workers(lease)) THEN
        RETURN 0;
    END IF;
    WITH waiting AS MATERIALIZED (
        SELECT w.queue, w.type, w.since FROM draftsman.waiting_for_types(lease, most) w
         WHERE w.type <> ALL (failing)
    ), gone AS (
        DELETE FROM draftsman.unhandled_types u
         WHERE NOT EXISTS (SELECT FROM waiting w WHERE w.queue = u.queue AND w.type = u.type)
    )
    INSERT INTO draftsman.unhandled_types (queue, type, since)
    SELECT queue, type, coalesce(since, draftsman.now()) FROM waiting ORDER BY queue, type
        ON CONFLICT DO NOTHING;
    IF EXISTS (SELECT FROM draftsman.unhandled_types) THEN
        freed := draftsman.free_paused_places(most);
    END IF;
    RETURN freed;
END $$;

-- Lets jobs be found by type that many claims would pass: those of types that some worker of their
-- queue does not handle. Claims then pass none of them, however many there are. It looks at the
-- first jobs of each queue, and changes nothing while fewer than 100 of them are passed, which
-- costs a claim less than a lookup of each type. A job keeps the mark, which changes nothing but
-- the index that has it. Returns the number of changed jobs.
CREATE OR REPLACE FUNCTION draftsman.set_by_type(lease float8, most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    served  record;
    passed  tid[];
    changed int;
    total   int := 0;
BEGIN
    FOR served IN
        SELECT q.queue, ARRAY(
                   SELECT t.type
                     FROM draftsman.leased_workers(lease) w
                    CROSS JOIN LATERAL (SELECT DISTINCT unnest(w.types) AS type) t
                    WHERE q.queue = ANY (w.queues)
                    GROUP BY t.type HAVING count(*) = q.workers) AS types
          FROM (SELECT q.queue, count(*) AS workers
                  FROM draftsman.leased_workers(lease) w
                 CROSS JOIN LATERAL (SELECT DISTINCT unnest(w.queues) AS queue) q
                 GROUP BY q.queue) q
         ORDER BY q.queue
    LOOP
        passed := ARRAY(
            SELECT f.location
              FROM (SELECT ctid AS location, type
                      FROM draftsman.job_states
                     WHERE queue = served.queue AND status IN ('queued', 'resumed')
                       AND hold IS NULL AND NOT by_type
                     ORDER BY priority DESC, position, number
                     LIMIT most) f
             WHERE f.type <> ALL (served.types));
        CONTINUE WHEN cardinality(passed) < 100;
        UPDATE draftsman.job_states s SET by_type = true
         WHERE s.ctid = ANY (ARRAY(
               SELECT p.location
                 FROM unnest(passed) AS p (location)
                CROSS JOIN LATERAL (
                      SELECT FROM draftsman.job_states
                       WHERE ctid = p.location AND status IN ('queued', 'resumed')
                       LIMIT 1
                         FOR NO KEY UPDATE SKIP LOCKED) l));
        GET DIAGNOSTICS changed = ROW_COUNT;
        total := total + changed;
        PERFORM pg_notify('draftsman_jobs', served.queue);  -- a claim may have skipped them
    END LOOP;
    RETURN total;
END $$;

-- Pauses ------------------------------------------------------------------------------------------

-- Pauses a queue, or a type in it; false when it is already paused.
CREATE OR REPLACE FUNCTION draftsman.pause_queue(
    queue text, type text, reason text, actor text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_queue_control(queue, actor);
    INSERT INTO draftsman.queue_pauses (queue, type, reason, paused_by)
    VALUES (queue, type, reason, actor)
        ON CONFLICT ON CONSTRAINT queue_pauses_unique DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.queue_changes (queue, type, action, actor, reason)
    VALUES (queue, type, 'pause', actor, reason);
    RETURN true;
END $$;

-- Ends a pause; false when there is none.
CREATE OR REPLACE FUNCTION draftsman.resume_queue(
    queue text, type text, actor text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_queue_control(queue, actor);
    DELETE FROM draftsman.queue_pauses p
     WHERE p.queue = resume_queue.queue AND p.type IS NOT DISTINCT FROM resume_queue.type;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.queue_changes (queue, type, action, actor)
    VALUES (queue, type, 'resume', actor);
    PERFORM pg_notify('draftsman_jobs', queue);
    RETURN true;
END $$;

-- Takes jobs of paused types out of the index of the claim, which would read them again for each
-- claim; returns their number. The claim leaves them out in any case, and also those that hold a
-- concurrency key, which are few and stay in the index. It looks at the first jobs of
-- each queue, which are all that a claim could pass. The lock lets a resume wait, so that it
-- releases these jobs too.
CREATE OR REPLACE FUNCTION draftsman.hold_paused_types(most int) RETURNS int
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
CREATE OR REPLACE FUNCTION draftsman.release_resumed_types(most int) RETURNS int
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

-- Raises an error unless the actor may act in this session and is an operator.
CREATE OR REPLACE FUNCTION draftsman.require_queue_control(queue text, actor text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT draftsman.has_right(actor, 'operator', '{person,bot}') THEN
        PERFORM draftsman.deny_access('queues.control', jsonb_build_object(
                    'actor', actor, 'queue', queue));
    END IF;
END $$;

-- Concurrency keys --------------------------------------------------------------------------------

-- Gives each of these keys that no job holds to the first queued job that waits for it. A job holds
-- its key from then until it ends, also while it waits for a person unless a limit of the key says
-- otherwise; it gives it up only to a job that is ahead of it in the queue, and only before its
-- first claim and while no queue is reserved for it. A job with limits then waits for places.
--
-- The triggers of job_states call it for new jobs, for jobs that end or are queued, and for moved
-- jobs, in their transaction. A lock on each key lets a concurrent call wait and see the rows of
-- the first. Locked rows are left out: waiting for them could deadlock. Their own transaction calls
-- it too, or else the sweep `holds` does.
CREATE OR REPLACE FUNCTION draftsman.assign_keys(keys text[]) RETURNS int
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

-- Locks concurrency keys until the end of the transaction, in sorted order: 1,024 locks that keys
-- share, because a batch may have more keys than the lock table of the server has room for.
CREATE OR REPLACE FUNCTION draftsman.lock_keys(keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    slot int;
BEGIN
    FOR slot IN SELECT DISTINCT hashtext(k) & 1023 AS s FROM unnest(keys) k
                 WHERE k IS NOT NULL ORDER BY s LOOP
        PERFORM pg_advisory_xact_lock(1146242645, slot);
    END LOOP;
END $$;

-- The keys that jobs wait for and no job holds, at most so many, locked; those whose locks are not
-- free are left out. The waiting keys are read from the index one by one.
CREATE OR REPLACE FUNCTION draftsman.lock_free_keys(most int) RETURNS text[]
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

-- Gives the concurrency keys of jobs that have begun to wait for a person to others, where the
-- limit of the key says so; they wait for the key again when they are resumed.
CREATE OR REPLACE FUNCTION draftsman.release_keys(jobs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE draftsman.job_states s SET hold = 'key'
     WHERE s.number = ANY (jobs) AND (
           SELECT l.release_while_waiting
             FROM draftsman.limit_of('concurrency_key', s.concurrency_key) l);
END $$;

-- Order -------------------------------------------------------------------------------------------

-- Moves a job before or after another job of its queue, or to the top or bottom; it takes the
-- priority of its new neighbor. Returns `moved`, or which condition failed (`job`, `anchor`: not
-- queued; `queue`: another queue) and the status.
--
-- Its neighbors are unfinished jobs of any status and priority, so that a job that is queued again
-- or prioritized later keeps its place among the moved jobs. A single row is written while there is
-- a position between the neighbors. Else the jobs behind the gap are spread: as few as have room,
-- in the same transaction.
CREATE OR REPLACE FUNCTION draftsman.move_job(job bigint, place text, anchor bigint, actor text)
RETURNS TABLE (outcome text, status draftsman.job_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    moved    draftsman.job_states;
    other    draftsman.job_states;
    low      bigint;
    high     bigint;
    step     bigint;
    width    int := 8;
    followed bigint[];
BEGIN
    SELECT s.* INTO moved FROM draftsman.job_states s WHERE s.number = job;
    PERFORM draftsman.require_queue_control(moved.queue, actor);
    PERFORM pg_advisory_xact_lock(hashtextextended(moved.queue, 1146242646));
    SELECT s.* INTO moved FROM draftsman.job_states s WHERE s.number = job FOR NO KEY UPDATE;
    IF moved.status NOT IN ('queued', 'resumed') THEN
        RETURN QUERY SELECT 'job', moved.status;
        RETURN;
    END IF;
    IF place IN ('before', 'after') THEN
        SELECT s.* INTO other FROM draftsman.job_states s WHERE s.number = anchor;
        IF other.queue <> moved.queue OR other.status NOT IN ('queued', 'resumed') THEN
            RETURN QUERY SELECT CASE WHEN other.queue <> moved.queue THEN 'queue' ELSE 'anchor' END,
                                other.status;
            RETURN;
        END IF;
    ELSIF place = 'top' THEN
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
    IF place IN ('before', 'top') THEN
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
                   AND CASE WHEN move_job.place IN ('before', 'top')
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
     WHERE s.number = job;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, 'job_moved', actor, jsonb_strip_nulls(jsonb_build_object(
            'place', place, 'anchor', anchor, 'priority', other.priority, 'from', moved.priority)));
    RETURN QUERY SELECT 'moved', moved.status;
END $$;

-- Changes the priority of a job that waits in its queue, or for a time; else returns its status.
CREATE OR REPLACE FUNCTION draftsman.prioritize_job(job bigint, priority int, actor text)
RETURNS TABLE (outcome text, status draftsman.job_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old draftsman.job_states;
BEGIN
    SELECT s.* INTO old FROM draftsman.job_states s WHERE s.number = job FOR NO KEY UPDATE;
    PERFORM draftsman.require_queue_control(old.queue, actor);
    IF old.status NOT IN ('queued', 'resumed', 'scheduled', 'retrying') THEN
        RETURN QUERY SELECT 'job', old.status;
        RETURN;
    END IF;
    IF old.priority <> priority THEN
        UPDATE draftsman.job_states s
           SET priority = prioritize_job.priority, updated_at = draftsman.now()
         WHERE s.number = job;
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES (job, 'job_prioritized', actor,
                jsonb_build_object('priority', priority, 'from', old.priority));
    END IF;
    RETURN QUERY SELECT 'moved', old.status;
END $$;

-- Reservations ------------------------------------------------------------------------------------

-- Reserves the queue of a job that was created in this transaction. Returns `reserved`, or the
-- condition that failed with its data: `job` (not queued), `paused`, `held` (by the job that has
-- its concurrency key), `limited` (by a limit that has no free place) or `taken` (the current
-- reservation). A concurrent reservation of the same queue is waited for.
CREATE OR REPLACE FUNCTION draftsman.reserve_queue(job bigint, seconds float8, actor text)
RETURNS TABLE (outcome text, queue text, holder bigint, by text, until timestamptz, reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    state draftsman.job_states;
    pause draftsman.queue_pauses;
    taken draftsman.queue_reservations;
BEGIN
    SELECT s.* INTO state FROM draftsman.job_states s WHERE s.number = job FOR NO KEY UPDATE;
    PERFORM draftsman.require_queue_control(state.queue, actor);
    IF state.status IS DISTINCT FROM 'queued' OR state.version > 1 THEN
        RETURN QUERY SELECT 'job', state.queue, job, NULL::text, NULL::timestamptz, NULL::text;
        RETURN;
    END IF;
    SELECT p.* INTO pause FROM draftsman.queue_pauses p
     WHERE p.queue = state.queue AND (p.type IS NULL OR p.type = state.type)
     ORDER BY p.type NULLS FIRST LIMIT 1;
    IF FOUND THEN
        RETURN QUERY SELECT 'paused', state.queue, NULL::bigint, pause.paused_by, NULL::timestamptz,
                            pause.reason;
        RETURN;
    END IF;
    IF state.hold = 'limit' THEN
        RETURN QUERY SELECT 'limited', state.queue, NULL::bigint, NULL::text, NULL::timestamptz,
                            state.held_by;
        RETURN;
    END IF;
    IF state.hold IS NOT NULL THEN
        RETURN QUERY
        SELECT 'held', state.queue,
               (SELECT k.number FROM draftsman.job_states k
                 WHERE k.concurrency_key = state.concurrency_key
                   AND (k.hold >= 'key') IS NOT TRUE AND k.finished_at IS NULL),
               NULL::text, NULL::timestamptz, state.concurrency_key;
        RETURN;
    END IF;
    PERFORM draftsman.delete_reservations(ARRAY(
        SELECT r.job FROM draftsman.queue_reservations r
         WHERE r.queue = state.queue AND r.expires_at <= draftsman.now()), 'expired', 'system');
    INSERT INTO draftsman.queue_reservations (queue, job, actor, seconds, expires_at)
    VALUES (state.queue, job, actor, seconds, draftsman.now() + make_interval(secs => seconds))
        ON CONFLICT DO NOTHING
    RETURNING * INTO taken;
    IF NOT FOUND THEN
        SELECT r.* INTO taken FROM draftsman.queue_reservations r WHERE r.queue = state.queue;
        RETURN QUERY
        SELECT 'taken', state.queue, taken.job, taken.actor, taken.expires_at, NULL::text;
        RETURN;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, 'queue_reserved', actor,
            jsonb_build_object('queue', state.queue, 'seconds', seconds));
    INSERT INTO draftsman.queue_changes (queue, action, actor, reason)
    VALUES (state.queue, 'reserve', actor,
            draftsman.sentence('queues.reserved_for', jsonb_build_object('job', job))::text);
    RETURN QUERY SELECT 'reserved', state.queue, job, actor, taken.expires_at, NULL::text;
END $$;

-- Ends the reservation of a queue before its job does; returns the reserving job, if there is one.
CREATE OR REPLACE FUNCTION draftsman.release_queue(queue text, actor text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reserving bigint;
BEGIN
    PERFORM draftsman.require_queue_control(queue, actor);
    SELECT r.job INTO reserving FROM draftsman.queue_reservations r
     WHERE r.queue = release_queue.queue AND r.expires_at > draftsman.now();
    IF FOUND THEN
        IF draftsman.delete_reservations(ARRAY[reserving], 'released', actor) = 0 THEN
            RETURN NULL;  -- it ended meanwhile
        END IF;
        INSERT INTO draftsman.queue_changes (queue, action, actor, reason)
        VALUES (queue, 'release', actor, draftsman.sentence(
                    'queues.reserved_by', jsonb_build_object('job', reserving))::text);
    END IF;
    RETURN reserving;
END $$;

-- Renews the reservations of jobs that a worker starts, and ends those of jobs that have ended,
-- wait for a person or for a time, or are held. The trigger of job_states calls it in the
-- transaction of the change, while there is any reservation.
CREATE OR REPLACE FUNCTION draftsman.follow_reservations(jobs bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    ended record;
BEGIN
    FOR ended IN
        SELECT r.job, s.status, s.hold
          FROM draftsman.queue_reservations r
         CROSS JOIN LATERAL (
               SELECT status, hold FROM draftsman.job_states WHERE number = r.job LIMIT 1) s
         WHERE r.job = ANY (jobs)
         ORDER BY r.queue
    LOOP
        IF ended.hold IS NOT NULL THEN
            PERFORM draftsman.delete_reservations(ARRAY[ended.job], 'held', 'system');
        ELSIF ended.status = 'running' THEN
            UPDATE draftsman.queue_reservations r
               SET expires_at = greatest(r.expires_at,
                                         draftsman.now() + make_interval(secs => r.seconds))
             WHERE r.job = ended.job AND r.expires_at > draftsman.now();
        ELSIF ended.status NOT IN ('queued', 'claimed', 'resumed', 'retrying') THEN
            PERFORM draftsman.delete_reservations(ARRAY[ended.job], ended.status::text, 'system');
        END IF;
    END LOOP;
END $$;

-- Deletes the reservations that have expired, of any queue; returns their number. Those that
-- another transaction has locked, with their jobs, are left.
CREATE OR REPLACE FUNCTION draftsman.delete_expired_reservations() RETURNS int
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.delete_reservations(ARRAY(
               SELECT s.number
                 FROM draftsman.queue_reservations r
                 JOIN draftsman.job_states s ON s.number = r.job
                WHERE r.expires_at <= draftsman.now()
                ORDER BY s.number
                  FOR NO KEY UPDATE OF s SKIP LOCKED
                  FOR UPDATE OF r SKIP LOCKED), 'expired', 'system')
$$;

-- Deletes the reservations for these jobs, with an event of each, and wakes the workers; returns
-- their number. A reservation that was renewed meanwhile has not expired. The jobs are locked
-- first: the events of a job are written under its lock, so that their order is that of their
-- commits.
CREATE OR REPLACE FUNCTION draftsman.delete_reservations(
    jobs bigint[], reason text, actor text
) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    deleted int;
BEGIN
    PERFORM FROM draftsman.job_states s
      WHERE s.number = ANY (jobs)
      ORDER BY s.number
        FOR NO KEY UPDATE;
    WITH locked AS MATERIALIZED (
        SELECT r.job FROM draftsman.queue_reservations r
         WHERE r.job = ANY (jobs) AND (reason <> 'expired' OR r.expires_at <= draftsman.now())
         ORDER BY r.queue FOR UPDATE
    ), gone AS (
        DELETE FROM draftsman.queue_reservations r
         WHERE r.job IN (SELECT job FROM locked)
        RETURNING r.queue, r.job
    ), recorded AS (
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        SELECT job, 'reservation_ended', delete_reservations.actor,
               jsonb_build_object('queue', queue, 'reason', reason)
          FROM gone
    )
    SELECT count(pg_notify('draftsman_jobs', queue)) INTO deleted FROM gone;
    RETURN deleted;
END $$;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER queue_changes_append_only BEFORE UPDATE OR DELETE
    ON draftsman.queue_changes FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('queues.changes_append_only');
CREATE OR REPLACE TRIGGER queue_changes_no_truncate BEFORE TRUNCATE ON draftsman.queue_changes
    EXECUTE FUNCTION draftsman.refuse_change('queues.changes_append_only');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_queues() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.claim_reserving_jobs(text[], text[]),
        draftsman.claimable_by_type(text[], text[], bigint), draftsman.is_latest(tid),
        draftsman.set_unhandled_types(float8, text[], int), draftsman.set_by_type(float8, int)');
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.types_found_by_type(text), draftsman.queues_in_use(),
        draftsman.waiting_for_types(float8, int)');
    SELECT draftsman.grant_to('worker bot person', 'EXECUTE ON FUNCTION
        draftsman.pause_queue(text, text, text, text), draftsman.resume_queue(text, text, text),
        draftsman.hold_paused_types(int), draftsman.release_resumed_types(int),
        draftsman.assign_keys(text[]), draftsman.lock_free_keys(int),
        draftsman.move_job(bigint, text, bigint, text), draftsman.prioritize_job(bigint, int, text),
        draftsman.reserve_queue(bigint, float8, text), draftsman.release_queue(text, text),
        draftsman.delete_expired_reservations()');
    SELECT draftsman.grant_to('worker', 'UPDATE (expires_at) ON draftsman.queue_reservations');
    -- allows SELECT ... FOR UPDATE; an update of the view would have the rights of its owner
    SELECT draftsman.grant_to('worker', 'UPDATE (number) ON draftsman.claimable');
$$;
