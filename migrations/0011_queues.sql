-- Pauses of queues, and the jobs that a worker may claim.

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

-- The history of pauses.
CREATE TABLE draftsman.queue_changes (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue       text NOT NULL,
    type        text,
    action      text NOT NULL CHECK (action IN ('pause', 'resume')),
    actor       text NOT NULL,
    reason      text,
    created_at  timestamptz NOT NULL DEFAULT draftsman.now()
);
CREATE TRIGGER queue_changes_append_only BEFORE UPDATE OR DELETE ON draftsman.queue_changes
    FOR EACH ROW EXECUTE FUNCTION draftsman.refuse_change('changes of queues are append-only');
CREATE TRIGGER queue_changes_no_truncate BEFORE TRUNCATE ON draftsman.queue_changes
    EXECUTE FUNCTION draftsman.refuse_change('changes of queues are append-only');

-- The jobs that a worker may claim from a queue that is not paused, and the location of each state
-- in its table. Both the claim and the explanation of a waiting job read this view, so that they
-- cannot disagree. The array is computed once for a statement; the second condition is reached only
-- by jobs of a type that is paused in some queue.
CREATE VIEW draftsman.claimable AS
    SELECT s.ctid AS location, s.number, s.queue, s.type, s.priority, s.position, s.status,
           s.run_count
      FROM draftsman.job_states s
     WHERE s.status IN ('queued', 'resumed') AND s.hold IS NULL
       AND (s.type <> ALL (ARRAY(SELECT p.type FROM draftsman.queue_pauses p
                                  WHERE p.type IS NOT NULL))
            OR NOT EXISTS (SELECT FROM draftsman.queue_pauses p
                            WHERE p.queue = s.queue AND p.type = s.type));

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
-- claim; returns their number. The claim leaves them out in any case. It looks at the first jobs of
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
         WHERE s.hold IS NULL AND s.status IN ('queued', 'resumed') AND s.ctid = ANY (ARRAY(
               SELECT f.location
                 FROM (SELECT ctid AS location, type
                         FROM draftsman.job_states
                        WHERE queue = pause.queue AND status IN ('queued', 'resumed')
                          AND hold IS NULL
                        ORDER BY priority DESC, position, number
                        LIMIT most) f
                WHERE f.type = pause.type));
        GET DIAGNOSTICS changed = ROW_COUNT;
        held := held + changed;
    END LOOP;
    RETURN held;
END $$;

-- Returns held jobs of types that are no longer paused to the claim, in queue order; returns their
-- number.
CREATE FUNCTION draftsman.release_resumed_types(most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off AS $$
DECLARE
    next     record;
    released int := 0;
    changed  int;
BEGIN
    SELECT queue, type INTO next FROM draftsman.job_states
     WHERE hold = 'paused' ORDER BY queue, type LIMIT 1;
    WHILE FOUND AND released < most LOOP
        PERFORM FROM draftsman.queue_pauses p WHERE p.queue = next.queue AND p.type = next.type;
        IF NOT FOUND THEN
            UPDATE draftsman.job_states s SET hold = NULL
             WHERE s.ctid = ANY (ARRAY(
                   SELECT ctid FROM draftsman.job_states
                    WHERE hold = 'paused' AND queue = next.queue AND type = next.type
                    ORDER BY priority DESC, position, number
                    LIMIT most - released
                      FOR NO KEY UPDATE SKIP LOCKED));
            GET DIAGNOSTICS changed = ROW_COUNT;
            released := released + changed;
            PERFORM pg_notify('draftsman_jobs', next.queue);
        END IF;
        SELECT queue, type INTO next FROM draftsman.job_states
         WHERE hold = 'paused' AND (queue, type) > (next.queue, next.type)
         ORDER BY queue, type LIMIT 1;
    END LOOP;
    RETURN released;
END $$;
