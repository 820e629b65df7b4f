-- Dependencies: jobs that wait until other jobs have ended.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0013_dependencies') AS applied \gset
\if :applied \echo '0013_dependencies is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0013_dependencies');

-- How a parent has to end. Every end that is not `completed` is a failure.
CREATE TYPE draftsman.dependency_condition AS ENUM ('success', 'failure', 'any');

-- A job and a parent that it waits for. Parents are older than their children, so there are no
-- cycles. A job that was spawned by a run is younger than the job that gathers it, except that a retry
-- takes over the completed jobs of the job that it retries: `met` is NULL only while that waits;
-- `spawn_key` is the key under which the run spawned it. Only functions write this table; they check
-- that both jobs exist.
CREATE TABLE draftsman.job_dependencies (
    job        bigint NOT NULL,
    parent     bigint NOT NULL,
    ordinal    int NOT NULL CHECK (ordinal > 0),
    condition  draftsman.dependency_condition NOT NULL,
    met        boolean,
    spawned    boolean NOT NULL DEFAULT false,
    spawn_key  text,
    PRIMARY KEY (job, parent),
    CONSTRAINT job_dependencies_older CHECK (CASE WHEN spawned THEN parent <> job ELSE parent < job END),
    CONSTRAINT job_dependencies_spawned CHECK (spawned = (spawn_key IS NOT NULL))
) WITH (fillfactor = 70);
--   job_dependencies_pkey    the parents of a job
--   job_dependencies_parent  the children of a job
--   job_dependencies_unmet   the parents that a job waits for, and those that ended otherwise
--   job_dependencies_keys    the jobs that a job spawned: one under each key
CREATE INDEX job_dependencies_parent ON draftsman.job_dependencies (parent, job);
CREATE INDEX job_dependencies_unmet ON draftsman.job_dependencies (job, met) WHERE met IS NOT TRUE;
CREATE UNIQUE INDEX job_dependencies_keys ON draftsman.job_dependencies (job, spawn_key)
    WHERE spawned;
CREATE TRIGGER job_dependencies_no_delete BEFORE DELETE ON draftsman.job_dependencies
    FOR EACH ROW EXECUTE FUNCTION draftsman.refuse_change('jobs keep their parents');
CREATE TRIGGER job_dependencies_no_truncate BEFORE TRUNCATE ON draftsman.job_dependencies
    EXECUTE FUNCTION draftsman.refuse_change('jobs keep their parents');

-- New jobs that wait for parents, of sessions other than the owner's, until their transaction ends: without
-- a parent that has not ended, a job would wait for ever.
CREATE TABLE draftsman.unlinked_jobs (
    job  bigint PRIMARY KEY
);
CREATE FUNCTION draftsman.check_linked() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT s.hold FROM draftsman.job_states s WHERE s.number = NEW.job) = 'parents'
       AND NOT EXISTS (SELECT FROM draftsman.job_dependencies d
                        WHERE d.job = NEW.job AND d.met IS NULL) THEN
        PERFORM draftsman.deny_access(format('D-%s waits for no other job', NEW.job));
    END IF;
    DELETE FROM draftsman.unlinked_jobs u WHERE u.job = NEW.job;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER unlinked_jobs_checked AFTER INSERT ON draftsman.unlinked_jobs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION draftsman.check_linked();

-- Whether a parent that ended with this status meets the condition.
CREATE FUNCTION draftsman.is_met(
    condition draftsman.dependency_condition, status draftsman.job_status
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    CASE condition WHEN 'success' THEN status = 'completed'
                   WHEN 'failure' THEN status <> 'completed' ELSE true END;

-- How a job ended, as the reason of jobs that cannot start because of it.
CREATE FUNCTION draftsman.end_text(job bigint, status draftsman.job_status) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    format('D-%s %s', job, CASE status WHEN 'completed' THEN 'completed' WHEN 'failed' THEN 'failed'
        WHEN 'dead_letter' THEN 'is a dead letter' WHEN 'expired' THEN 'expired'
        ELSE 'was canceled' END);

-- The statements below are planned once for a session, maybe while the tables are empty. A lateral
-- subquery with OFFSET 0 is never joined in another way than by an index lookup for each row, and a
-- subquery with LIMIT 1 is never a hashed table.

-- Releases or cancels those of these locked jobs whose parents allow or exclude it. Canceled jobs
-- get a skipped run; those of the locked jobs that can then only be canceled too are canceled by the
-- same statement.
CREATE FUNCTION draftsman.resolve_jobs(locked bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    detail   text := coalesce(current_setting('draftsman.detail', true), '');
    excluded bigint[];
    allowed  bigint[];
    keys     text[];
BEGIN
    SELECT array_agg(l.job) FILTER (WHERE l.excluded),
           array_agg(l.job) FILTER (WHERE l.excluded IS NULL AND l.waits IS NULL)
      INTO excluded, allowed
      FROM (SELECT job,
                   (SELECT true FROM draftsman.job_dependencies d
                     WHERE d.job = w.job AND d.met IS NOT TRUE AND NOT d.met LIMIT 1) AS excluded,
                   (SELECT true FROM draftsman.job_dependencies d
                     WHERE d.job = w.job AND d.met IS NOT TRUE AND d.met IS NULL LIMIT 1) AS waits
              FROM unnest(locked) AS w (job)) l;
    PERFORM set_config('draftsman.detail', '', true);
    IF allowed IS NOT NULL THEN
        WITH released AS (
            UPDATE draftsman.job_states s
               SET hold = CASE WHEN s.concurrency_key IS NOT NULL THEN 'key'
                               WHEN s.limits <> '{}' AND s.status = 'queued' THEN 'limit'
                          END::draftsman.job_hold,
                   held_by = CASE WHEN s.concurrency_key IS NULL AND s.status = 'queued'
                             THEN s.limits[1] END,
                   queued_at = CASE WHEN s.status = 'queued' THEN draftsman.now()
                               ELSE s.queued_at END,
                   updated_at = draftsman.now()
             WHERE s.number = ANY (allowed) AND s.hold = 'parents'
            RETURNING s.queue, s.concurrency_key, s.status
        ), woken AS (
            UPDATE draftsman.job_states s
               SET status = 'resumed', queued_at = draftsman.now(), updated_at = draftsman.now(),
                   version = s.version + 1
             WHERE s.number = ANY (allowed) AND s.hold IS NULL AND s.status = 'scheduled'
               AND s.run_count > 0
            RETURNING s.queue
        ), notified AS (
            SELECT pg_notify('draftsman_jobs', q.queue)::text
              FROM (SELECT DISTINCT queue FROM released
                     WHERE status = 'queued' AND concurrency_key IS NULL
                     UNION SELECT queue FROM woken) q
        )
        SELECT array_agg(r.concurrency_key) FILTER (WHERE r.concurrency_key IS NOT NULL)
          INTO keys
          FROM (SELECT concurrency_key FROM released
                 UNION ALL SELECT NULL FROM notified) r;
    END IF;
    IF excluded IS NOT NULL THEN
        WITH RECURSIVE doomed (job) AS (
            SELECT unnest(excluded)
             UNION
            SELECT d.job
              FROM doomed x
             CROSS JOIN LATERAL (
                   SELECT job, condition, met FROM draftsman.job_dependencies
                    WHERE parent = x.job OFFSET 0) d
             WHERE d.met IS NULL AND d.condition = 'success' AND d.job = ANY (locked)
        )
        SELECT array_agg(job) INTO excluded FROM doomed;
        UPDATE draftsman.job_dependencies d SET met = false
         WHERE d.parent = ANY (excluded) AND d.met IS NULL AND d.condition = 'success'
           AND d.job = ANY (excluded);
        WITH canceled AS (
            UPDATE draftsman.job_states s
               SET status = 'canceled', hold = NULL, run_count = 1, version = s.version + 1,
                   finished_at = draftsman.now(), updated_at = draftsman.now(),
                   cancel_requested_at = draftsman.now(), cancel_requested_by = 'system',
                   cancel_reason = (
                       SELECT draftsman.end_text(d.parent, p.status)
                         FROM draftsman.job_dependencies d
                        CROSS JOIN LATERAL (
                              SELECT status FROM draftsman.job_states
                               WHERE number = d.parent LIMIT 1) p
                        WHERE d.job = s.number AND d.met IS NOT TRUE AND NOT d.met
                        ORDER BY d.parent LIMIT 1)
             WHERE s.number = ANY (excluded) AND s.hold = 'parents'
            RETURNING s.number
        )
        SELECT array_agg(number) INTO excluded FROM canceled;
        INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token, status, finished_at)
        SELECT n, 1, '00000000-0000-0000-0000-000000000000',
               nextval('draftsman.lease_tokens'), 'skipped', draftsman.now()
          FROM unnest(excluded) AS c (n);
    END IF;
    PERFORM set_config('draftsman.detail', detail, true);
    IF keys IS NOT NULL THEN
        PERFORM draftsman.assign_keys(keys);
    END IF;
END $$;

-- Resolves the children of jobs that have ended in this transaction. More than 1,000 jobs are left to
-- the leader, which resolves them in batches, so that no end takes longer than a statement may.
--
-- Two parents of a job that end at once must not both see the other as unfinished: each locks the
-- job, and only then reads in another statement whether parents are left. All locks are taken in
-- the order of the numbers, also those of jobs that will be canceled with their parents, so that
-- two ends cannot deadlock.
CREATE FUNCTION draftsman.resolve_children(ended bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    most   CONSTANT int := 1000;
    found  bigint[];
    locked bigint[];
BEGIN
    found := ARRAY(
        WITH RECURSIVE affected (job, is_doomed) AS (
            SELECT d.job, NOT draftsman.is_met(d.condition, p.status)
              FROM unnest(ended) AS e (number)
             CROSS JOIN LATERAL (
                   SELECT status FROM draftsman.job_states WHERE number = e.number LIMIT 1) p
             CROSS JOIN LATERAL (
                   SELECT job, condition, met FROM draftsman.job_dependencies
                    WHERE parent = e.number OFFSET 0) d
             WHERE d.met IS NULL
             UNION
            SELECT d.job, d.condition = 'success'
              FROM affected a
             CROSS JOIN LATERAL (
                   SELECT job, condition, met FROM draftsman.job_dependencies
                    WHERE parent = a.job OFFSET 0) d
             WHERE a.is_doomed AND d.met IS NULL
        )
        SELECT job FROM affected LIMIT most + 1);
    IF cardinality(found) > most THEN
        INSERT INTO draftsman.postponed_work (ended) SELECT unnest(ended);
    ELSE
        locked := ARRAY(
            SELECT s.number
              FROM draftsman.job_states s
             WHERE s.number = ANY (found) AND (s.hold = 'parents' OR s.status = 'scheduled')
             ORDER BY s.number
               FOR NO KEY UPDATE OF s);
        UPDATE draftsman.job_dependencies d
           SET met = draftsman.is_met(d.condition, (
                   SELECT s.status FROM draftsman.job_states s WHERE s.number = d.parent))
         WHERE d.parent = ANY (ended) AND d.met IS NULL;
        IF locked <> '{}' THEN
            PERFORM draftsman.resolve_jobs(locked);
        END IF;
    END IF;
    PERFORM draftsman.stop_groups(ended);
END $$;

-- Resolves the next 1,000 children of a job that ended in an earlier transaction, and stops its
-- group. Children that another transaction has locked are left. The work that is left is postponed
-- again.
CREATE FUNCTION draftsman.resolve_more_children(ended bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    locked bigint[];
BEGIN
    IF (SELECT s.finished_at FROM draftsman.job_states s WHERE s.number = $1) IS NULL THEN
        RETURN;
    END IF;
    locked := ARRAY(
        SELECT s.number
          FROM draftsman.job_dependencies d
          JOIN draftsman.job_states s ON s.number = d.job
         WHERE d.parent = $1 AND d.met IS NULL
         ORDER BY s.number
         LIMIT 1000
           FOR NO KEY UPDATE OF s SKIP LOCKED);
    UPDATE draftsman.job_dependencies d
       SET met = draftsman.is_met(d.condition, (
               SELECT s.status FROM draftsman.job_states s WHERE s.number = d.parent))
     WHERE d.parent = $1 AND d.job = ANY (locked) AND d.met IS NULL;
    IF locked <> '{}' THEN
        PERFORM draftsman.resolve_jobs(ARRAY(
            SELECT s.number FROM draftsman.job_states s
             WHERE s.number = ANY (locked) AND (s.hold = 'parents' OR s.status = 'scheduled')));
    END IF;
    IF (SELECT d.job FROM draftsman.job_dependencies d
         WHERE d.parent = $1 AND d.met IS NULL LIMIT 1) IS NOT NULL THEN
        INSERT INTO draftsman.postponed_work (ended, due_at)
        VALUES ($1, draftsman.now() + CASE WHEN locked = '{}' THEN interval '1 s' ELSE '0' END);
    END IF;
    PERFORM draftsman.stop_groups(ARRAY[$1]);
END $$;

-- Lets new jobs wait for their parents; returns those that no parent allows to start. The parents
-- are locked: each ends before this transaction, and is then counted here, or it ends later and
-- sees its child. A claim and the end of the holder of a concurrency key leave locked jobs out: they
-- are repeated for the parents that wait.
CREATE FUNCTION draftsman.link_jobs(
    jobs bigint[], parents bigint[], conditions draftsman.dependency_condition[]
) RETURNS SETOF bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    new_jobs  bigint[] := ARRAY(SELECT DISTINCT n FROM unnest(jobs) n ORDER BY n);
    elsewhere bigint[] := ARRAY(SELECT unnest(parents) EXCEPT SELECT unnest(jobs) ORDER BY 1);
    waiting   record;
    wrong     bigint;
BEGIN
    IF draftsman.session_kind() <> 'owner' THEN
        PERFORM draftsman.require_control(n, draftsman.session_actor(), 'operator')
           FROM unnest(new_jobs) n;
    END IF;
    SELECT n INTO wrong
      FROM unnest(new_jobs) n
     WHERE (SELECT s.number FROM draftsman.job_states s
             WHERE s.number = n AND s.hold = 'parents' AND s.version = 1) IS NULL
        OR (SELECT d.job FROM draftsman.job_dependencies d WHERE d.job = n LIMIT 1) IS NOT NULL
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'D-% is not a new job that waits for parents', wrong USING ERRCODE = 'DM001';
    END IF;
    SELECT array_agg(DISTINCT l.queue) FILTER (WHERE l.status IN ('queued', 'resumed')
                                                 AND l.hold IS NULL) AS queues,
           array_agg(l.concurrency_key) FILTER (WHERE l.hold = 'key') AS keys
      INTO waiting  -- no condition outside of the subquery: it would be part of the locking query
      FROM (SELECT s.queue, s.status, s.hold, s.concurrency_key
              FROM draftsman.job_states s
             WHERE s.number = ANY (elsewhere) AND s.finished_at IS NULL
             ORDER BY s.number
               FOR NO KEY UPDATE) l;
    SELECT n INTO wrong
      FROM unnest(elsewhere) n
     WHERE (SELECT s.number FROM draftsman.job_states s WHERE s.number = n) IS NULL
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is no job D-% to wait for', wrong USING ERRCODE = 'DM001';
    END IF;
    INSERT INTO draftsman.job_dependencies (job, parent, ordinal, condition, met)
    SELECT w.job, w.parent, row_number() OVER (PARTITION BY w.job ORDER BY w.place), w.condition,
           CASE WHEN p.finished_at IS NOT NULL THEN draftsman.is_met(w.condition, p.status) END
      FROM unnest(jobs, parents, conditions) WITH ORDINALITY AS w (job, parent, condition, place)
     CROSS JOIN LATERAL (
           SELECT status, finished_at FROM draftsman.job_states WHERE number = w.parent LIMIT 1) p;
    UPDATE draftsman.job_states s SET has_children = true
     WHERE s.number = ANY (parents) AND s.finished_at IS NULL AND NOT s.has_children;
    PERFORM draftsman.resolve_jobs(new_jobs);
    PERFORM pg_notify('draftsman_jobs', q) FROM unnest(waiting.queues) AS q;
    IF waiting.keys IS NOT NULL THEN
        PERFORM draftsman.assign_keys(waiting.keys);
    END IF;
    RETURN QUERY
    SELECT s.number FROM draftsman.job_states s
     WHERE s.number = ANY (new_jobs) AND s.status = 'canceled';
END $$;

-- The jobs that wait for this job or that it spawned, directly or not, and the job itself.
CREATE FUNCTION draftsman.descendants(job bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
    WITH RECURSIVE tree (number) AS (
        SELECT $1
         UNION
        SELECT d.job
          FROM tree t
         CROSS JOIN LATERAL (
               SELECT job FROM draftsman.job_dependencies
                WHERE parent = t.number AND NOT spawned
                UNION ALL
               SELECT parent FROM draftsman.job_dependencies
                WHERE job = t.number AND spawned OFFSET 0) d
    )
    SELECT number FROM tree
$$;

-- Jobs that a person has canceled with a tree or a group of more than 1,000 jobs, and that the leader
-- cancels in batches.
CREATE TABLE draftsman.pending_cancels (
    job     bigint PRIMARY KEY,
    actor   text NOT NULL CHECK (actor <> ''),
    reason  text,
    due_at  timestamptz NOT NULL DEFAULT draftsman.now()
);
CREATE INDEX pending_cancels_due ON draftsman.pending_cancels (due_at);

-- Cancels these locked jobs; running jobs are requested to stop. Of more than 1,000, the next in the
-- order of the claim are canceled now, and the others in batches by the leader.
CREATE FUNCTION draftsman.cancel_jobs(jobs bigint[], by text, reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    most CONSTANT int := 1000;
BEGIN
    IF cardinality(jobs) > most THEN
        jobs := ARRAY(
            SELECT s.number FROM draftsman.job_states s
             WHERE s.number = ANY (jobs)
             ORDER BY s.hold IS NOT NULL, s.status NOT IN ('queued', 'resumed'), s.priority DESC,
                      s.position, s.number);
        INSERT INTO draftsman.pending_cancels (job, actor, reason)
        SELECT n, $2, $3 FROM unnest(jobs[most + 1:]) n ORDER BY n
            ON CONFLICT DO NOTHING;
        jobs := jobs[:most];
    END IF;
    PERFORM draftsman.cancel_batch(jobs, $2, $3, $2);
END $$;

-- Cancels these locked jobs. Those that wait for parents are first, so that the person and not the
-- end of a parent cancels them.
CREATE FUNCTION draftsman.cancel_batch(jobs bigint[], by text, reason text, actor text)
RETURNS void LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    state record;
BEGIN
    PERFORM set_config('draftsman.actor', $4, true), set_config('draftsman.detail', '', true);
    UPDATE draftsman.job_states s
       SET status = 'canceled', hold = NULL, version = s.version + 1,
           finished_at = draftsman.now(), updated_at = draftsman.now(),
           cancel_requested_at = draftsman.now(), cancel_requested_by = $2, cancel_reason = $3
     WHERE s.number = ANY (jobs) AND s.hold = 'parents';
    FOR state IN
        SELECT s.number, s.status FROM draftsman.job_states s
         WHERE s.number = ANY (jobs) AND s.finished_at IS NULL
         ORDER BY s.number
    LOOP
        IF state.status = 'running' THEN
            PERFORM draftsman.record_cancel_request(state.number, $2, $3,
                jsonb_strip_nulls(jsonb_build_object('reason', $3)), $4);
        ELSE
            PERFORM draftsman.end_canceled_job(state.number, $2, $3);
        END IF;
    END LOOP;
END $$;

-- Cancels the next jobs of larger trees and groups, at most so many; returns their number. Jobs that
-- another transaction has locked are left for a second. `these` may be NULL.
CREATE FUNCTION draftsman.do_pending_cancels(most int, these bigint[], without bigint[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    due    bigint[] := ARRAY(
        SELECT p.job FROM draftsman.pending_cancels p
         WHERE p.due_at <= draftsman.now()
           AND ($2 IS NULL OR p.job = ANY ($2)) AND p.job <> ALL ($3)
         ORDER BY p.due_at, p.job
         LIMIT most
           FOR UPDATE SKIP LOCKED);
    locked bigint[] := ARRAY(
        SELECT s.number FROM draftsman.job_states s
         WHERE s.number = ANY (due)
         ORDER BY s.number
           FOR NO KEY UPDATE SKIP LOCKED);
    person record;
BEGIN
    FOR person IN
        SELECT p.actor, p.reason, array_agg(p.job) AS jobs FROM draftsman.pending_cancels p
         WHERE p.job = ANY (locked)
         GROUP BY p.actor, p.reason
    LOOP
        PERFORM draftsman.cancel_batch(person.jobs, person.actor, person.reason, 'system');
    END LOOP;
    DELETE FROM draftsman.pending_cancels p WHERE p.job = ANY (locked);
    UPDATE draftsman.pending_cancels p SET due_at = draftsman.now() + interval '1 s'
     WHERE p.job = ANY (due);
    RETURN cardinality(due);
END $$;

-- Cancels a job and all in its tree; running jobs are requested to stop.
-- Returns each unfinished job, and whether its worker or the leader ends it later. Jobs that were submitted
-- meanwhile are locked in another round; with all locked, no further job can be added.
CREATE FUNCTION draftsman.cancel_tree(job bigint, by text, reason text)
RETURNS TABLE (number bigint, requested boolean) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    tree   bigint[] := '{}';
    locked bigint[];
BEGIN
    LOOP
        locked := tree;
        tree := ARRAY(SELECT n FROM draftsman.descendants($1) n ORDER BY n);
        EXIT WHEN tree = locked;
        PERFORM FROM draftsman.job_states s
          WHERE s.number = ANY (tree) AND s.finished_at IS NULL
          ORDER BY s.number
            FOR NO KEY UPDATE;
    END LOOP;
    tree := ARRAY(SELECT s.number FROM draftsman.job_states s
                   WHERE s.number = ANY (tree) AND s.finished_at IS NULL ORDER BY s.number);
    IF draftsman.session_kind() <> 'owner' THEN
        PERFORM draftsman.require_control(n, $2, 'operator') FROM unnest(tree) n;
    END IF;
    PERFORM draftsman.cancel_jobs(tree, $2, $3);
    RETURN QUERY
    SELECT s.number, s.finished_at IS NULL FROM draftsman.job_states s
     WHERE s.number = ANY (tree) ORDER BY s.number;
END $$;
