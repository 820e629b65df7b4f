-- Reservations: a queue whose only job that may be claimed is the reserving job. And queues whose jobs
-- are taken in turn.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0014_reservations') AS applied \gset
\if :applied \echo '0014_reservations is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0014_reservations');

-- The reservation of a queue for a job. The claim reads this table once, as it reads the pauses, and
-- takes no other job of the queue until the row is gone or has expired. The row is written with the
-- request of the job; the heartbeat of its run renews it, and an expired row is never renewed.
CREATE TABLE draftsman.queue_reservations (
    queue        text PRIMARY KEY CHECK (queue <> ''),
    job          bigint NOT NULL UNIQUE REFERENCES draftsman.job_requests,
    actor        text NOT NULL CHECK (actor <> ''),
    seconds      float8 NOT NULL CHECK (seconds BETWEEN 60 AND 86400),
    reserved_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    expires_at   timestamptz NOT NULL,
    CHECK (expires_at > reserved_at)
);

CREATE VIEW draftsman.active_reservations AS
    SELECT queue, job, actor, seconds, reserved_at, expires_at
      FROM draftsman.queue_reservations
     WHERE expires_at > draftsman.now();

-- The locations of the reserving jobs that a worker may claim from these queues, locked. A function,
-- because PostgreSQL initializes the whole plan of a claim each time, also the parts that read no row.
CREATE FUNCTION draftsman.claim_reserving_jobs(queues text[], types text[])
RETURNS SETOF tid LANGUAGE sql VOLATILE ROWS 1 AS $$
    SELECT c.location
      FROM draftsman.active_reservations r
     CROSS JOIN LATERAL (
           SELECT q.location
             FROM draftsman.claimable q
            WHERE q.number = r.job AND q.queue = r.queue AND q.type = ANY ($2)
            LIMIT 1
              FOR NO KEY UPDATE SKIP LOCKED) c
     WHERE r.queue = ANY ($1)
       AND NOT EXISTS (SELECT FROM draftsman.queue_pauses p
                        WHERE p.queue = r.queue AND p.type IS NULL)
     ORDER BY r.queue
$$;

-- The locations of the first jobs of these types that a worker may claim from these queues, in the
-- order of the claim, while some jobs are found by type; 100 more than asked for, as others may lock
-- the first. STABLE: of the rows that the statement of the claim sees, which locks them one by one.
CREATE FUNCTION draftsman.claimable_by_type(queues text[], types text[], most bigint)
RETURNS SETOF tid LANGUAGE sql STABLE ROWS 10 SET enable_sort = on SET jit = off AS $$
    SELECT c.location
      FROM unnest($1) WITH ORDINALITY AS w (queue, rank)
     CROSS JOIN LATERAL (
           (SELECT location, priority, position, number
              FROM draftsman.claimable
             WHERE queue = w.queue AND NOT by_type AND type = ANY ($2)
             ORDER BY priority DESC, position, number
             LIMIT $3 + 100)
            UNION ALL
           (SELECT q.location, q.priority, q.position, q.number
              FROM unnest($2) AS t (type)
             CROSS JOIN LATERAL (
                   SELECT location, priority, position, number
                     FROM draftsman.claimable
                    WHERE by_type AND queue = w.queue AND type = t.type
                    ORDER BY priority DESC, position, number
                    LIMIT $3 + 100) q
             WHERE NOT EXISTS (SELECT FROM draftsman.queue_pauses p
                                WHERE p.queue = w.queue AND p.type = t.type))) c
     WHERE w.queue <> ALL (ARRAY(SELECT queue FROM draftsman.queue_pauses WHERE type IS NULL))
       AND w.queue <> ALL (ARRAY(SELECT queue FROM draftsman.active_reservations))
     ORDER BY w.rank, c.priority DESC, c.position, c.number
     LIMIT $3 + 100
$$;

-- Deletes the reservations for these jobs, with an event of each, and wakes the workers; returns
-- their number. A reservation that was renewed meanwhile has not expired. The jobs are locked first:
-- the events of a job are written under its lock, so that their order is that of their commits.
CREATE FUNCTION draftsman.delete_reservations(jobs bigint[], reason text, actor text) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    deleted int;
BEGIN
    PERFORM FROM draftsman.job_states s
      WHERE s.number = ANY ($1)
      ORDER BY s.number
        FOR NO KEY UPDATE;
    WITH locked AS MATERIALIZED (
        SELECT r.job FROM draftsman.queue_reservations r
         WHERE r.job = ANY ($1) AND ($2 <> 'expired' OR r.expires_at <= draftsman.now())
         ORDER BY r.queue FOR UPDATE
    ), gone AS (
        DELETE FROM draftsman.queue_reservations r
         WHERE r.job IN (SELECT job FROM locked)
        RETURNING r.queue, r.job
    ), recorded AS (
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        SELECT job, 'reservation_ended', $3, jsonb_build_object('queue', queue, 'reason', $2)
          FROM gone
    )
    SELECT count(pg_notify('draftsman_jobs', queue)) INTO deleted FROM gone;
    RETURN deleted;
END $$;

-- Deletes the reservations that have expired, of any queue; returns their number. Those that another
-- transaction has locked, with their jobs, are left.
CREATE FUNCTION draftsman.delete_expired_reservations() RETURNS int
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

-- Reserves the queue of a job that was created in this transaction. Returns `reserved`, or the
-- condition that failed with its data: `job` (not queued), `paused`, `held` (by the job that has its
-- concurrency key), `limited` (by a limit that has no free place) or `taken` (the current reservation). A concurrent reservation of the same
-- queue is waited for.
CREATE FUNCTION draftsman.reserve_queue(job bigint, seconds float8, actor text)
RETURNS TABLE (outcome text, queue text, holder bigint, by text, until timestamptz, reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    state draftsman.job_states;
    pause draftsman.queue_pauses;
    taken draftsman.queue_reservations;
BEGIN
    SELECT s.* INTO state FROM draftsman.job_states s WHERE s.number = $1 FOR NO KEY UPDATE;
    PERFORM draftsman.require_queue_control(state.queue, $3);
    IF state.status IS DISTINCT FROM 'queued' OR state.version > 1 THEN
        RETURN QUERY SELECT 'job', state.queue, $1, NULL::text, NULL::timestamptz, NULL::text;
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
    VALUES (state.queue, $1, $3, $2, draftsman.now() + make_interval(secs => $2))
        ON CONFLICT DO NOTHING
    RETURNING * INTO taken;
    IF NOT FOUND THEN
        SELECT r.* INTO taken FROM draftsman.queue_reservations r WHERE r.queue = state.queue;
        RETURN QUERY SELECT 'taken', state.queue, taken.job, taken.actor, taken.expires_at, NULL::text;
        RETURN;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES ($1, 'queue_reserved', $3, jsonb_build_object('queue', state.queue, 'seconds', $2));
    INSERT INTO draftsman.queue_changes (queue, action, actor, reason)
    VALUES (state.queue, 'reserve', $3, 'for D-' || $1);
    RETURN QUERY SELECT 'reserved', state.queue, $1, $3, taken.expires_at, NULL::text;
END $$;

-- Ends the reservation of a queue before its job does; returns the reserving job, if there is one.
CREATE FUNCTION draftsman.release_queue(queue text, actor text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reserving bigint;
BEGIN
    PERFORM draftsman.require_queue_control($1, $2);
    SELECT r.job INTO reserving FROM draftsman.queue_reservations r
     WHERE r.queue = $1 AND r.expires_at > draftsman.now()
       FOR UPDATE;
    IF FOUND THEN
        PERFORM draftsman.delete_reservations(ARRAY[reserving], 'released', $2);
        INSERT INTO draftsman.queue_changes (queue, action, actor, reason)
        VALUES ($1, 'release', $2, 'of D-' || reserving);
    END IF;
    RETURN reserving;
END $$;

-- Renews the reservations of jobs that a worker starts, and ends those of jobs that have ended, wait
-- for a person or for a time, or are held. The trigger of job_states calls it in the transaction of
-- the change, while there is any reservation.
CREATE FUNCTION draftsman.follow_reservations(jobs bigint[]) RETURNS void
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
         WHERE r.job = ANY ($1)
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

-- The workers that claim jobs now, given the seconds of a lease.
CREATE FUNCTION draftsman.serving_workers(lease float8) RETURNS SETOF draftsman.workers
LANGUAGE sql STABLE AS $$
    SELECT w.* FROM draftsman.workers w
     WHERE NOT w.draining AND w.heartbeat_at > draftsman.now() - make_interval(secs => $1)
$$;

-- The types of queues with jobs that wait for a worker that handles them, although a worker serves the
-- queue: how many of the first jobs of the queue, and since when. Jobs that are found by type are
-- counted for each type.
CREATE FUNCTION draftsman.waiting_for_types(lease float8, most int)
RETURNS TABLE (queue text, type text, jobs bigint, since timestamptz)
LANGUAGE sql STABLE SET enable_seqscan = off SET jit = off AS $$
    WITH served AS MATERIALIZED (
        SELECT q.queue, array_agg(DISTINCT t.type) AS types
          FROM draftsman.serving_workers($1) w
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
             LIMIT $2)
            UNION ALL
           (SELECT b.type, b.queued_at
              FROM draftsman.types_found_by_type(v.queue) AS t (type)
             CROSS JOIN LATERAL (
                   SELECT s.type, s.queued_at FROM draftsman.job_states s
                    WHERE s.by_type AND s.queue = v.queue AND s.type = t.type
                      AND t.type <> ALL (v.types)
                      AND s.status IN ('queued', 'resumed') AND s.hold IS NULL
                    ORDER BY s.priority DESC, s.position, s.number
                    LIMIT $2) b)
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
                    LIMIT $2) b
             WHERE b.queue = v.queue)) f
     WHERE f.type <> ALL (v.types)
     GROUP BY v.queue, f.type
$$;

-- Stores the types of queues that no worker handles, and frees the places that their jobs have; returns
-- the number of these jobs. Jobs of the types `failing` keep their places until the leader has failed
-- them.
CREATE FUNCTION draftsman.set_unhandled_types(lease float8, failing text[], most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    freed int := 0;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.serving_workers($1)) THEN
        RETURN 0;
    END IF;
    WITH waiting AS MATERIALIZED (
        SELECT w.queue, w.type, w.since FROM draftsman.waiting_for_types($1, $3) w
         WHERE w.type <> ALL ($2)
    ), gone AS (
        DELETE FROM draftsman.unhandled_types u
         WHERE NOT EXISTS (SELECT FROM waiting w WHERE w.queue = u.queue AND w.type = u.type)
    )
    INSERT INTO draftsman.unhandled_types (queue, type, since)
    SELECT queue, type, coalesce(since, draftsman.now()) FROM waiting ORDER BY queue, type
        ON CONFLICT DO NOTHING;
    IF EXISTS (SELECT FROM draftsman.unhandled_types) THEN
        freed := draftsman.free_paused_places($3);
    END IF;
    RETURN freed;
END $$;

-- Lets jobs be found by type that many claims would pass: those of types that some worker of their
-- queue does not handle. Claims then pass none of them, however many there are. It looks at the first
-- jobs of each queue, and changes nothing while fewer than 100 of them are passed, which costs a
-- claim less than a lookup of each type. A job keeps the mark, which changes nothing but the index
-- that has it. Returns the number of changed jobs.
CREATE FUNCTION draftsman.set_by_type(lease float8, most int) RETURNS int
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
                     FROM draftsman.serving_workers($1) w
                    CROSS JOIN LATERAL (SELECT DISTINCT unnest(w.types) AS type) t
                    WHERE q.queue = ANY (w.queues)
                    GROUP BY t.type HAVING count(*) = q.workers) AS types
          FROM (SELECT q.queue, count(*) AS workers
                  FROM draftsman.serving_workers($1) w
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

-- Partitions --------------------------------------------------------------------------------------

-- The last position of each partition of a queue: the jobs of a repository, for example.
CREATE TABLE draftsman.partition_positions (
    queue     text NOT NULL,
    priority  int NOT NULL,
    value     text NOT NULL,
    position  bigint NOT NULL,
    PRIMARY KEY (queue, priority, value)
) WITH (fillfactor = 50);

-- The position of the first job of a queue and priority that waits for a place of a limit or for the end
-- of a pause. The first jobs of each bucket are read by index, of at most 1,000 of them.
CREATE FUNCTION draftsman.first_waiting(queue text, priority int) RETURNS bigint
LANGUAGE sql STABLE SET enable_seqscan = off SET jit = off AS $$
    SELECT min(w.position)
      FROM ((SELECT f.queue, f.position
               FROM (SELECT 'pause' AS name
                      UNION ALL
                     SELECT name FROM draftsman.limit_buckets
                      LIMIT 1000) b
              CROSS JOIN LATERAL (
                    SELECT s.queue, s.position FROM draftsman.job_states s
                     WHERE s.held_by = b.name AND s.priority = $2
                     ORDER BY s.position, s.number
                     LIMIT 1000) f)
             UNION ALL
            (SELECT s.queue, s.position FROM draftsman.job_states s
              WHERE s.hold = 'paused' AND s.hold IS NOT NULL AND s.held_by IS NULL
                AND s.concurrency_key IS NULL AND s.priority = $2
              ORDER BY s.position, s.number
              LIMIT 1000)) w
     WHERE w.queue = $1
$$;

-- Gives new jobs of queues with partitions the positions of start-time fair queueing (Goyal, Vin and
-- Cheng, 1996): a job is 100 behind the last job of its partition, but not ahead of the job that is
-- first now. Jobs of equal priority are then taken in turn across the partitions, and a partition that
-- was served before is not behind those that were not. A claim does not know of it.
CREATE FUNCTION draftsman.set_positions(jobs bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part    record;
    earlier bigint;
    start   bigint;
BEGIN
    FOR part IN
        SELECT w.queue, w.priority, w.value, min(w.first) AS first,
               array_agg(w.number ORDER BY w.position, w.number) AS numbers
          FROM (SELECT s.number, s.queue, s.priority, s.position,
                       min(s.position) OVER (PARTITION BY s.queue, s.priority) AS first,
                       coalesce(CASE l.partition WHEN 'person' THEN r.invoker_id
                                WHEN 'agent' THEN r.agent WHEN 'type' THEN r.type
                                ELSE lower(concat_ws('/', r.repo_host, r.repo_owner, r.repo_name)) END, '') AS value
                  FROM draftsman.job_states s
                  JOIN draftsman.job_requests r ON r.number = s.number
                 CROSS JOIN LATERAL (
                       SELECT l.partition FROM draftsman.limits l
                        WHERE l.scope = 'queue' AND l.value IN (s.queue, '*')
                        ORDER BY l.value = '*' LIMIT 1) l
                 WHERE s.number = ANY (jobs) AND l.partition IS NOT NULL) w
         GROUP BY w.queue, w.priority, w.value
         ORDER BY w.queue, w.priority, w.value
    LOOP
        SELECT p.position INTO earlier FROM draftsman.partition_positions p
         WHERE (p.queue, p.priority, p.value) = (part.queue, part.priority, part.value)
           FOR NO KEY UPDATE;
        -- the first job that may be claimed, else the last that a worker has, else the first that waits
        -- for a place or a pause, else the newest position
        start := greatest(earlier + 100, coalesce(
            (SELECT min(f.position)
               FROM ((SELECT s.position FROM draftsman.job_states s
                       WHERE s.queue = part.queue AND s.priority = part.priority AND s.hold IS NULL
                         AND s.status IN ('queued', 'resumed') AND NOT s.by_type
                         AND s.number < (SELECT min(j) FROM unnest(jobs) j)
                       ORDER BY s.priority DESC, s.position, s.number LIMIT 1)
                      UNION ALL
                     (SELECT b.position
                        FROM draftsman.types_found_by_type(part.queue) AS t (type)
                       CROSS JOIN LATERAL (
                             SELECT s.position FROM draftsman.job_states s
                              WHERE s.queue = part.queue AND s.type = t.type AND s.by_type
                                AND s.priority = part.priority AND s.hold IS NULL
                                AND s.status IN ('queued', 'resumed')
                              ORDER BY s.priority DESC, s.position, s.number LIMIT 1) b)) f),
            (SELECT max(s.position) FROM draftsman.job_states s
              WHERE s.status IN ('claimed', 'running') AND s.queue = part.queue
                AND s.priority = part.priority),
            draftsman.first_waiting(part.queue, part.priority),
            part.first));
        UPDATE draftsman.job_states s SET position = start + 100 * (w.place - 1)
          FROM unnest(part.numbers) WITH ORDINALITY AS w (number, place)
         WHERE s.number = w.number;
        INSERT INTO draftsman.partition_positions AS p (queue, priority, value, position)
        VALUES (part.queue, part.priority, part.value,
                start + 100 * (cardinality(part.numbers) - 1))
            ON CONFLICT ON CONSTRAINT partition_positions_pkey
            DO UPDATE SET position = greatest(p.position, excluded.position);
    END LOOP;
END $$;
