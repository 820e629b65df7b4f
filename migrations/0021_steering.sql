-- Messages of people to jobs, which agents get; and pauses of jobs.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0021_steering') AS applied \gset
\if :applied \echo '0021_steering is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0021_steering');

-- A message of a person to a job. `run` is the run whose agent was last given it; it is delivered
-- once that run has stored a checkpoint with it, or ended its job. A message that was given to a run
-- that died before is given again.
CREATE TABLE draftsman.job_messages (
    job                  bigint NOT NULL REFERENCES draftsman.job_requests,
    ordinal              int NOT NULL CHECK (ordinal BETWEEN 1 AND 200),
    source               draftsman.channel NOT NULL,
    source_event_id      text NOT NULL CHECK (source_event_id <> ''),
    sender_id            text NOT NULL,
    sender_display_name  text,
    sender               text NOT NULL,
    text                 text NOT NULL CHECK (char_length(text) BETWEEN 1 AND 10000),
    run                  int,
    created_at           timestamptz NOT NULL DEFAULT draftsman.now(),
    delivered_at         timestamptz,
    PRIMARY KEY (job, ordinal),
    CONSTRAINT job_messages_event UNIQUE (source, source_event_id),
    CONSTRAINT job_messages_delivered CHECK (delivered_at IS NULL OR run IS NOT NULL)
);

CREATE TRIGGER job_messages_immutable BEFORE UPDATE OF job, ordinal, source, source_event_id,
    sender_id, sender_display_name, sender, text, created_at
    ON draftsman.job_messages FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('a message to a job is immutable');
CREATE TRIGGER job_messages_delivered_once BEFORE UPDATE ON draftsman.job_messages FOR EACH ROW
    WHEN (OLD.delivered_at IS NOT NULL)
    EXECUTE FUNCTION draftsman.refuse_change('a delivered message is immutable');
CREATE TRIGGER job_messages_no_delete BEFORE DELETE ON draftsman.job_messages FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('messages to jobs are never deleted');
CREATE TRIGGER job_messages_no_truncate BEFORE TRUNCATE ON draftsman.job_messages
    EXECUTE FUNCTION draftsman.refuse_change('messages to jobs are never deleted');

-- Stores a message to an unfinished job, once for each event of its channel, and wakes the worker of
-- a running job. Returns job and number of the message, whether it is new, and whether its text is
-- this text; no row if the job has finished, and no number if it has 200 messages.
CREATE FUNCTION draftsman.send_message(
    job bigint, source draftsman.channel, sender_id text, display_name text, sender text,
    source_event_id text, text text
) RETURNS TABLE (message_job bigint, message int, is_new boolean, is_equal boolean) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    actor text := $2 || ':' || $3;
    next  int;
BEGIN
    PERFORM draftsman.require_control($1, actor, 'responder');
    IF draftsman.session_kind() = 'worker' THEN
        PERFORM draftsman.deny_access('workers cannot send messages to jobs');
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = $1 FOR NO KEY UPDATE;
    RETURN QUERY
    SELECT m.job, m.ordinal, false, m.text = $7 FROM draftsman.job_messages m
     WHERE m.source = $2 AND m.source_event_id = $6;
    IF FOUND OR NOT EXISTS (SELECT FROM draftsman.job_states j
                             WHERE j.number = $1 AND j.finished_at IS NULL) THEN
        RETURN;
    END IF;
    SELECT coalesce(max(m.ordinal), 0) + 1 INTO next FROM draftsman.job_messages m WHERE m.job = $1;
    IF next > 200 THEN
        RETURN QUERY SELECT $1, NULL::int, false, true;
        RETURN;
    END IF;
    INSERT INTO draftsman.job_messages
           (job, ordinal, source, source_event_id, sender_id, sender_display_name, sender, text)
    VALUES ($1, next, $2, $6, $3, $4, CASE WHEN draftsman.session_kind() = 'owner' THEN $5
            ELSE coalesce(draftsman.person_of($2::text, $3), actor) END, $7);
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES ($1, 'message_sent', actor,
            jsonb_build_object('message', next, 'text', left($7, 2000)));
    PERFORM pg_notify('draftsman_runs', $1::text);
    RETURN QUERY SELECT $1, next, true, true;
END $$;

-- Copies the messages that a finished job did not deliver to its retry; returns their number.
CREATE FUNCTION draftsman.inherit_messages(old bigint, new bigint) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    copied int;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.jobs j
                    WHERE j.number = $2 AND j.retry_of = $1 AND j.run_count = 0) THEN
        RETURN 0;
    END IF;
    INSERT INTO draftsman.job_messages
           (job, ordinal, source, source_event_id, sender_id, sender_display_name, sender, text,
            created_at)
    SELECT $2, row_number() OVER (ORDER BY m.ordinal), m.source,
           format('retry:%s:%s', $2, m.ordinal), m.sender_id, m.sender_display_name, m.sender,
           m.text, m.created_at
      FROM draftsman.job_messages m
     WHERE m.job = $1 AND m.delivered_at IS NULL
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS copied = ROW_COUNT;
    RETURN copied;
END $$;

-- Pauses --------------------------------------------------------------------------------------

-- Tells the targets of a job that it was paused or resumed; the caller has just written the event.
-- The status messages in chats are edited, too.
CREATE FUNCTION draftsman.notify_pause(job bigint, text text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO draftsman.deliveries AS d
           (job, channel, target, thread, thread_key, kind, version)
    SELECT t.job, t.channel, t.target, t.thread, t.thread_key, 'status', j.version
      FROM draftsman.job_targets t
      JOIN draftsman.job_states j ON j.number = t.job
     WHERE t.job = $1 AND t.channel IN ('slack', 'trello', 'forge') AND 'status' = ANY (t.kinds)
     ORDER BY t.ordinal
        ON CONFLICT (thread_key) WHERE kind = 'status' AND status = 'pending'
           DO UPDATE SET version = excluded.version;
    INSERT INTO draftsman.deliveries
           (job, channel, target, thread, thread_key, kind, dedupe_key, payload)
    SELECT t.job, t.channel, t.target, t.thread, t.thread_key, 'notice',
           'pause:' || currval('draftsman.job_event_ids'),
           jsonb_build_object('text', $2, 'names_job', true)
      FROM draftsman.job_targets t
     WHERE t.job = $1 AND 'notice' = ANY (t.kinds)
     ORDER BY t.ordinal
$$;

-- Pauses an unfinished job; false when it is already paused or has ended. A job that has places in
-- buckets of limits gives them to others, and waits for the end of the pause. `event` is that of a
-- channel, such as a comment.
CREATE FUNCTION draftsman.pause_job(job bigint, reason text, actor text, event text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control($1, $3, 'operator');
    PERFORM FROM draftsman.job_states j
      WHERE j.number = $1 AND j.finished_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.job_pauses (job, reason, paused_by) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES ($1, 'job_paused', $3,
            jsonb_strip_nulls(jsonb_build_object('reason', left($2, 2000), 'event', $4)));
    PERFORM draftsman.notify_pause($1, format('D-%s was paused by %s: %s', $1,
        coalesce(draftsman.person_of_actor($3), substr($3, strpos($3, ':') + 1)), $2));
    UPDATE draftsman.job_states j SET hold = 'limit', held_by = 'pause'
     WHERE j.number = $1 AND j.status IN ('queued', 'resumed') AND j.hold IS NULL
       AND j.limits <> '{}';
    PERFORM pg_notify('draftsman_runs', $1::text);
    RETURN true;
END $$;

-- Ends the pause of a job; false when it has none.
CREATE FUNCTION draftsman.unpause_job(job bigint, actor text, event text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_control($1, $2, 'operator');
    PERFORM FROM draftsman.job_states j WHERE j.number = $1 FOR NO KEY UPDATE;
    DELETE FROM draftsman.job_pauses p WHERE p.job = $1;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES ($1, 'job_unpaused', $2, jsonb_strip_nulls(jsonb_build_object('event', $3)));
    PERFORM draftsman.notify_pause($1, format('D-%s was resumed by %s', $1,
        coalesce(draftsman.person_of_actor($2), substr($2, strpos($2, ':') + 1))));
    UPDATE draftsman.job_states j SET held_by = j.limits[1]
     WHERE j.number = $1 AND j.held_by = 'pause' AND NOT EXISTS (
           SELECT FROM draftsman.queue_pauses p
            WHERE p.queue = j.queue AND (p.type IS NULL OR p.type = j.type));
    PERFORM pg_notify('draftsman_jobs', j.queue) FROM draftsman.job_states j WHERE j.number = $1;
    RETURN true;
END $$;

-- Removes the pauses of jobs that have ended, at most so many.
CREATE FUNCTION draftsman.delete_ended_pauses(most int) RETURNS void LANGUAGE sql AS $$
    DELETE FROM draftsman.job_pauses p
     WHERE p.job = ANY (ARRAY(
           SELECT o.job FROM draftsman.job_pauses o
             JOIN draftsman.job_states s ON s.number = o.job AND s.finished_at IS NOT NULL
            ORDER BY o.job LIMIT most))
$$;
