-- Messages of people to jobs, which agents get; attachments of requests and messages; and pauses of
-- jobs.

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

-- Attachments ---------------------------------------------------------------------------------

-- A file that a person sent with a request or a message. The bot of its channel downloads it by
-- `reference`, which has no secret; until then it is pending. It is stored once, or refused with a
-- reason. A retry has the attachments of its job.
CREATE TABLE draftsman.attachments (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel        draftsman.channel NOT NULL CHECK (channel IN ('slack', 'trello')),
    reference      jsonb NOT NULL CHECK (octet_length(reference::text) <= 8000),
    name           text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 120
                                        AND name !~ '[/\\[:cntrl:]]' AND name !~ '^[.]'),
    media_type     text CHECK (char_length(media_type) <= 200),
    status         text NOT NULL DEFAULT 'pending'
                   CHECK (status IN ('pending', 'stored', 'refused')),
    reason         text CHECK (char_length(reason) BETWEEN 1 AND 500),
    size           bigint CHECK (size BETWEEN 0 AND 10485760),
    sha256         text,
    attempts       int NOT NULL DEFAULT 0,
    claimed_until  timestamptz,
    created_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    ended_at       timestamptz,
    CONSTRAINT attachments_ended CHECK ((ended_at IS NOT NULL) = (status <> 'pending')),
    CONSTRAINT attachments_stored CHECK ((status = 'stored') = (size IS NOT NULL)
        AND (status = 'stored') = (sha256 IS NOT NULL)),
    CONSTRAINT attachments_refused CHECK ((status = 'refused') = (reason IS NOT NULL))
);
CREATE INDEX attachments_pending ON draftsman.attachments (channel, id) WHERE status = 'pending';

CREATE TABLE draftsman.attachment_contents (
    attachment  bigint PRIMARY KEY REFERENCES draftsman.attachments,
    data        bytea NOT NULL CHECK (octet_length(data) <= 10485760)
);

CREATE TABLE draftsman.job_attachments (
    job         bigint NOT NULL REFERENCES draftsman.job_requests,
    ordinal     int NOT NULL CHECK (ordinal BETWEEN 1 AND 20),
    attachment  bigint NOT NULL REFERENCES draftsman.attachments,
    message     int CHECK (message > 0),
    PRIMARY KEY (job, ordinal),
    UNIQUE (attachment, job)
);

-- The files that a job gets. Files that it shares with another job, or has from several, are refused
-- for it beyond the limit of a job; those that were stored first remain.
CREATE VIEW draftsman.job_files AS
    SELECT f.job, f.ordinal, f.message, f.id, f.name, f.media_type,
           CASE WHEN f.over THEN 'refused' ELSE f.status END AS status,
           CASE WHEN f.over THEN 'the files of a job have at most 25 MiB' ELSE f.reason END AS reason,
           CASE WHEN NOT f.over THEN f.size END AS size,
           CASE WHEN NOT f.over THEN f.sha256 END AS sha256, f.created_at
      FROM (SELECT j.job, j.ordinal, j.message, a.*, a.size IS NOT NULL AND sum(a.size) OVER (
                       PARTITION BY j.job ORDER BY a.ended_at, j.ordinal) > 26214400 AS over
              FROM draftsman.job_attachments j
              JOIN draftsman.attachments a ON a.id = j.attachment) f;

CREATE TRIGGER attachments_ended_once BEFORE UPDATE ON draftsman.attachments FOR EACH ROW
    WHEN (OLD.status <> 'pending')
    EXECUTE FUNCTION draftsman.refuse_change('a stored or refused attachment is immutable');
CREATE TRIGGER attachments_no_delete BEFORE DELETE ON draftsman.attachments FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('attachments are never deleted');
CREATE TRIGGER attachment_contents_immutable BEFORE UPDATE OR DELETE
    ON draftsman.attachment_contents FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('a stored attachment is immutable');
CREATE TRIGGER job_attachments_immutable BEFORE UPDATE OR DELETE
    ON draftsman.job_attachments FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('the attachments of a job are never changed');

-- Adds files of a channel to a job, and returns their names; a file that the job has is left out, and
-- those after the twentieth are dropped. `files` are objects with reference, name, media_type and
-- reason, why a file is refused at once.
CREATE FUNCTION draftsman.insert_attachments(job bigint, source draftsman.channel, message int, files jsonb)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    file    record;
    place   int;
    stored  bigint;
    names   jsonb := '[]';
BEGIN
    SELECT coalesce(max(a.ordinal), 0) INTO place FROM draftsman.job_attachments a
     WHERE a.job = $1;
    FOR file IN
        SELECT f.value ->> 'name' AS name, f.value ->> 'media_type' AS media_type,
               f.value ->> 'reason' AS reason, f.value -> 'reference' AS reference
          FROM jsonb_array_elements($4) WITH ORDINALITY f
         WHERE NOT EXISTS (
               SELECT FROM draftsman.job_attachments j
                 JOIN draftsman.attachments a ON a.id = j.attachment
                WHERE j.job = $1 AND a.channel = $2 AND a.reference = f.value -> 'reference')
         ORDER BY f.ordinality
    LOOP
        EXIT WHEN place >= 20;
        place := place + 1;
        INSERT INTO draftsman.attachments (channel, reference, name, media_type, status, reason, ended_at)
        VALUES ($2, file.reference, file.name, file.media_type,
                CASE WHEN file.reason IS NULL THEN 'pending' ELSE 'refused' END, file.reason,
                CASE WHEN file.reason IS NOT NULL THEN draftsman.now() END)
        RETURNING id INTO stored;
        INSERT INTO draftsman.job_attachments VALUES ($1, place, stored, $3);
        names := names || jsonb_build_array(file.name);
    END LOOP;
    RETURN names;
END $$;

-- Adds files of a person to an unfinished job, with the request, with a request that joined the job, or
-- with a message to the job.
-- Returns the number of new files.
CREATE FUNCTION draftsman.add_attachments(job bigint, actor text, message int, files jsonb) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names jsonb;
BEGIN
    IF ($3 IS NULL AND draftsman.session_kind() = 'bot' AND draftsman.may_act_as($2) AND EXISTS (
            SELECT FROM draftsman.job_events e
             WHERE e.job = $1 AND e.kind = 'request_joined'
               AND e.payload ->> 'requester' IN (draftsman.person_of_actor($2), $2))) IS NOT TRUE THEN
        PERFORM draftsman.require_control($1, $2, 'responder');
    END IF;
    IF draftsman.session_kind() = 'worker' THEN
        PERFORM draftsman.deny_access('workers cannot attach files of people');
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = $1 AND j.finished_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN 0; END IF;
    names := draftsman.insert_attachments($1, split_part($2, ':', 1)::draftsman.channel, $3, $4);
    IF names <> '[]' THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES ($1, 'attachments_added', $2,
                jsonb_strip_nulls(jsonb_build_object('names', names, 'message', $3)));
    END IF;
    RETURN jsonb_array_length(names);
END $$;

-- Claims pending files of a channel for their download, for so many seconds. A file whose downloads
-- failed five times is refused.
CREATE FUNCTION draftsman.claim_attachments(channel draftsman.channel, most int, seconds float8)
RETURNS TABLE (id bigint, attempt int, reference jsonb, name text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access('only bots download attachments');
    END IF;
    UPDATE draftsman.attachments a
       SET status = 'refused', reason = 'it could not be downloaded', ended_at = draftsman.now()
     WHERE a.id = ANY (ARRAY(
           SELECT p.id FROM draftsman.attachments p
            WHERE p.channel = $1 AND p.status = 'pending' AND p.attempts >= 5
              AND p.claimed_until < draftsman.now()
            ORDER BY p.id FOR UPDATE SKIP LOCKED));
    RETURN QUERY
    UPDATE draftsman.attachments a
       SET attempts = a.attempts + 1,
           claimed_until = draftsman.now() + make_interval(secs => $3)
     WHERE a.id = ANY (ARRAY(
           SELECT p.id FROM draftsman.attachments p
            WHERE p.channel = $1 AND p.status = 'pending'
              AND (p.claimed_until IS NULL OR p.claimed_until < draftsman.now())
            ORDER BY p.id LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING a.id, a.attempts, a.reference, a.name;
END $$;

-- Stores a downloaded file, or refuses it: with the given reason, or because the files of its job
-- would have more than 25 MiB. A stored file adds `more` files, which were found in it, to its first
-- job. Returns its status; nothing if another process has ended it, or claimed it again.
CREATE FUNCTION draftsman.end_attachment(
    id bigint, attempt int, data bytea, reason text, more jsonb
) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first   bigint;
    total   bigint;
    problem text := $4;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access('only bots download attachments');
    END IF;
    SELECT min(j.job) INTO first FROM draftsman.job_attachments j WHERE j.attachment = $1;
    PERFORM FROM draftsman.job_states j WHERE j.number = first FOR NO KEY UPDATE;  -- as add_attachments
    PERFORM FROM draftsman.job_attachments j WHERE j.job = first ORDER BY j.ordinal FOR UPDATE;
    PERFORM FROM draftsman.attachments a WHERE a.id = $1 AND a.status = 'pending' AND a.attempts = $2 FOR UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF problem IS NULL THEN
        SELECT coalesce(sum(a.size), 0) + octet_length($3) INTO total
          FROM draftsman.job_attachments j JOIN draftsman.attachments a ON a.id = j.attachment
         WHERE j.job = first;
        IF total > 26214400 THEN problem := 'the files of a job have at most 25 MiB'; END IF;
    END IF;
    IF problem IS NULL THEN
        INSERT INTO draftsman.attachment_contents (attachment, data) VALUES ($1, $3);
        UPDATE draftsman.attachments a
           SET status = 'stored', size = octet_length($3), sha256 = encode(sha256($3), 'hex'),
               ended_at = draftsman.now()
         WHERE a.id = $1;
        PERFORM draftsman.insert_attachments(j.job, a.channel, j.message, $5)
          FROM draftsman.job_attachments j
          JOIN draftsman.attachments a ON a.id = j.attachment
         WHERE j.attachment = $1 AND j.job = first AND $5 <> '[]';
        RETURN 'stored';
    END IF;
    UPDATE draftsman.attachments a
       SET status = 'refused', reason = left(problem, 500), ended_at = draftsman.now()
     WHERE a.id = $1;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT first, 'attachment_refused', 'system',
           jsonb_build_object('name', a.name, 'reason', a.reason)
      FROM draftsman.attachments a WHERE a.id = $1;
    RETURN 'refused';
END $$;

-- Pauses --------------------------------------------------------------------------------------

-- Tells the targets of a job that it was paused or resumed; the caller has just written the event.
-- The status messages in chats are edited, too.
CREATE FUNCTION draftsman.notify_pause(job bigint, text text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO draftsman.deliveries AS d (job, channel, target, thread, thread_key, kind, version)
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
