-- Jobs that wait for others, groups of jobs, and jobs that a run spawns and gathers.

INSERT INTO draftsman.schema_functions (name) VALUES ('workflows')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Dependencies ------------------------------------------------------------------------------------

-- The statements below are planned once for a session, maybe while the tables are empty. A lateral
-- subquery with OFFSET 0 is never joined in another way than by an index lookup for each row, and a
-- subquery with LIMIT 1 is never a hashed table.

-- Lets new jobs wait for their parents; returns those that no parent allows to start. The parents
-- are locked: each ends before this transaction, and is then counted here, or it ends later and
-- sees its child. A claim and the end of the holder of a concurrency key leave locked jobs out:
-- they are repeated for the parents that wait.
CREATE OR REPLACE FUNCTION draftsman.link_jobs(
    jobs bigint[], parents bigint[], conditions draftsman.dependency_condition[]
) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
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
        PERFORM draftsman.refuse('DM001', 'workflows.not_new', jsonb_build_object('job', wrong));
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
        PERFORM draftsman.refuse('DM001', 'workflows.no_parent', jsonb_build_object('job', wrong));
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

CREATE OR REPLACE FUNCTION draftsman.check_linked() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT s.hold FROM draftsman.job_states s WHERE s.number = NEW.job) = 'parents'
       AND NOT EXISTS (SELECT FROM draftsman.job_dependencies d
                        WHERE d.job = NEW.job AND d.met IS NULL) THEN
        PERFORM draftsman.deny_access('workflows.waits_for_none', jsonb_build_object(
                    'job', NEW.job));
    END IF;
    DELETE FROM draftsman.unlinked_jobs u WHERE u.job = NEW.job;
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS unlinked_jobs_checked ON draftsman.unlinked_jobs;
CREATE CONSTRAINT TRIGGER unlinked_jobs_checked AFTER INSERT ON draftsman.unlinked_jobs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION draftsman.check_linked();

-- Resolves the children of jobs that have ended in this transaction. More than 1,000 jobs are left
-- to the leader, which resolves them in batches, so that no end takes longer than a statement may.
--
-- Two parents of a job that end at once must not both see the other as unfinished: each locks the
-- job, and only then reads in another statement whether parents are left. All locks are taken in
-- the order of the numbers, also those of jobs that will be canceled with their parents, so that
-- two ends cannot deadlock.
CREATE OR REPLACE FUNCTION draftsman.resolve_children(ended bigint[]) RETURNS void
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
CREATE OR REPLACE FUNCTION draftsman.resolve_more_children(ended bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    locked bigint[];
BEGIN
    IF (SELECT s.finished_at FROM draftsman.job_states s WHERE s.number = ended) IS NULL THEN
        RETURN;
    END IF;
    locked := ARRAY(
        SELECT s.number
          FROM draftsman.job_dependencies d
          JOIN draftsman.job_states s ON s.number = d.job
         WHERE d.parent = ended AND d.met IS NULL
         ORDER BY s.number
         LIMIT 1000
           FOR NO KEY UPDATE OF s SKIP LOCKED);
    UPDATE draftsman.job_dependencies d
       SET met = draftsman.is_met(d.condition, (
               SELECT s.status FROM draftsman.job_states s WHERE s.number = d.parent))
     WHERE d.parent = ended AND d.job = ANY (locked) AND d.met IS NULL;
    IF locked <> '{}' THEN
        PERFORM draftsman.resolve_jobs(ARRAY(
            SELECT s.number FROM draftsman.job_states s
             WHERE s.number = ANY (locked) AND (s.hold = 'parents' OR s.status = 'scheduled')));
    END IF;
    IF (SELECT d.job FROM draftsman.job_dependencies d
         WHERE d.parent = ended AND d.met IS NULL LIMIT 1) IS NOT NULL THEN
        INSERT INTO draftsman.postponed_work (ended, due_at)
        VALUES (ended, draftsman.now() + CASE WHEN locked = '{}' THEN interval '1 s' ELSE '0' END);
    END IF;
    PERFORM draftsman.stop_groups(ARRAY[ended]);
END $$;

-- Releases or cancels those of these locked jobs whose parents allow or exclude it. Canceled jobs
-- get a skipped run; those of the locked jobs that can then only be canceled too are canceled by
-- the same statement.
CREATE OR REPLACE FUNCTION draftsman.resolve_jobs(locked bigint[]) RETURNS void
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
        PERFORM draftsman.skip_jobs(array_agg(s.number), array_agg((
                    SELECT draftsman.end_reason(d.parent, p.status)
                      FROM draftsman.job_dependencies d
                     CROSS JOIN LATERAL (
                           SELECT status FROM draftsman.job_states
                            WHERE number = d.parent LIMIT 1) p
                     WHERE d.job = s.number AND d.met IS NOT TRUE AND NOT d.met
                     ORDER BY d.parent LIMIT 1)))
           FROM draftsman.job_states s
          WHERE s.number = ANY (excluded) AND s.hold = 'parents';
    END IF;
    PERFORM set_config('draftsman.detail', detail, true);
    IF keys IS NOT NULL THEN
        PERFORM draftsman.assign_keys(keys);
    END IF;
END $$;

-- Whether a parent that ended with this status meets the condition.
CREATE OR REPLACE FUNCTION draftsman.is_met(
    condition draftsman.dependency_condition, status draftsman.job_status
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    CASE condition WHEN 'success' THEN status = 'completed'
                   WHEN 'failure' THEN status <> 'completed' ELSE true END;

-- How a job ended, as the reason of jobs that cannot start because of it. Without an end yet, the
-- statement that asks cancels it.
CREATE OR REPLACE FUNCTION draftsman.end_reason(
    job bigint, status draftsman.job_status
) RETURNS text
LANGUAGE sql STABLE RETURN draftsman.sentence(CASE status
    WHEN 'completed' THEN 'workflows.completed' WHEN 'failed' THEN 'workflows.failed'
    WHEN 'dead_letter' THEN 'workflows.dead_letter' WHEN 'expired' THEN 'workflows.expired'
    ELSE 'workflows.canceled' END, jsonb_build_object('job', job))::text;

-- Cancels a job and all in its tree; running jobs are requested to stop. Returns each unfinished
-- job, and whether its worker or the leader ends it later. Jobs that were submitted meanwhile are
-- locked in another round; with all locked, no further job can be added.
CREATE OR REPLACE FUNCTION draftsman.cancel_tree(job bigint, by text, reason text)
RETURNS TABLE (number bigint, requested boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    tree   bigint[] := '{}';
    locked bigint[];
BEGIN
    LOOP
        locked := tree;
        tree := ARRAY(SELECT n FROM draftsman.descendants(job) n ORDER BY n);
        EXIT WHEN tree = locked;
        PERFORM FROM draftsman.job_states s
          WHERE s.number = ANY (tree) AND s.finished_at IS NULL
          ORDER BY s.number
            FOR NO KEY UPDATE;
    END LOOP;
    tree := ARRAY(SELECT s.number FROM draftsman.job_states s
                   WHERE s.number = ANY (tree) AND s.finished_at IS NULL ORDER BY s.number);
    IF draftsman.session_kind() <> 'owner' THEN
        PERFORM draftsman.require_control(n, by, 'operator') FROM unnest(tree) n;
    END IF;
    PERFORM draftsman.cancel_jobs(tree, by, reason);
    RETURN QUERY
    SELECT s.number, s.finished_at IS NULL FROM draftsman.job_states s
     WHERE s.number = ANY (tree) ORDER BY s.number;
END $$;

-- The jobs that wait for this job or that it spawned, directly or not, and the job itself.
CREATE OR REPLACE FUNCTION draftsman.descendants(job bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
    WITH RECURSIVE tree (number) AS (
        SELECT descendants.job
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

-- Cancels these locked jobs; running jobs are requested to stop. Of more than 1,000, the next in
-- the order of the claim are canceled now, and the others in batches by the leader.
CREATE OR REPLACE FUNCTION draftsman.cancel_jobs(jobs bigint[], by text, reason text) RETURNS void
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
        SELECT n, by, reason FROM unnest(jobs[most + 1:]) n ORDER BY n
            ON CONFLICT DO NOTHING;
        jobs := jobs[:most];
    END IF;
    PERFORM draftsman.cancel_batch(jobs, by, reason, by);
END $$;

-- Cancels these locked jobs. Those that wait for parents are first, so that the person and not the
-- end of a parent cancels them.
CREATE OR REPLACE FUNCTION draftsman.cancel_batch(
    jobs bigint[], by text, reason text, actor text
) RETURNS void
LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    state record;
BEGIN
    PERFORM set_config('draftsman.actor', actor, true), set_config('draftsman.detail', '', true);
    UPDATE draftsman.job_states s
       SET status = 'canceled', hold = NULL, version = s.version + 1,
           finished_at = draftsman.now(), updated_at = draftsman.now(),
           cancel_requested_at = draftsman.now(), cancel_requested_by = by, cancel_reason = reason
     WHERE s.number = ANY (jobs) AND s.hold = 'parents';
    FOR state IN
        SELECT s.number, s.status FROM draftsman.job_states s
         WHERE s.number = ANY (jobs) AND s.finished_at IS NULL
         ORDER BY s.number
    LOOP
        IF state.status = 'running' THEN
            PERFORM draftsman.record_cancel_request(state.number, by, reason,
                jsonb_strip_nulls(jsonb_build_object('reason', reason)), actor);
        ELSE
            PERFORM draftsman.end_canceled_job(state.number, by, reason);
        END IF;
    END LOOP;
END $$;

-- Cancels the next jobs of larger trees and groups, at most so many; returns their number. Jobs
-- that another transaction has locked are left for a second. `these` may be NULL.
CREATE OR REPLACE FUNCTION draftsman.do_pending_cancels(
    most int, these bigint[], without bigint[]
) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    due    bigint[] := ARRAY(
        SELECT p.job FROM draftsman.pending_cancels p
         WHERE p.due_at <= draftsman.now()
           AND (these IS NULL OR p.job = ANY (these)) AND p.job <> ALL (without)
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

-- Groups ------------------------------------------------------------------------------------------

-- Locks a group, creating it with a kind; returns nothing for an unknown name without a kind.
CREATE OR REPLACE FUNCTION draftsman.open_group(
    name text, kind text, on_failure text, by text
) RETURNS SETOF draftsman.job_groups
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF draftsman.may_act_as(by) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('workflows.create_group', jsonb_build_object('actor', by));
    END IF;
    IF kind IS NOT NULL THEN
        INSERT INTO draftsman.job_groups (name, kind, on_failure, created_by)
        VALUES (name, kind, coalesce(on_failure, 'stop'), by) ON CONFLICT (name) DO NOTHING;
    END IF;
    RETURN QUERY
    SELECT * FROM draftsman.job_groups g WHERE g.name = open_group.name FOR NO KEY UPDATE;
END $$;

-- Adds new jobs, which wait for parents, to a group that this transaction has locked.
--
-- A group with jobs of others takes jobs of its creator and of operators only. That the actor is an
-- operator counts as said for the owner of the schema, whose programs know the actor; for others it
-- is looked up.
--
-- Returns each job, with the job that it waits for in a sequential group. `skipped` jobs were
-- canceled: a job has failed in a parallel group that stops, or the group was canceled. Jobs that
-- wait for nothing are released; `linked` jobs also wait for parents of their request. A failing
-- member and an addition both lock the group: the later of them sees the other.
CREATE OR REPLACE FUNCTION draftsman.add_to_group(
    group_id bigint, jobs bigint[], linked bigint[], is_operator boolean
) RETURNS TABLE (job bigint, parent bigint, skipped boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
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
        PERFORM draftsman.refuse('DM001', 'workflows.only_new', '{}');
    END IF;
    SELECT * INTO STRICT target FROM draftsman.job_groups g WHERE g.id = group_id FOR NO KEY UPDATE;
    IF is_operator IS NOT TRUE THEN
        SELECT r.invoker_id INTO invoker FROM draftsman.job_requests r
         WHERE r.number = ANY (jobs) AND NOT draftsman.has_role(r.invoker_id, 'operator')
           AND NOT draftsman.may_extend(target, r.invoker_id)
         LIMIT 1;
        IF FOUND THEN
            PERFORM draftsman.refuse('DM004', 'workflows.group_of_others', jsonb_build_object(
                        'person', invoker, 'group', target.name));
        END IF;
    END IF;
    SELECT m.job, m.ordinal INTO last_job, place
      FROM draftsman.job_group_members m
     WHERE m.group_id = add_to_group.group_id
     ORDER BY m.ordinal DESC, m.job DESC
     LIMIT 1;
    IF target.canceled_at IS NOT NULL THEN
        reason := draftsman.sentence('workflows.group_canceled', jsonb_build_object(
                      'group', target.name))::text;
    ELSIF target.kind = 'parallel' AND target.on_failure = 'stop' THEN
        SELECT m.job, draftsman.end_reason(m.job, s.status) INTO failed, reason
          FROM draftsman.current_members(group_id) m
         CROSS JOIN LATERAL (
               SELECT status, finished_at FROM draftsman.job_states
                WHERE number = m.job LIMIT 1) s
         WHERE s.finished_at IS NOT NULL AND s.status <> 'completed'
         ORDER BY m.job
         LIMIT 1;
    END IF;
    INSERT INTO draftsman.job_group_members (job, group_id, ordinal)
    SELECT n, group_id, coalesce(place, 0) + i FROM unnest(jobs) WITH ORDINALITY AS j (n, i);
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

-- The jobs of a group that count: of each ordinal the newest.
CREATE OR REPLACE FUNCTION draftsman.current_members(group_id bigint)
RETURNS TABLE (job bigint, ordinal int)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
    SELECT DISTINCT ON (m.ordinal) m.job, m.ordinal
      FROM draftsman.job_group_members m WHERE m.group_id = current_members.group_id
     ORDER BY m.ordinal, m.job DESC
$$;

-- Puts a new retry in the group and at the ordinal of its job; returns whether that has a group.
CREATE OR REPLACE FUNCTION draftsman.inherit_group(old bigint, new bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    member draftsman.job_group_members;
    target draftsman.job_groups;
BEGIN
    SELECT * INTO member FROM draftsman.job_group_members m WHERE m.job = old;
    IF NOT FOUND OR (SELECT r.number FROM draftsman.job_requests r
                      WHERE r.number = new AND r.retry_of = old) IS NULL THEN
        RETURN false;
    END IF;
    SELECT * INTO target FROM draftsman.job_groups g WHERE g.id = member.group_id FOR NO KEY UPDATE;
    INSERT INTO draftsman.job_group_members (job, group_id, ordinal)
    VALUES (new, member.group_id, member.ordinal) ON CONFLICT DO NOTHING;
    IF target.kind = 'parallel' AND target.on_failure = 'stop' THEN
        UPDATE draftsman.job_states s SET has_children = true
         WHERE s.number = new AND s.finished_at IS NULL AND NOT s.has_children;
    END IF;
    RETURN true;
END $$;

-- Cancels the unfinished jobs of a group; running jobs are requested to stop. Jobs that are added
-- later are canceled at once. Members are locked before their group, as their ends lock them.
-- Returns each unfinished job, and whether its worker or the leader ends it later.
CREATE OR REPLACE FUNCTION draftsman.cancel_group(group_id bigint, by text, reason text)
RETURNS TABLE (number bigint, requested boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    members bigint[];
    locked  bigint[];
BEGIN
    LOOP
        locked := members;
        members := ARRAY(SELECT m.job FROM draftsman.job_group_members m
                          WHERE m.group_id = cancel_group.group_id ORDER BY m.job);
        EXIT WHEN members = locked;
        PERFORM FROM draftsman.job_states s
          WHERE s.number = ANY (members) AND s.finished_at IS NULL
          ORDER BY s.number
            FOR NO KEY UPDATE;
        PERFORM FROM draftsman.job_groups g WHERE g.id = group_id FOR NO KEY UPDATE;
    END LOOP;
    members := ARRAY(SELECT s.number FROM draftsman.job_states s
                      WHERE s.number = ANY (members) AND s.finished_at IS NULL ORDER BY s.number);
    IF draftsman.session_kind() <> 'owner' THEN
        PERFORM draftsman.require_control(n, by, 'operator') FROM unnest(members) n;
    END IF;
    IF members <> '{}' THEN
        UPDATE draftsman.job_groups g
           SET canceled_at = draftsman.now(), canceled_by = by, cancel_reason = reason
         WHERE g.id = group_id AND g.canceled_at IS NULL;
        PERFORM draftsman.cancel_jobs(members, by, reason);
    END IF;
    RETURN QUERY
    SELECT s.number, s.finished_at IS NULL FROM draftsman.job_states s
     WHERE s.number = ANY (members) ORDER BY s.number;
END $$;

-- Cancels the members that have not started when one of them ends otherwise than completed, in
-- parallel groups that stop. A worker that has claimed some of them cannot start them then. A
-- canceled group cancels its own jobs. Of more than 1,000, the next in the order of the claim are
-- canceled now, and the others in batches by the leader.
CREATE OR REPLACE FUNCTION draftsman.stop_groups(ended bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
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
               SELECT group_id FROM draftsman.job_group_members
                WHERE job = e.number AND skipped_by IS NULL LIMIT 1) m
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
                SELECT draftsman.end_reason(s.number, s.status) FROM draftsman.job_states s
                 WHERE s.number = stopped.job), stopped.job);
        END IF;
    END LOOP;
END $$;

-- Skips locked members that have not started, because of a job of their group.
CREATE OR REPLACE FUNCTION draftsman.skip_members(
    jobs bigint[], reason text, because bigint
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    UPDATE draftsman.job_group_members m SET skipped_by = because WHERE m.job = ANY (jobs);
    PERFORM draftsman.skip_jobs(jobs, array_fill(reason, ARRAY[cardinality(jobs)]));
END $$;

-- Cancels locked jobs that have not started, each with its reason, in the name of the system and
-- with a skipped run.
CREATE OR REPLACE FUNCTION draftsman.skip_jobs(jobs bigint[], reasons text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    detail  text := coalesce(current_setting('draftsman.detail', true), '');
    skipped bigint[];
BEGIN
    PERFORM set_config('draftsman.detail', '', true);
    WITH canceled AS (
        UPDATE draftsman.job_states s
           SET status = 'canceled', hold = NULL, held_by = NULL, claimed_from = NULL,
               worker_id = NULL, lease_token = NULL, run_count = 1, version = s.version + 1,
               finished_at = draftsman.now(), updated_at = draftsman.now(),
               cancel_requested_at = draftsman.now(), cancel_requested_by = 'system',
               cancel_reason = c.reason
          FROM unnest(jobs, reasons) AS c (number, reason)
         WHERE s.number = c.number AND s.finished_at IS NULL
        RETURNING s.number
    )
    SELECT array_agg(number) INTO skipped FROM canceled;
    INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token, status, finished_at)
    SELECT n, 1, '00000000-0000-0000-0000-000000000000',
           nextval('draftsman.lease_tokens'), 'skipped', draftsman.now()
      FROM unnest(skipped) AS c (n);
    PERFORM set_config('draftsman.detail', detail, true);
END $$;

-- Whether a person may add a job to a group: its creator, or if all of its jobs are the person's
-- own. The end of a job stops its group, and a job in it can be canceled by its requester.
CREATE OR REPLACE FUNCTION draftsman.may_extend(
    target draftsman.job_groups, person text
) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT person IN (c.actor, coalesce(draftsman.person_of(c.channel, c.id), CASE
                  WHEN c.channel IN ('cli', 'tui', 'api') THEN c.id END))
        OR NOT EXISTS (SELECT FROM draftsman.job_group_members m
                         JOIN draftsman.job_requests r ON r.number = m.job
                        WHERE m.group_id = target.id AND r.invoker_id <> person)
      FROM (SELECT target.created_by AS actor, split_part(target.created_by, ':', 1) AS channel,
                   substr(target.created_by, strpos(target.created_by, ':') + 1) AS id) c
$$;

-- Spawned jobs ------------------------------------------------------------------------------------

-- Records a job that a run spawned, in the transaction of its submission, or a completed job that
-- it takes over. Another job under the same key is refused by job_dependencies_keys. Under keys of
-- its MCP server, which serves agents, a job has at most 20: the lock of the job lets runs and
-- sessions count one after another.
CREATE OR REPLACE FUNCTION draftsman.record_spawn(
    job bigint, token bigint, spawned bigint
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    request_key text := (SELECT r.idempotency_key FROM draftsman.job_requests r
                          WHERE r.number = spawned AND r.idempotency_key ~ '^spawn:[0-9]+:.');
    given_key   text := substr(request_key, 7 + strpos(substr(request_key, 7), ':'));
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') OR NOT EXISTS (
       SELECT FROM draftsman.job_states s
        WHERE s.number = job AND s.lease_token = token AND s.status = 'running')
       OR (starts_with(request_key, 'spawn:' || job || ':')
           OR spawned = draftsman.completed_spawn(job, given_key)) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('workflows.not_spawned', jsonb_build_object(
                    'job', job, 'spawned', spawned));
    END IF;
    IF given_key LIKE 'mcp:%' THEN
        PERFORM FROM draftsman.job_states s WHERE s.number = record_spawn.job FOR NO KEY UPDATE;
        IF (SELECT count(*) FROM draftsman.job_dependencies d
             WHERE d.job = record_spawn.job AND d.spawned AND d.spawn_key LIKE 'mcp:%'
               AND d.parent <> record_spawn.spawned) >= 20 THEN
            PERFORM draftsman.refuse('DM004', 'workflows.most_spawned', jsonb_build_object(
                        'job', record_spawn.job, 'most', 20));
        END IF;
    END IF;
    INSERT INTO draftsman.job_dependencies
           (job, parent, ordinal, condition, met, spawned, spawn_key)
    SELECT record_spawn.job, record_spawn.spawned, count(*) + 1, 'any', true, true, given_key
      FROM draftsman.job_dependencies d WHERE d.job = record_spawn.job
        ON CONFLICT ON CONSTRAINT job_dependencies_pkey DO NOTHING;
END $$;

-- The completed job that a job which this job retries, directly or not, spawned under a key.
CREATE OR REPLACE FUNCTION draftsman.completed_spawn(job bigint, key text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
    WITH RECURSIVE chain (number) AS (
        SELECT r.retry_of FROM draftsman.job_requests r WHERE r.number = completed_spawn.job
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
            WHERE job = c.number AND spawn_key = key AND spawned OFFSET 0) d
     CROSS JOIN LATERAL (
           SELECT status FROM draftsman.job_states WHERE number = d.parent LIMIT 1) s
     WHERE s.status = 'completed'
     ORDER BY c.number DESC
     LIMIT 1
$$;

-- Whether a running job of this person spawns a request with this key.
CREATE OR REPLACE FUNCTION draftsman.is_spawned(key text, invoker text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM draftsman.job_requests r
          JOIN draftsman.job_states s ON s.number = r.number AND s.status = 'running'
         WHERE key ~ '^spawn:[1-9][0-9]{0,17}:' AND r.invoker_id = invoker
           AND r.number = CASE WHEN key ~ '^spawn:[1-9][0-9]{0,17}:'
                          THEN split_part(key, ':', 2)::bigint END)
$$;

-- Lets a running job wait for jobs that it spawned; returns how many have not ended, NULL if the
-- run has lost its lease. The lock of each lets its end wait, so that it sees the waiting job;
-- without any, the job need not park.
CREATE OR REPLACE FUNCTION draftsman.await_jobs(
    job bigint, token bigint, spawned bigint[]
) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    unfinished int;
BEGIN
    PERFORM FROM draftsman.job_states s
      WHERE s.number = job AND s.lease_token = token AND s.status = 'running'
        FOR NO KEY UPDATE;
    IF NOT FOUND OR draftsman.session_kind() NOT IN ('owner', 'worker') THEN
        RETURN NULL;
    END IF;
    PERFORM FROM draftsman.job_states s
      WHERE s.number = ANY (spawned) AND s.finished_at IS NULL
      ORDER BY s.number
        FOR NO KEY UPDATE;
    UPDATE draftsman.job_dependencies d SET met = NULL
     WHERE d.job = await_jobs.job AND d.parent = ANY (await_jobs.spawned) AND d.spawned AND (
           SELECT s.finished_at FROM draftsman.job_states s WHERE s.number = d.parent) IS NULL;
    GET DIAGNOSTICS unfinished = ROW_COUNT;
    UPDATE draftsman.job_states s SET has_children = true
     WHERE s.number = ANY (spawned) AND s.finished_at IS NULL AND NOT s.has_children;
    RETURN unfinished;
END $$;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER job_dependencies_no_delete BEFORE DELETE ON draftsman.job_dependencies
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('workflows.parents_kept');
CREATE OR REPLACE TRIGGER job_dependencies_no_truncate BEFORE TRUNCATE ON draftsman.job_dependencies
    EXECUTE FUNCTION draftsman.refuse_change('workflows.parents_kept');

CREATE OR REPLACE TRIGGER job_group_members_no_delete BEFORE DELETE ON draftsman.job_group_members
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('workflows.group_kept');
CREATE OR REPLACE TRIGGER job_group_members_no_truncate BEFORE TRUNCATE
    ON draftsman.job_group_members
    EXECUTE FUNCTION draftsman.refuse_change('workflows.group_kept');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_workflows() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person', 'EXECUTE ON FUNCTION
        draftsman.link_jobs(bigint[], bigint[], draftsman.dependency_condition[]),
        draftsman.cancel_tree(bigint, text, text), draftsman.open_group(text, text, text, text),
        draftsman.add_to_group(bigint, bigint[], bigint[], boolean),
        draftsman.inherit_group(bigint, bigint), draftsman.cancel_group(bigint, text, text),
        draftsman.do_pending_cancels(int, bigint[], bigint[])');
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.is_met(draftsman.dependency_condition, draftsman.job_status),
        draftsman.descendants(bigint), draftsman.current_members(bigint)');
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.record_spawn(bigint, bigint, bigint), draftsman.completed_spawn(bigint, text),
        draftsman.await_jobs(bigint, bigint, bigint[])');
$$;
