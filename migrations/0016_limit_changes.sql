-- Limits of new jobs, changes of limits, and the sweeps of places.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0016_limit_changes') AS applied \gset
\if :applied \echo '0016_limit_changes is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0016_limit_changes');

-- New jobs ----------------------------------------------------------------------------------------

-- Sets the limits of new jobs. Those that are queued take their places at once where all of them
-- have places and no other job waits; else they wait, and the trigger admits the first of them.
-- In a transaction that postpones work, all of them wait.
CREATE FUNCTION draftsman.limit_jobs(jobs bigint[]) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    numbers  bigint[];
    literals text[];
    names    text[];
    counts   int[];
    fits     boolean;
BEGIN
    IF EXISTS (SELECT FROM draftsman.limits WHERE partition IS NOT NULL) THEN
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
CREATE FUNCTION draftsman.fits(names text[], counts int[]) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM draftsman.queue_pauses) AND coalesce(bool_and(
               c.count <= CASE WHEN b.name IS NOT NULL THEN draftsman.free_places(b)
                          ELSE (SELECT least(coalesce(l.running, 2147483647),
                                             coalesce(l.burst, l.rate, 2147483647))
                                  FROM draftsman.limit_of(c.name) l) END
               AND NOT EXISTS (SELECT FROM draftsman.job_states s WHERE s.held_by = c.name)), false)
      FROM unnest(names, counts) AS c (name, count)
      LEFT JOIN draftsman.limit_buckets b ON b.name = c.name
$$;

-- The waiting jobs that get the places of settled runs, at most so many: the worker's statement starts
-- them, so that they are written once instead of twice. They are the first in queue order, up to a job
-- that this worker cannot start or that has another limit. All others are admitted by the trigger.
--
-- A full bucket whose settled runs hand on all their places does not change, so it is not locked: two
-- claim loops would otherwise take turns, each waiting for the commit of the other. A full bucket hands
-- on no more places than its runs free, so that an outdated count cannot exceed the limit.
CREATE FUNCTION draftsman.hand_over(buckets text[], queues text[], types text[], most bigint)
RETURNS SETOF tid LANGUAGE plpgsql ROWS 10 AS $$
BEGIN
    IF most > 0 THEN
        RETURN QUERY
        SELECT f.location
          FROM (SELECT w.*, bool_and(w.queue = ANY ($2) AND w.type = ANY ($3)
                                     AND w.limits = ARRAY[b.name])
                       OVER (PARTITION BY b.name ORDER BY w.priority DESC, w.position, w.number)
                       AS first
                  FROM (SELECT n.name, count(*) AS freed FROM unnest($1) AS n (name)
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
         ORDER BY array_position($2, f.queue), f.priority DESC, f.position, f.number
         LIMIT most;
    END IF;
END $$;

-- Configuration -----------------------------------------------------------------------------------

-- Replaces the limits; false when they are the same. Buckets follow at once; the limits of unfinished
-- jobs by check_limits(). Others wait behind its lock, so it does not wait long for it.
CREATE FUNCTION draftsman.set_limits(limits jsonb, actor text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
    SET lock_timeout = '2s' AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker')
       OR NOT draftsman.may_act_as(actor) THEN
        PERFORM draftsman.deny_access(format('%s may not change limits', actor));
    END IF;
    LOCK TABLE draftsman.limit_changes, draftsman.limit_buckets IN SHARE ROW EXCLUSIVE MODE;
    IF coalesce((SELECT c.limits FROM draftsman.limit_changes c ORDER BY c.id DESC LIMIT 1), '[]')
       = $1 THEN
        RETURN false;
    END IF;
    DELETE FROM draftsman.limits;
    INSERT INTO draftsman.limits
           (scope, value, running, rate, period, burst, partition, release_while_waiting)
    SELECT l.scope, l.value, l.running, l.rate, l.period, l.burst, l.partition,
           coalesce(l.release_while_waiting, false)
      FROM jsonb_populate_recordset(NULL::draftsman.limits, $1) l;
    INSERT INTO draftsman.limit_changes (limits, actor) VALUES ($1, $2);
    PERFORM draftsman.update_buckets();
    RETURN true;
END $$;

-- Copies changed limits to their buckets, and lets the leader's timer give their places.
CREATE FUNCTION draftsman.update_buckets() RETURNS void
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
      LEFT JOIN LATERAL draftsman.limit_of(o.name) l ON true
     WHERE b.name = o.name AND (l.running, l.rate, l.period, l.burst)
           IS DISTINCT FROM (o.running, o.rate, o.period, o.burst);
END $$;

-- Sets the limits of the next unfinished jobs after a change, at most so many; returns 0 after the last.
-- A job without limits keeps an empty array, so that its earlier places are counted.
CREATE FUNCTION draftsman.check_limits(most int) RETURNS int
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
          FROM unnest('{scheduled,queued,claimed,running,waiting_for_input,waiting_for_approval,resumed,retrying}'
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

-- Gives places of buckets that are due, or that have both free places and waiting jobs, at most so
-- many buckets; returns the number of jobs. Removes buckets that count nothing. Buckets that another
-- transaction has locked are left for the next call. They are taken at random: those whose jobs also
-- wait for a locked bucket keep no others from their turn.
CREATE FUNCTION draftsman.give_places(most int) RETURNS int
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

-- Gives the concurrency keys of jobs that have begun to wait for a person to others, where the limit
-- of the key says so; they wait for the key again when they are resumed.
CREATE FUNCTION draftsman.release_keys(jobs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE draftsman.job_states s SET hold = 'key'
     WHERE s.number = ANY (jobs) AND (
           SELECT l.release_while_waiting FROM draftsman.limits l
            WHERE l.scope = 'concurrency_key' AND l.value IN (s.concurrency_key, '*')
            ORDER BY l.value = '*' LIMIT 1);
END $$;

-- Pauses ------------------------------------------------------------------------------------------

-- Lets the first jobs of paused queues and types that may be claimed, and have places in buckets of
-- limits, wait for the end of the pause, so that others get these places; returns their number. The
-- same for types that no worker handles.
CREATE FUNCTION draftsman.free_paused_places(most int) RETURNS int
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

-- Lets the jobs that waited for the end of a pause, or for a worker with their type, wait for places;
-- returns their number.
CREATE FUNCTION draftsman.request_places(most int) RETURNS int
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
