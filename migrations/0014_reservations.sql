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
CREATE FUNCTION draftsman.claim_reserving_jobs(queues text[], skip text[])
RETURNS TABLE (location tid, type text) LANGUAGE sql VOLATILE ROWS 1 AS $$
    SELECT c.location, c.type
      FROM draftsman.active_reservations r
     CROSS JOIN LATERAL (
           SELECT q.location, q.type
             FROM draftsman.claimable q
            WHERE q.number = r.job AND q.queue = r.queue AND q.type <> ALL ($2)
            LIMIT 1
              FOR NO KEY UPDATE SKIP LOCKED) c
     WHERE r.queue = ANY ($1)
       AND NOT EXISTS (SELECT FROM draftsman.queue_pauses p
                        WHERE p.queue = r.queue AND p.type IS NULL)
     ORDER BY r.queue
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
     WHERE r.queue = $1 AND r.expires_at > draftsman.now();
    IF FOUND THEN
        IF draftsman.delete_reservations(ARRAY[reserving], 'released', $2) = 0 THEN
            RETURN NULL;  -- it ended meanwhile
        END IF;
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
            (SELECT s.position FROM draftsman.job_states s
              WHERE s.queue = part.queue AND s.priority = part.priority AND s.hold IS NULL
                AND s.status IN ('queued', 'resumed')
                AND s.number < (SELECT min(j) FROM unnest(jobs) j)
              ORDER BY s.priority DESC, s.position, s.number LIMIT 1),
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
