-- Limits of concurrency and rates: the places that jobs take while they are claimed and run, and
-- the turns that partitions of a queue take.

INSERT INTO draftsman.schema_functions (name) VALUES ('limits')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Configuration -----------------------------------------------------------------------------------

-- Replaces the limits; false when they are the same. Buckets follow at once; the limits of
-- unfinished jobs by check_limits(). Others wait behind its lock, so it does not wait long for it.
CREATE OR REPLACE FUNCTION draftsman.set_limits(limits jsonb, actor text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET lock_timeout = '2s' AS $$
BEGIN
    IF NOT draftsman.has_right(actor, NULL, '{worker}') THEN
        PERFORM draftsman.deny_access('queues.change_limits', jsonb_build_object('actor', actor));
    END IF;
    LOCK TABLE draftsman.limit_changes, draftsman.limit_buckets IN SHARE ROW EXCLUSIVE MODE;
    IF coalesce((SELECT c.limits FROM draftsman.limit_changes c ORDER BY c.id DESC LIMIT 1), '[]')
       = set_limits.limits THEN
        RETURN false;
    END IF;
    DELETE FROM draftsman.limits;
    INSERT INTO draftsman.limits
           (scope, value, running, rate, period, burst, partition, release_while_waiting)
    SELECT l.scope, l.value, l.running, l.rate, l.period, l.burst, l.partition,
           coalesce(l.release_while_waiting, false)
      FROM jsonb_populate_recordset(NULL::draftsman.limits, limits) l;
    INSERT INTO draftsman.limit_changes (limits, actor) VALUES (limits, actor);
    PERFORM draftsman.update_buckets();
    RETURN true;
END $$;

-- Copies changed limits to their buckets, and lets the leader's timer give their places.
CREATE OR REPLACE FUNCTION draftsman.update_buckets() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM draftsman.limit_buckets ORDER BY name FOR NO KEY UPDATE;
    UPDATE draftsman.limit_buckets b
       SET running = l.running, rate = l.rate, period = l.period, burst = l.burst, tokens = NULL,
           tokens_at = NULL, next_at = draftsman.now(),
           starts = CASE WHEN l.rate IS NULL OR l.burst IS NOT NULL THEN '{}' ELSE b.starts END,
           start_counts = CASE WHEN l.rate IS NULL OR l.burst IS NOT NULL THEN '{}'
                          ELSE b.start_counts END
      FROM draftsman.limit_buckets o
      LEFT JOIN LATERAL draftsman.limit_of_bucket(o.name) l ON true
     WHERE b.name = o.name AND (l.running, l.rate, l.period, l.burst)
           IS DISTINCT FROM (o.running, o.rate, o.period, o.burst);
END $$;

-- Sets the limits of the next unfinished jobs after a change, at most so many; returns 0 after the
-- last. A job without limits keeps an empty array, so that its earlier places are counted.
CREATE OR REPLACE FUNCTION draftsman.check_limits(most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off SET lock_timeout = '2s' AS $$
DECLARE
    change  draftsman.limit_changes;
    checked bigint[]; asking bigint[];
    waiting text[];
BEGIN
    SELECT * INTO change FROM draftsman.limit_changes
     WHERE id = (SELECT max(id) FROM draftsman.limit_changes) AND checked_to IS NOT NULL
       FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    IF change.checked_to < 0 THEN  -- in a transaction of its own: buckets are locked after jobs
        PERFORM draftsman.update_buckets();
        UPDATE draftsman.limit_changes c
           SET checked_to = 0,  -- after a restore, the transaction may be of another server
               final = change.txid < pg_snapshot_xmin(pg_current_snapshot())
                       OR change.txid >= pg_snapshot_xmax(pg_current_snapshot())
         WHERE c.id = change.id;
        RETURN 1;
    END IF;
    checked := ARRAY(
        SELECT n.number
          FROM unnest(
               '{scheduled,queued,claimed,running,waiting_for_input,waiting_for_approval,resumed,retrying}'
               ::draftsman.job_status[]) AS w (status)
         CROSS JOIN LATERAL (
               SELECT s.number FROM draftsman.job_states s
                WHERE s.status = w.status AND s.number > change.checked_to
                ORDER BY s.number LIMIT most) n
         ORDER BY n.number LIMIT most);
    PERFORM FROM draftsman.job_states s WHERE s.number = ANY (checked)
      ORDER BY s.number FOR NO KEY UPDATE;
    WITH changed AS (
        UPDATE draftsman.job_states s
           SET limits = w.limits,
               hold = CASE WHEN w.limits = '{}' THEN nullif(s.hold, 'limit')
                      WHEN s.status IN ('queued', 'resumed') AND (s.hold >= 'key') IS NOT TRUE
                      THEN 'limit' ELSE s.hold END,
               -- else the trigger would give places before a job that is ahead asks for them
               held_by = CASE WHEN w.limits <> '{}' AND s.status IN ('queued', 'resumed')
                              AND (s.hold >= 'key') IS NOT TRUE THEN 'pause' END
          FROM (SELECT c AS number, coalesce(draftsman.limits_of(c), '{}') AS limits
                  FROM unnest(checked) c) w
         WHERE s.number = w.number AND s.finished_at IS NULL
           AND coalesce(s.limits, '{}') <> w.limits
        RETURNING s.number, s.queue, CASE WHEN s.held_by IS NOT NULL THEN s.limits END AS limits
    )
    -- all their buckets: others may wait for a place of a raised limit, and be ahead
    SELECT array_agg(DISTINCT b) FILTER (WHERE b IS NOT NULL),
           array_agg(DISTINCT number) FILTER (WHERE b IS NOT NULL) INTO waiting, asking
      FROM (SELECT number, limits, pg_notify('draftsman_jobs', queue)::text FROM changed) c
      LEFT JOIN LATERAL unnest(c.limits) b ON true;
    IF asking IS NOT NULL THEN
        UPDATE draftsman.job_states s SET held_by = s.limits[1] WHERE s.number = ANY (asking);
    END IF;
    PERFORM draftsman.try_places(waiting);
    UPDATE draftsman.limit_changes c
       SET checked_to = CASE WHEN cardinality(checked) = most THEN checked[most]
                        WHEN NOT c.final THEN -1 END
     WHERE c.id = change.id;
    RETURN CASE WHEN cardinality(checked) = most THEN most ELSE 0 END;
END $$;

-- New jobs ----------------------------------------------------------------------------------------

-- Sets the limits of new jobs. Those that are queued take their places at once where all of them
-- have places and no other job waits; else they wait, and the trigger admits the first of them.
-- In a transaction that postpones work, all of them wait.
CREATE OR REPLACE FUNCTION draftsman.limit_jobs(jobs bigint[]) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    numbers  bigint[];
    literals text[];
    names    text[];
    counts   int[];
    fits     boolean;
BEGIN
    IF EXISTS (SELECT FROM draftsman.limits WHERE scope = 'queue' AND partition IS NOT NULL) THEN
        IF draftsman.postpones() THEN
            INSERT INTO draftsman.postponed_work (jobs) VALUES (limit_jobs.jobs);
        ELSE
            PERFORM draftsman.set_positions(jobs);
        END IF;
    END IF;
    SELECT array_agg(w.number), array_agg(w.limits::text) INTO numbers, literals
      FROM (SELECT j AS number, draftsman.limits_of(j) AS limits FROM unnest(jobs) j) w
     WHERE w.limits IS NOT NULL;
    IF numbers IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(w.name), array_agg(w.count) INTO names, counts
      FROM (SELECT b AS name, count(*)::int AS count
              FROM unnest(numbers, literals) AS l (number, literal)
              JOIN draftsman.job_states s ON s.number = l.number
             CROSS JOIN unnest(l.literal::text[]) b
             WHERE s.status = 'queued' AND s.hold IS NULL
             GROUP BY b) w;
    fits := NOT draftsman.postpones() AND draftsman.fits(names, counts);
    IF fits THEN
        PERFORM draftsman.lock_buckets(names);
        fits := draftsman.fits(names, counts);
    END IF;
    UPDATE draftsman.job_states s
       SET limits = l.literal::text[],
           hold = CASE WHEN s.status = 'queued' AND s.hold IS NULL AND NOT fits
                  THEN 'limit' ELSE s.hold END,
           held_by = CASE WHEN s.status = 'queued' AND s.hold IS NULL AND NOT fits
                     THEN (l.literal::text[])[1] END
      FROM unnest(numbers, literals) AS l (number, literal)
     WHERE s.number = l.number;
    IF fits THEN
        PERFORM draftsman.count_starts(names, counts);
    END IF;
END $$;

-- Whether so many jobs have places in each bucket, no other job waits there, and nothing is paused.
CREATE OR REPLACE FUNCTION draftsman.fits(names text[], counts int[]) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM draftsman.queue_pauses) AND coalesce(bool_and(
               c.count <= CASE WHEN b.name IS NOT NULL THEN draftsman.free_places(b)
                          ELSE (SELECT least(coalesce(l.running, 2147483647),
                                             coalesce(l.burst, l.rate, 2147483647))
                                  FROM draftsman.limit_of_bucket(c.name) l) END
               AND NOT EXISTS (SELECT FROM draftsman.job_states s WHERE s.held_by = c.name)), false)
      FROM unnest(names, counts) AS c (name, count)
      LEFT JOIN draftsman.limit_buckets b ON b.name = c.name
$$;

-- The buckets of a job in sorted order; NULL without any.
CREATE OR REPLACE FUNCTION draftsman.limits_of(job bigint) RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
    SELECT array_agg(DISTINCT v.scope || ':' || CASE l.value WHEN '*' THEN v.value ELSE l.value END)
      FROM draftsman.job_states s
      JOIN draftsman.job_requests r ON r.number = s.number
     CROSS JOIN LATERAL (VALUES
               ('all', '*'), ('queue', s.queue), ('type', s.type), ('agent', r.agent),
               ('person', r.invoker_id), ('repo', draftsman.repo_of(r)),
               ('concurrency_key', s.concurrency_key)) AS v (scope, value)
     CROSS JOIN LATERAL draftsman.limit_of(v.scope, v.value) l
     WHERE s.number = job AND v.value <> '' AND num_nonnulls(l.running, l.rate) > 0
$$;

-- Gives new jobs of queues with partitions the positions of start-time fair queueing (Goyal, Vin
-- and Cheng, 1996): a job is 100 behind the last job of its partition, but not ahead of the job
-- that is first now. Jobs of equal priority are then taken in turn across the partitions, and a
-- partition that was served before is not behind those that were not. A claim does not know of it.
CREATE OR REPLACE FUNCTION draftsman.set_positions(jobs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
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
                                ELSE draftsman.repo_of(r) END, '') AS value
                  FROM draftsman.job_states s
                  JOIN draftsman.job_requests r ON r.number = s.number
                 CROSS JOIN LATERAL draftsman.limit_of('queue', s.queue) l
                 WHERE s.number = ANY (jobs) AND l.partition IS NOT NULL) w
         GROUP BY w.queue, w.priority, w.value
         ORDER BY w.queue, w.priority, w.value
    LOOP
        SELECT p.position INTO earlier FROM draftsman.partition_positions p
         WHERE (p.queue, p.priority, p.value) = (part.queue, part.priority, part.value)
           FOR NO KEY UPDATE;
        -- the first job that may be claimed, else the last that a worker has, else the first that
        -- waits for a place or a pause, else the newest position
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

-- The position of the first job of a queue and priority that waits for a place of a limit or for
-- the end of a pause. The first jobs of each bucket are read by index, of at most 1,000 of them.
CREATE OR REPLACE FUNCTION draftsman.first_waiting(queue text, priority int) RETURNS bigint
LANGUAGE sql STABLE SET enable_seqscan = off SET jit = off AS $$
    SELECT min(w.position)
      FROM ((SELECT f.queue, f.position
               FROM (SELECT 'pause' AS name
                      UNION ALL
                     SELECT name FROM draftsman.limit_buckets
                      LIMIT 1000) b
              CROSS JOIN LATERAL (
                    SELECT s.queue, s.position FROM draftsman.job_states s
                     WHERE s.held_by = b.name AND s.priority = first_waiting.priority
                     ORDER BY s.position, s.number
                     LIMIT 1000) f)
             UNION ALL
            (SELECT s.queue, s.position FROM draftsman.job_states s
              WHERE s.hold = 'paused' AND s.hold IS NOT NULL AND s.held_by IS NULL
                AND s.concurrency_key IS NULL AND s.priority = first_waiting.priority
              ORDER BY s.position, s.number
              LIMIT 1000)) w
     WHERE w.queue = first_waiting.queue
$$;

-- Jobs that end, and jobs that wait ---------------------------------------------------------------

-- Whether a job has a place in each of its buckets.
CREATE OR REPLACE FUNCTION draftsman.has_place(s draftsman.job_states) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    s.limits IS NOT NULL AND (s.status IN ('claimed', 'running')
                              OR (s.status IN ('queued', 'resumed') AND s.hold IS NULL));

-- Whether a job begins to wait for a place in a bucket, or moves among those that wait.
CREATE OR REPLACE FUNCTION draftsman.begins_to_wait(
    o draftsman.job_states, n draftsman.job_states
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    n.held_by <> 'pause' AND (coalesce(o.held_by, 'pause') = 'pause'
                              OR (n.priority, n.position) <> (o.priority, o.position));

-- Whether a job was queued without asking for places.
CREATE OR REPLACE FUNCTION draftsman.has_arrived(
    o draftsman.job_states, n draftsman.job_states
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    n.status IN ('queued', 'resumed') AND n.hold IS NULL AND n.limits <> '{}'
    AND (o.status <> n.status OR o.hold >= 'key') AND NOT draftsman.has_place(o);

-- The waiting jobs that get the places of settled runs, at most so many: the worker's statement
-- starts them, so that they are written once instead of twice. They are the first in queue order,
-- up to a job that this worker cannot start or that has another limit. All others are admitted by
-- the trigger.
--
-- A full bucket whose settled runs hand on all their places does not change, so it is not locked:
-- two claim loops would otherwise take turns, each waiting for the commit of the other. A full
-- bucket hands on no more places than its runs free, so that an outdated count cannot exceed the
-- limit.
CREATE OR REPLACE FUNCTION draftsman.hand_over(
    buckets text[], queues text[], types text[], most bigint
) RETURNS SETOF tid
LANGUAGE plpgsql ROWS 10 AS $$
BEGIN
    IF most > 0 THEN
        RETURN QUERY
        SELECT f.location
          FROM (SELECT w.*, bool_and(w.queue = ANY (queues) AND w.type = ANY (types)
                                     AND w.limits = ARRAY[b.name])
                       OVER (PARTITION BY b.name ORDER BY w.priority DESC, w.position, w.number)
                       AS first
                  FROM (SELECT n.name, count(*) AS freed FROM unnest(buckets) AS n (name)
                         GROUP BY n.name) p
                 CROSS JOIN LATERAL (
                       SELECT l.name, l.running - l.taken + p.freed AS places
                         FROM draftsman.limit_buckets l
                        WHERE l.name = p.name AND l.taken >= l.running AND l.rate IS NULL
                        LIMIT 1) b
                 CROSS JOIN LATERAL (
                       SELECT s.ctid AS location, s.type, s.queue, s.limits, s.priority, s.position,
                              s.number
                         FROM draftsman.job_states s
                        WHERE s.held_by = b.name AND s.status IN ('queued', 'resumed')
                        ORDER BY s.priority DESC, s.position, s.number
                        LIMIT least(most, greatest(0, b.places))
                          FOR NO KEY UPDATE SKIP LOCKED) w
                 WHERE NOT EXISTS (SELECT FROM draftsman.queue_pauses)
                   AND NOT EXISTS (SELECT FROM draftsman.job_pauses)
                   AND NOT EXISTS (SELECT FROM draftsman.queue_reservations)) f
         WHERE f.first
         ORDER BY array_position(queues, f.queue), f.priority DESC, f.position, f.number
         LIMIT most;
    END IF;
END $$;

-- Counts the places that a statement took and freed in each bucket, and gives free places to the
-- jobs that waited and that wait now; arrived jobs ask for places.
CREATE OR REPLACE FUNCTION draftsman.change_places(
    buckets text[], changes int[], waited text[], arrived bigint[]
) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    -- a single bucket for which no job waits: its lock keeps others from beginning to wait
    IF cardinality(buckets) = 1 AND num_nonnulls(waited, arrived) = 0 THEN
        UPDATE draftsman.limit_buckets b
           SET taken = b.taken + changes[1], next_at = CASE WHEN changes[1] > 0 THEN b.next_at END
         WHERE b.name = buckets[1] AND (changes[1] > 0 OR NOT EXISTS (
               SELECT FROM draftsman.job_states s WHERE s.held_by = buckets[1]))
           AND NOT EXISTS (
               SELECT FROM draftsman.postponed_work p WHERE p.bucket = buckets[1]);
        IF FOUND THEN
            IF changes[1] < 0 AND EXISTS (
                   SELECT FROM draftsman.job_states s WHERE s.held_by = buckets[1]) THEN
                PERFORM draftsman.admit(buckets, ARRAY[b])
                   FROM draftsman.limit_buckets b WHERE b.name = buckets[1];
            END IF;
            RETURN;
        END IF;
    END IF;
    PERFORM draftsman.try_places(
        (SELECT array_agg(t.name)
           FROM (SELECT name FROM unnest(buckets, changes) AS c (name, change) WHERE change < 0
                  UNION
                 SELECT unnest(waited)) t),
        buckets, changes, arrived);
END $$;

-- Counts places that were taken and freed in each bucket, lets arrived jobs wait, and tries to give
-- places of the tried buckets to the jobs that wait for them, in one order of locks.
CREATE OR REPLACE FUNCTION draftsman.try_places(
    tried text[], buckets text[] DEFAULT NULL, changes int[] DEFAULT NULL,
    arrived bigint[] DEFAULT NULL
) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    names text[] := buckets || tried;
BEGIN
    IF num_nonnulls(buckets, tried, arrived) = 0 THEN
        RETURN 0;
    END IF;
    IF tried IS NOT NULL THEN
        names := names || ARRAY(
            SELECT unnest(w.limits) FROM unnest(tried) AS t (name)
             CROSS JOIN LATERAL (
                   SELECT s.limits FROM draftsman.job_states s
                    WHERE s.held_by = t.name
                    ORDER BY s.priority DESC, s.position, s.number
                    LIMIT 100) w);
    END IF;
    PERFORM draftsman.lock_buckets(names);
    IF buckets IS NOT NULL THEN
        UPDATE draftsman.limit_buckets b SET taken = b.taken + c.change
          FROM unnest(buckets, changes) AS c (name, change) WHERE b.name = c.name;
    END IF;
    IF arrived IS NOT NULL THEN
        UPDATE draftsman.job_states s SET hold = 'limit', held_by = s.limits[1]
         WHERE s.number = ANY (arrived);
    END IF;
    -- read again after the locks, which a job that began to wait meanwhile has held
    IF EXISTS (SELECT FROM draftsman.job_states s WHERE s.held_by = ANY (tried)) THEN
        -- of all locked buckets: a job that waits for another of them may be ahead
        RETURN (SELECT draftsman.admit(array_agg(b.name), array_agg(b))
                  FROM draftsman.limit_buckets b
                 WHERE b.name = ANY (names));
    END IF;
    UPDATE draftsman.limit_buckets b SET next_at = NULL
     WHERE b.name = ANY (tried) AND b.next_at IS NOT NULL;
    RETURN 0;
END $$;

-- Gives free places of these buckets, whose rows the caller has locked together with others, to the
-- jobs that wait for them: the first in queue order, at most 1,000. A job has its places when each
-- of its buckets has; else it waits for a full bucket. A job of a paused queue or type waits for
-- the end of the pause, and a job of a type that no worker handles for such a worker, so that it
-- does not keep others from the places.
CREATE OR REPLACE FUNCTION draftsman.admit(
    tried text[], locked draftsman.limit_buckets[]
) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    names    text[] := ARRAY(SELECT b.name FROM unnest(locked) b);
    free     int[] := ARRAY(SELECT CASE WHEN b.rate IS NULL
                                   THEN coalesce(b.running - b.taken, 2147483647)
                                   ELSE draftsman.free_places(b) END FROM unnest(locked) b);
    started  int[] := array_fill(0, ARRAY[cardinality(locked)]);
    rated    boolean := (SELECT bool_or(b.rate IS NOT NULL OR b.next_at IS NOT NULL)
                           FROM unnest(locked) b);
    admitted bigint[] := '{}'; moved bigint[] := '{}';
    places   text[] := '{}';  -- the buckets that the moved jobs wait for
    skipped  bigint[] := '{}';
    later    text[] := '{}';  -- buckets that the leader tries again
    queues   text[] := '{}';
    pauses   boolean := EXISTS (SELECT FROM draftsman.queue_pauses)
                     OR EXISTS (SELECT FROM draftsman.job_pauses)
                     OR EXISTS (SELECT FROM draftsman.unhandled_types);
    place    text;
    bucket   text;
    at       int;
    other    draftsman.limit_buckets;
    job      record;
    passed   int := 0; before int;
BEGIN
    LOOP
        before := passed;
        FOR job IN
            SELECT c.*, row_number() OVER (
                       PARTITION BY t.name ORDER BY c.priority DESC, c.position, c.number)
                       >= free[array_position(names, t.name)] AS last
              FROM unnest(tried) AS t (name)
             CROSS JOIN LATERAL (
                   SELECT s.number, s.limits, s.queue, s.type, s.priority, s.position, s.held_by
                     FROM draftsman.job_states s
                    WHERE s.held_by = t.name AND s.status IN ('queued', 'resumed')
                      AND s.number <> ALL (admitted || moved || skipped)
                    ORDER BY s.priority DESC, s.position, s.number
                    LIMIT least(greatest(free[array_position(names, t.name)], 0), 1000 - passed)
                      FOR NO KEY UPDATE SKIP LOCKED) c
             ORDER BY c.priority DESC, c.position, c.number
             LIMIT 1000 - passed
        LOOP
            passed := passed + 1;
            IF NOT job.limits <@ names THEN
                -- it came after the buckets were locked; waiting for more of them could deadlock
                FOR other IN
                    SELECT b.* FROM draftsman.limit_buckets b
                     WHERE b.name = ANY (job.limits) AND b.name <> ALL (names)
                     ORDER BY b.name FOR NO KEY UPDATE SKIP LOCKED
                LOOP
                    names := names || other.name;
                    free := free || draftsman.free_places(other);
                    started := started || 0;
                    rated := rated OR other.rate IS NOT NULL;
                END LOOP;
                IF NOT job.limits <@ names THEN
                    skipped := skipped || job.number;
                    later := later || job.held_by;
                    CONTINUE;
                END IF;
            END IF;
            place := CASE WHEN free[array_position(names, job.held_by)] <= 0 THEN job.held_by END;
            IF pauses THEN
                PERFORM FROM draftsman.queue_pauses p
                  WHERE p.queue = job.queue AND (p.type IS NULL OR p.type = job.type)
                    FOR KEY SHARE;  -- a resume waits, and sees the job
                place := CASE WHEN FOUND OR EXISTS (
                    SELECT FROM draftsman.job_pauses p
                     WHERE p.job = job.number) OR EXISTS (
                    SELECT FROM draftsman.unhandled_types u
                     WHERE u.queue = job.queue AND u.type = job.type) THEN 'pause' ELSE place END;
            END IF;
            IF place IS NULL THEN
                FOREACH bucket IN ARRAY job.limits LOOP
                    place := CASE WHEN free[array_position(names, bucket)] <= 0 THEN bucket END;
                    EXIT WHEN place IS NOT NULL;
                END LOOP;
            END IF;
            IF place IS NULL THEN
                admitted := admitted || job.number;
                IF job.queue <> ALL (queues) THEN
                    queues := queues || job.queue;
                    PERFORM pg_notify('draftsman_jobs', job.queue);
                END IF;
                FOREACH bucket IN ARRAY job.limits LOOP
                    at := array_position(names, bucket);
                    free[at] := free[at] - 1;
                    started[at] := started[at] + 1;
                END LOOP;
            ELSIF place <> job.held_by THEN
                moved := moved || job.number;
                places := places || place;
            END IF;  -- more jobs of its bucket may be ahead of the others
            EXIT WHEN job.last AND free[array_position(names, job.held_by)] > 0;
        END LOOP;
        EXIT WHEN passed = before;
        IF passed >= 1000 THEN
            later := later || tried;
            EXIT;
        END IF;
    END LOOP;
    IF moved <> '{}' THEN
        UPDATE draftsman.job_states s SET held_by = w.place
          FROM unnest(moved, places) AS w (number, place) WHERE s.number = w.number;
    END IF;
    IF admitted <> '{}' THEN
        UPDATE draftsman.job_states s SET hold = NULL, held_by = NULL
         WHERE s.number = ANY (admitted);
    END IF;
    IF rated THEN
        PERFORM draftsman.count_starts(names, started);
    END IF;
    IF later <> '{}' THEN
        UPDATE draftsman.limit_buckets SET next_at = draftsman.now() WHERE name = ANY (later);
    END IF;
    RETURN cardinality(admitted);
END $$;

-- Counts starts against the rates of locked buckets, and sets the time of the next for the leader's
-- timer while jobs wait for the rate. A window of more than 100 starts is counted in hundredths of
-- its period, rounded up, so that it never has more starts than the limit.
CREATE OR REPLACE FUNCTION draftsman.count_starts(names text[], counts int[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := draftsman.now();
BEGIN
    UPDATE draftsman.limit_buckets b
       SET starts = w.starts, start_counts = w.counts,
           tokens = CASE WHEN b.burst IS NOT NULL THEN least(b.burst, coalesce(b.tokens
                    + b.rate / b.period * extract(epoch FROM now - b.tokens_at), b.burst))
                    - c.count END,
           tokens_at = CASE WHEN b.burst IS NOT NULL THEN now END
      FROM unnest(names, counts) AS c (name, count)
     CROSS JOIN LATERAL (
           SELECT coalesce(array_agg(g.at ORDER BY g.at), '{}') AS starts,
                  coalesce(array_agg(g.count ORDER BY g.at), '{}') AS counts
             FROM (SELECT s.at, sum(s.count)::int AS count
                     FROM (SELECT * FROM draftsman.limit_buckets o WHERE o.name = c.name) o
                    CROSS JOIN LATERAL (
                          SELECT * FROM unnest(o.starts, o.start_counts)
                           UNION ALL
                          SELECT CASE WHEN o.rate <= 100 THEN now
                                 ELSE to_timestamp(ceil(extract(epoch FROM now) * 100 / o.period)
                                                   * o.period / 100) END, c.count) s (at, count)
                    WHERE s.at > now - make_interval(secs => o.period) AND o.burst IS NULL
                    GROUP BY s.at) g) w
     WHERE b.name = c.name AND b.rate IS NOT NULL AND c.count > 0;
    UPDATE draftsman.limit_buckets b SET next_at = w.next_at
      FROM (SELECT o.name, CASE WHEN o.rate IS NOT NULL AND (o.taken < o.running) IS NOT FALSE
                           AND EXISTS (SELECT FROM draftsman.job_states s WHERE s.held_by = o.name)
                           THEN draftsman.next_start(o) END AS next_at
              FROM draftsman.limit_buckets o WHERE o.name = ANY (names)) w
     WHERE b.name = w.name AND b.next_at IS DISTINCT FROM w.next_at;
END $$;

-- Buckets -----------------------------------------------------------------------------------------

-- Creates the missing buckets, and locks them all in sorted order, so that two sessions cannot
-- deadlock: a statement locks jobs, then all buckets that it needs, then only jobs that no other
-- session has locked. Adds the postponed changes of their places.
CREATE OR REPLACE FUNCTION draftsman.lock_buckets(names text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    locked int;
BEGIN
    names := ARRAY(SELECT DISTINCT n FROM unnest(names) n WHERE n IS NOT NULL ORDER BY n);
    LOOP
        IF (SELECT count(*) FROM draftsman.limit_buckets b WHERE b.name = ANY (names))
           < cardinality(names) THEN
            INSERT INTO draftsman.limit_buckets (name, running, rate, period, burst)
            SELECT w.name, l.running, l.rate, l.period, l.burst
              FROM unnest(names) AS w (name)
              LEFT JOIN LATERAL draftsman.limit_of_bucket(w.name) l ON true
             ORDER BY w.name
                ON CONFLICT DO NOTHING;
        END IF;
        PERFORM FROM draftsman.limit_buckets b
          WHERE b.name = ANY (names) ORDER BY b.name FOR NO KEY UPDATE;
        GET DIAGNOSTICS locked = ROW_COUNT;
        EXIT WHEN locked = cardinality(names);  -- else a bucket was removed meanwhile
    END LOOP;
    IF EXISTS (SELECT FROM draftsman.postponed_work p WHERE p.bucket = ANY (names)) THEN
        WITH counted AS (
            DELETE FROM draftsman.postponed_work p WHERE p.bucket = ANY (names)
            RETURNING p.bucket, p.change
        )
        UPDATE draftsman.limit_buckets b SET taken = b.taken + c.change
          FROM (SELECT bucket, sum(change)::int AS change FROM counted GROUP BY bucket) c
         WHERE b.name = c.bucket;
    END IF;
END $$;

-- The limit of a value.
CREATE OR REPLACE FUNCTION draftsman.limit_of(scope text, value text) RETURNS SETOF draftsman.limits
LANGUAGE sql STABLE AS $$
    SELECT l.* FROM draftsman.limits l
     WHERE l.scope = limit_of.scope
       AND l.value = ANY (draftsman.configured_names(limit_of.scope, limit_of.value))
     ORDER BY array_position(draftsman.configured_names(limit_of.scope, limit_of.value), l.value)
     LIMIT 1
$$;

-- The limit of a bucket, whose name is scope and value.
CREATE OR REPLACE FUNCTION draftsman.limit_of_bucket(name text) RETURNS SETOF draftsman.limits
LANGUAGE sql STABLE AS $$
    SELECT l.* FROM draftsman.limit_of(split_part(name, ':', 1),
                                       substr(name, strpos(name, ':') + 1)) l
$$;

-- The names under which the limit or budget of a value may be configured; the first that is
-- configured counts. A repository, in lower case, is found as `host/owner/name`, then as
-- `owner/name` and `name` of any host; `*` is every value.
CREATE OR REPLACE FUNCTION draftsman.configured_names(scope text, value text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    CASE WHEN scope = 'repo'
         THEN ARRAY[value, regexp_replace(value, '^[^/]*/', ''),
                    regexp_replace(value, '^.*/', ''), '*']
         ELSE ARRAY[value, '*'] END;

-- The places that a bucket has now.
CREATE OR REPLACE FUNCTION draftsman.free_places(b draftsman.limit_buckets) RETURNS int
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT greatest(0, least(
        coalesce(b.running - b.taken, 2147483647),
        CASE WHEN b.rate IS NULL THEN 2147483647
             WHEN b.burst IS NULL THEN b.rate - coalesce((
                  SELECT sum(s.count) FROM unnest(b.starts, b.start_counts) AS s (at, count)
                   WHERE s.at > draftsman.now() - make_interval(secs => b.period)), 0)
             ELSE floor(least(b.burst, coalesce(b.tokens + b.rate / b.period
                  * extract(epoch FROM draftsman.now() - b.tokens_at), b.burst) + 1e-6)) END))::int
$$;

-- The time of the next start that the rate of a bucket allows; now, if it allows one.
CREATE OR REPLACE FUNCTION draftsman.next_start(b draftsman.limit_buckets) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT greatest(draftsman.now(), CASE
        WHEN b.burst IS NOT NULL
        THEN b.tokens_at + make_interval(secs => (1 - b.tokens) * b.period / b.rate)
        WHEN b.rate IS NOT NULL THEN (
             SELECT max(w.at) + make_interval(secs => b.period)
               FROM (SELECT s.at, sum(s.count) OVER (ORDER BY s.at DESC) AS later
                       FROM unnest(b.starts, b.start_counts) AS s (at, count)) w
              WHERE w.later >= b.rate) END)
$$;

-- Sweeps ------------------------------------------------------------------------------------------

-- Gives places of buckets that are due, or that have both free places and waiting jobs, at most so
-- many buckets; returns the number of jobs. Removes buckets that count nothing. Buckets that
-- another transaction has locked are left for the next call. They are taken at random: those whose
-- jobs also wait for a locked bucket keep no others from their turn.
CREATE OR REPLACE FUNCTION draftsman.give_places(most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off SET lock_timeout = '100ms' AS $$
DECLARE
    tried  text[];
    bucket text;
    given  int := 0;
BEGIN
    WITH RECURSIVE waited AS (
        (SELECT held_by FROM draftsman.job_states
          WHERE held_by IS NOT NULL ORDER BY held_by LIMIT 1)
         UNION ALL
        SELECT (SELECT s.held_by FROM draftsman.job_states s
                 WHERE s.held_by > w.held_by ORDER BY s.held_by LIMIT 1)
          FROM waited w
         WHERE w.held_by IS NOT NULL
    )
    SELECT array_agg(n.name) INTO tried
      FROM (SELECT name FROM draftsman.limit_buckets WHERE next_at <= draftsman.now()
             UNION
            SELECT w.held_by FROM waited w
              LEFT JOIN draftsman.limit_buckets b ON b.name = w.held_by
             WHERE w.held_by <> 'pause' AND (b.name IS NULL OR draftsman.free_places(b) > 0)) n;
    DELETE FROM draftsman.limit_buckets b
     WHERE b.name = ANY (ARRAY(
           SELECT o.name FROM draftsman.limit_buckets o
            WHERE o.taken = 0 AND o.next_at IS NULL
              AND NOT EXISTS (SELECT FROM draftsman.postponed_work p WHERE p.bucket = o.name)
              AND (o.rate IS NULL OR draftsman.free_places(o) >= coalesce(o.burst, o.rate))
              AND NOT EXISTS (SELECT FROM draftsman.job_states s WHERE s.held_by = o.name)
            ORDER BY o.name LIMIT most
              FOR UPDATE SKIP LOCKED));
    tried := ARRAY(SELECT t FROM unnest(tried) t
                    WHERE NOT EXISTS (SELECT FROM draftsman.limit_buckets b WHERE b.name = t)
                    LIMIT most)
          || ARRAY(SELECT b.name FROM draftsman.limit_buckets b
                    WHERE b.name = ANY (tried)
                    ORDER BY random()
                    LIMIT most
                      FOR NO KEY UPDATE SKIP LOCKED);
    IF tried = '{}' THEN
        RETURN 0;
    END IF;
    BEGIN
        RETURN draftsman.try_places(tried);
    EXCEPTION WHEN lock_not_available THEN
        FOREACH bucket IN ARRAY tried LOOP
            BEGIN
                given := given + draftsman.try_places(ARRAY[bucket]);
            EXCEPTION WHEN lock_not_available THEN
                NULL;  -- a job waits for this bucket and for a locked one
            END;
        END LOOP;
        RETURN given;
    END;
END $$;

-- Lets the first jobs of paused queues and types that may be claimed, and have places in buckets of
-- limits, wait for the end of the pause, so that others get these places; returns their number. The
-- same for types that no worker handles.
CREATE OR REPLACE FUNCTION draftsman.free_paused_places(most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    pause   record;
    freed   int := 0;
    changed int;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.limit_buckets) THEN
        RETURN 0;
    END IF;
    PERFORM FROM draftsman.queue_pauses p ORDER BY p.queue, p.type FOR KEY SHARE;
    FOR pause IN
        SELECT p.queue, p.type FROM draftsman.queue_pauses p
         UNION
        SELECT u.queue, u.type FROM draftsman.unhandled_types u
         ORDER BY queue, type
    LOOP
        UPDATE draftsman.job_states s SET hold = 'limit', held_by = 'pause'
         WHERE s.ctid = ANY (ARRAY(
               SELECT j.ctid FROM draftsman.job_states j
                WHERE j.hold IS NULL AND j.status IN ('queued', 'resumed') AND j.ctid = ANY (ARRAY(
               SELECT f.location
                 FROM (SELECT ctid AS location, type, limits
                         FROM draftsman.job_states
                        WHERE queue = pause.queue AND status IN ('queued', 'resumed')
                          AND hold IS NULL AND NOT by_type
                        ORDER BY priority DESC, position, number
                        LIMIT most) f
                WHERE f.limits <> '{}' AND coalesce(pause.type, f.type) = f.type
                UNION ALL
               SELECT f.location
                 FROM draftsman.types_found_by_type(pause.queue) AS t (type)
                CROSS JOIN LATERAL (
                      SELECT ctid AS location, limits
                        FROM draftsman.job_states
                       WHERE by_type AND queue = pause.queue AND type = t.type
                         AND status IN ('queued', 'resumed') AND hold IS NULL
                       ORDER BY priority DESC, position, number
                       LIMIT most) f
                WHERE f.limits <> '{}' AND coalesce(pause.type, t.type) = t.type))
                FOR NO KEY UPDATE SKIP LOCKED));
        GET DIAGNOSTICS changed = ROW_COUNT;
        freed := freed + changed;
    END LOOP;
    RETURN freed;
END $$;

-- Lets the jobs that waited for the end of a pause, or for a worker with their type, wait for
-- places; returns their number.
CREATE OR REPLACE FUNCTION draftsman.request_places(most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    resumed int;
BEGIN
    UPDATE draftsman.job_states s SET held_by = s.limits[1]
     WHERE s.ctid = ANY (ARRAY(
           SELECT h.ctid FROM draftsman.job_states h
            WHERE h.held_by = 'pause' AND NOT EXISTS (
                  SELECT FROM draftsman.job_pauses p WHERE p.job = h.number) AND NOT EXISTS (
                  SELECT FROM draftsman.queue_pauses p
                   WHERE p.queue = h.queue AND (p.type IS NULL OR p.type = h.type)) AND NOT EXISTS (
                  SELECT FROM draftsman.unhandled_types u
                   WHERE u.queue = h.queue AND u.type = h.type)
            ORDER BY h.priority DESC, h.position, h.number
            LIMIT most
              FOR NO KEY UPDATE SKIP LOCKED));
    GET DIAGNOSTICS resumed = ROW_COUNT;
    RETURN resumed;
END $$;

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_limits() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.set_limits(jsonb, text), draftsman.hand_over(text[], text[], text[], bigint)');
    SELECT draftsman.grant_to('worker bot person', 'EXECUTE ON FUNCTION
        draftsman.check_limits(int), draftsman.give_places(int)');
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.configured_names(text, text),
        draftsman.has_place(draftsman.job_states), draftsman.free_places(draftsman.limit_buckets),
        draftsman.next_start(draftsman.limit_buckets)');
$$;
