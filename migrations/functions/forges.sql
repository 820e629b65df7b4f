-- Events of forges, pull requests of jobs, and the jobs that follow them up.

INSERT INTO draftsman.schema_functions (name) VALUES ('forges')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Events ------------------------------------------------------------------------------------------

-- A bot stores events of the accounts in its channels, and no message in the name of another
-- person.
CREATE OR REPLACE FUNCTION draftsman.check_forge_event() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT draftsman.may_act_as(NEW.source || ':' || NEW.author) THEN
        PERFORM draftsman.deny_access('forges.author', jsonb_build_object(
                    'source', NEW.source, 'author', NEW.author));
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER forge_events_author BEFORE INSERT ON draftsman.forge_events FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_forge_event();

-- Sends an event to an unfinished job, once, as a message to its agent; returns the number of the
-- message, NULL if the event had an effect before, or the job has ended or has 200 messages.
CREATE OR REPLACE FUNCTION draftsman.send_forge_event(
    event bigint, job bigint, sender text, text text
) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sent  draftsman.forge_events;
    actor text;
    place int;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') THEN
        PERFORM draftsman.deny_access('forges.workers_send_events');
    END IF;
    PERFORM FROM draftsman.job_states j
      WHERE j.number = job AND j.finished_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO sent FROM draftsman.forge_events e
     WHERE e.id = event AND e.processed_at IS NULL FOR NO KEY UPDATE;
    SELECT coalesce(max(m.ordinal), 0) + 1 INTO place FROM draftsman.job_messages m
     WHERE m.job = send_forge_event.job;
    IF sent.id IS NULL OR place > 200 THEN
        RETURN NULL;
    END IF;
    actor := coalesce(nullif(sent.author, ''), sent.forge);
    INSERT INTO draftsman.job_messages
           (job, ordinal, source, source_event_id, sender_id, sender_display_name, sender, text)
    VALUES (job, place, sent.source, format('forge:%s:%s', event, job), actor,
            coalesce(nullif(sent.author_name, ''), sent.forge), sender, text);
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, 'message_sent', sent.source || ':' || actor, jsonb_strip_nulls(jsonb_build_object(
            'message', place, 'text', left(text, 2000), 'event', sent.kind, 'url', sent.url)));
    UPDATE draftsman.forge_events e
       SET outcome = 'sent', job = send_forge_event.job, message = place,
           processed_at = draftsman.now()
     WHERE e.id = event;
    PERFORM pg_notify('draftsman_runs', job::text);
    RETURN place;
END $$;

-- A bot records the outcome of events of people, once.
CREATE OR REPLACE FUNCTION draftsman.finish_forge_event(
    event bigint, outcome text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access('forges.bots_finish_events');
    END IF;
    UPDATE draftsman.forge_events e
       SET outcome = finish_forge_event.outcome, processed_at = draftsman.now()
     WHERE e.id = event AND e.processed_at IS NULL
       AND e.kind IN ('labeled_issue', 'issue_comment', 'answer');
    RETURN FOUND;
END $$;

-- Pull requests -----------------------------------------------------------------------------------

-- The pull request that a run opened, with the commit that it published last. The record of a run
-- says whether the forge is read (`follow_ups`). A pull request that belongs to another job stays
-- with it.
CREATE OR REPLACE FUNCTION draftsman.register_pull_request() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    opened jsonb := NEW.result;
    first  bigint := coalesce((SELECT f.root FROM draftsman.follow_ups f WHERE f.job = NEW.job),
                              NEW.job);
BEGIN
    IF jsonb_typeof(opened -> 'number') = 'number' AND opened ->> 'follow_ups' = 'true'
       AND NOT EXISTS (
           SELECT FROM draftsman.pull_requests p
            WHERE p.forge = opened ->> 'forge' AND p.project = opened ->> 'project'
              AND p.number = (opened ->> 'number')::int AND p.root <> first) THEN
        INSERT INTO draftsman.pull_requests AS p
               (root, forge, project, number, url, branch, base, head)
        VALUES (first, opened ->> 'forge', opened ->> 'project', (opened ->> 'number')::int,
                opened ->> 'url', opened ->> 'branch', opened ->> 'base', opened ->> 'head')
            ON CONFLICT (root) DO UPDATE
           SET head = excluded.head, tip = NULL, base = excluded.base;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_steps_pull_request AFTER INSERT OR UPDATE OF status
    ON draftsman.job_steps FOR EACH ROW
    WHEN (NEW.key = 'agent:pull_request' AND NEW.status = 'done')
    EXECUTE FUNCTION draftsman.register_pull_request();

-- The branch of a pull request that is opened again is deleted at its next end, if at all.
CREATE OR REPLACE FUNCTION draftsman.reopen_pull_request() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.branch_deleted_at := NULL;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER pull_requests_reopened BEFORE UPDATE OF state ON draftsman.pull_requests
    FOR EACH ROW
    WHEN (NEW.state = 'open' AND OLD.state <> 'open')
    EXECUTE FUNCTION draftsman.reopen_pull_request();

-- Follow-ups -------------------------------------------------------------------------------------

-- Stores a message of a person to a finished job whose pull request is open, once for each event of
-- its channel; returns the pull request, NULL if there is none.
CREATE OR REPLACE FUNCTION draftsman.request_follow_up(
    job bigint, source draftsman.channel, sender_id text, display_name text, source_event_id text,
    text text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pull draftsman.pull_requests;
BEGIN
    PERFORM draftsman.require_control(job, source || ':' || sender_id, 'responder');
    SELECT p.* INTO pull FROM draftsman.pull_requests p
     WHERE p.state = 'open' AND p.root = coalesce(
           (SELECT f.root FROM draftsman.follow_ups f WHERE f.job = request_follow_up.job),
           request_follow_up.job);
    IF pull.root IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO draftsman.forge_events (forge, project, number, key, kind, source, author,
           author_name, is_bot, title, text)
    VALUES (pull.forge, pull.project, pull.number, 'message:' || source || ':' || source_event_id,
            'comment', source, sender_id,
            coalesce(display_name, sender_id), false, '', text)
        ON CONFLICT DO NOTHING;
    RETURN pull.url;
END $$;

-- The retry of a follow-up is a follow-up too: it has the same branch and pull request.
CREATE OR REPLACE FUNCTION draftsman.inherit_follow_up() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO draftsman.follow_ups (job, root, ordinal, parent)
    SELECT NEW.number, f.root, f.ordinal, f.job
      FROM draftsman.follow_ups f WHERE f.job = NEW.retry_of;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_requests_follow_up AFTER INSERT ON draftsman.job_requests FOR EACH ROW
    WHEN (NEW.retry_of IS NOT NULL)
    EXECUTE FUNCTION draftsman.inherit_follow_up();

-- Whether a job follows up on another.
CREATE OR REPLACE FUNCTION draftsman.follows_up(old bigint, new bigint) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM draftsman.follow_ups f WHERE f.job = new AND f.parent = old)
$$;

-- Whether a request with this key follows up on an open pull request of this person.
CREATE OR REPLACE FUNCTION draftsman.is_follow_up(key text, invoker text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM draftsman.pull_requests p
          JOIN draftsman.job_requests r ON r.number = p.root
         WHERE key ~ '^follow-up:[1-9][0-9]{0,17}:[1-9][0-9]{0,8}$' AND p.state = 'open'
           AND r.invoker_id = invoker
           AND p.root = CASE WHEN key ~ '^follow-up:[1-9][0-9]{0,17}:'
                        THEN split_part(key, ':', 2)::bigint END)
$$;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER forge_events_immutable
    BEFORE UPDATE OF forge, project, number, key, kind, source,
    author, author_name, author_id, is_bot, association, verdict, title, text, label, path, line,
    commit, thread, url, at, received_at
    ON draftsman.forge_events FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('forges.event_immutable');
CREATE OR REPLACE TRIGGER forge_events_no_delete BEFORE DELETE ON draftsman.forge_events
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('forges.events_kept');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_forges() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.send_forge_event(bigint, bigint, text, text)');
    SELECT draftsman.grant_to('bot', 'EXECUTE ON FUNCTION
        draftsman.finish_forge_event(bigint, text)');
    SELECT draftsman.grant_to('bot person', 'EXECUTE ON FUNCTION
        draftsman.request_follow_up(bigint, draftsman.channel, text, text, text, text)');
    SELECT draftsman.grant_to('worker', 'UPDATE (state, ended_at) ON draftsman.pull_requests');
    SELECT draftsman.grant_to('bot', 'UPDATE (branch_deleted_at, tip) ON draftsman.pull_requests');
    SELECT draftsman.grant_to('worker', 'INSERT ON draftsman.follow_ups');
    SELECT draftsman.grant_to('worker', 'UPDATE (outcome, reason, job, message, processed_at)
        ON draftsman.forge_events');
    SELECT draftsman.grant_to('bot', 'INSERT (forge, project, number, key, kind, source, author,
        author_name, author_id, is_bot, association, verdict, title, text, label, path, line,
        commit, thread, url, at), UPDATE (answered_at) ON draftsman.forge_events');
$$;
