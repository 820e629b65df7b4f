-- Limits of concurrency and rates: the places that jobs take while they are claimed and run.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0012_limits') AS applied \gset
\if :applied \echo '0012_limits is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0012_limits');

-- The configured limits, as the leader wrote them. The value `*` is each value without a limit of
-- its own.
CREATE TABLE draftsman.limits (
    scope                  text NOT NULL CHECK (scope IN (
                               'all', 'queue', 'type', 'agent', 'repo', 'person', 'concurrency_key')),
    value                  text NOT NULL CHECK (value <> ''),
    running                int CHECK (running > 0),
    rate                   int CHECK (rate > 0),
    period                 float8 CHECK (period > 0),  -- seconds
    burst                  int CHECK (burst > 0),
    release_while_waiting  boolean NOT NULL DEFAULT false,
    partition              text CHECK (partition IN ('repo', 'person', 'agent', 'type')),
    PRIMARY KEY (scope, value),
    CONSTRAINT limits_rate CHECK ((rate IS NULL) = (period IS NULL)
                                  AND (burst IS NULL OR rate IS NOT NULL)),
    CONSTRAINT limits_key CHECK (CASE WHEN scope = 'concurrency_key' THEN running IS NULL
                                 ELSE NOT release_while_waiting END),
    CONSTRAINT limits_partition CHECK (partition IS NULL OR scope = 'queue')
);

-- The history of the configuration. `checked_to` is the last unfinished job that has the limits of
-- the newest change; -1 before a pass, NULL when all have them. The last pass, `final`, begins when
-- each transaction has ended that may have inserted a job with the limits of before.
CREATE TABLE draftsman.limit_changes (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    limits      jsonb NOT NULL CHECK (jsonb_typeof(limits) = 'array'),
    actor       text NOT NULL CHECK (actor <> ''),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    txid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    checked_to  bigint DEFAULT -1,
    final       boolean NOT NULL DEFAULT false
);

-- A bucket is a limit of a value that jobs have, such as `repo:shop`. `taken` counts the jobs that
-- may be claimed, are claimed or run; `starts` are the recent starts of a sliding window, and
-- `tokens` those that a token bucket had at `tokens_at`. `next_at` is the next start while jobs wait
-- for the rate.
CREATE TABLE draftsman.limit_buckets (
    name          text PRIMARY KEY,
    running       int,
    rate          int,
    period        float8,
    burst         int,
    taken         int NOT NULL DEFAULT 0 CHECK (taken >= 0),
    starts        timestamptz[] NOT NULL DEFAULT '{}',
    start_counts  int[] NOT NULL DEFAULT '{}',
    tokens        float8,
    tokens_at     timestamptz,
    next_at       timestamptz,
    CONSTRAINT limit_buckets_starts CHECK (cardinality(starts) = cardinality(start_counts)),
    CONSTRAINT limit_buckets_tokens CHECK ((tokens IS NULL) = (tokens_at IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX limit_buckets_next ON draftsman.limit_buckets (next_at) WHERE next_at IS NOT NULL;

-- Buckets of a job --------------------------------------------------------------------------------

-- The buckets of a job in sorted order; NULL without any. A limit of a value replaces that of `*`; of a
-- repository, in lower case, `host/owner/name` comes before `owner/name` and `name`, which are of any host.
CREATE FUNCTION draftsman.limits_of(job bigint) RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
    SELECT array_agg(DISTINCT v.scope || ':' || CASE l.value WHEN '*' THEN v.value ELSE l.value END)
      FROM draftsman.job_states s
      JOIN draftsman.job_requests r ON r.number = s.number
     CROSS JOIN LATERAL (VALUES
               ('all', '*', NULL, NULL), ('queue', s.queue, NULL, NULL), ('type', s.type, NULL, NULL),
               ('agent', r.agent, NULL, NULL), ('person', r.invoker_id, NULL, NULL),
               ('repo', lower(concat_ws('/', r.repo_host, r.repo_owner, r.repo_name)),
                lower(concat_ws('/', r.repo_owner, r.repo_name)), lower(r.repo_name)),
               ('concurrency_key', s.concurrency_key, NULL, NULL)) AS v (scope, value, owned, short)
     CROSS JOIN LATERAL (
           SELECT * FROM draftsman.limits l
            WHERE l.scope = v.scope AND l.value IN (v.value, v.owned, v.short, '*')
            ORDER BY l.value = '*', l.value <> v.value, l.value <> v.owned
            LIMIT 1) l
     WHERE s.number = $1 AND v.value <> '' AND num_nonnulls(l.running, l.rate) > 0
$$;

-- Whether a job has a place in each of its buckets.
CREATE FUNCTION draftsman.has_place(s draftsman.job_states) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    s.limits IS NOT NULL AND (s.status IN ('claimed', 'running')
                              OR (s.status IN ('queued', 'resumed') AND s.hold IS NULL));

-- Whether a job begins to wait for a place in a bucket, or moves among those that wait.
CREATE FUNCTION draftsman.begins_to_wait(o draftsman.job_states, n draftsman.job_states)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    n.held_by <> 'pause' AND (coalesce(o.held_by, 'pause') = 'pause'
                              OR (n.priority, n.position) <> (o.priority, o.position));

-- Whether a job was queued without asking for places.
CREATE FUNCTION draftsman.has_arrived(o draftsman.job_states, n draftsman.job_states)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    n.status IN ('queued', 'resumed') AND n.hold IS NULL AND n.limits <> '{}'
    AND (o.status <> n.status OR o.hold >= 'key') AND NOT draftsman.has_place(o);

-- Buckets -----------------------------------------------------------------------------------------

-- The places that a bucket has now.
CREATE FUNCTION draftsman.free_places(b draftsman.limit_buckets) RETURNS int
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
CREATE FUNCTION draftsman.next_start(b draftsman.limit_buckets) RETURNS timestamptz
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

-- The limit of a bucket.
CREATE FUNCTION draftsman.limit_of(bucket text) RETURNS SETOF draftsman.limits
LANGUAGE sql STABLE AS $$
    SELECT l.* FROM draftsman.limits l
     WHERE l.scope = split_part($1, ':', 1) AND l.value IN (substr($1, strpos($1, ':') + 1), '*')
     ORDER BY l.value = '*'
     LIMIT 1
$$;

-- Creates the missing buckets, and locks them all in sorted order, so that two sessions cannot
-- deadlock: a statement locks jobs, then all buckets that it needs, then only jobs that no other
-- session has locked. Adds the postponed changes of their places.
CREATE FUNCTION draftsman.lock_buckets(names text[]) RETURNS void
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
              LEFT JOIN LATERAL draftsman.limit_of(w.name) l ON true
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

-- Places ------------------------------------------------------------------------------------------

-- Gives free places of these buckets, whose rows the caller has locked together with others, to the
-- jobs that wait for them: the first in queue order, at most 1,000. A job has its places when each
-- of its buckets has; else it waits for a full bucket. A job of a paused queue or type waits for the
-- end of the pause, and a job of a type that no worker handles for such a worker, so that it does not
-- keep others from the places.
CREATE FUNCTION draftsman.admit(tried text[], locked draftsman.limit_buckets[]) RETURNS int
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
                    SELECT FROM draftsman.job_pauses p WHERE p.job = job.number) OR EXISTS (
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
CREATE FUNCTION draftsman.count_starts(names text[], counts int[]) RETURNS void
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

-- Counts places that were taken and freed in each bucket, lets arrived jobs wait, and tries to give
-- places of the tried buckets to the jobs that wait for them, in one order of locks.
CREATE FUNCTION draftsman.try_places(
    tried text[], buckets text[] DEFAULT NULL, changes int[] DEFAULT NULL,
    arrived bigint[] DEFAULT NULL
) RETURNS int LANGUAGE plpgsql AS $$
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
        RETURN (SELECT draftsman.admit(array_agg(b.name), array_agg(b)) FROM draftsman.limit_buckets b
                 WHERE b.name = ANY (names));
    END IF;
    UPDATE draftsman.limit_buckets b SET next_at = NULL
     WHERE b.name = ANY (tried) AND b.next_at IS NOT NULL;
    RETURN 0;
END $$;

-- Counts the places that a statement took and freed in each bucket, and gives free places to the jobs
-- that waited and that wait now; arrived jobs ask for places.
CREATE FUNCTION draftsman.change_places(
    buckets text[], changes int[], waited text[], arrived bigint[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
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
