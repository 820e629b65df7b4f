-- Events of forges, pull requests of jobs, the jobs that follow them up, and requests and answers
-- of people in comments.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0023_forges') AS applied \gset
\if :applied \echo '0023_forges is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0023_forges');

-- The pull request of a job and of the jobs that follow it up: `root` is the first of them.
CREATE TABLE draftsman.pull_requests (
    root               bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    forge              text NOT NULL CHECK (forge <> ''),
    project            text NOT NULL CHECK (project = lower(project)),
    number             int NOT NULL CHECK (number > 0),
    url                text NOT NULL,
    branch             text NOT NULL,
    base               text NOT NULL,
    head               text NOT NULL,
    state              text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'merged', 'closed')),
    opened_at          timestamptz NOT NULL DEFAULT draftsman.now(),
    ended_at           timestamptz,
    branch_deleted_at  timestamptz,
    CONSTRAINT pull_requests_number UNIQUE (forge, project, number),
    CONSTRAINT pull_requests_ended CHECK ((ended_at IS NULL) = (state = 'open'))
);
--   pull_requests_open  the pull requests of a forge that are read
--   pull_requests_ended  those with a branch that is perhaps deleted
--   pull_requests_closed  those that are perhaps opened again
CREATE INDEX pull_requests_open ON draftsman.pull_requests (forge, project) WHERE state = 'open';
CREATE INDEX pull_requests_ended ON draftsman.pull_requests (forge, ended_at)
    WHERE state <> 'open' AND branch_deleted_at IS NULL;
CREATE INDEX pull_requests_closed ON draftsman.pull_requests (forge, ended_at)
    WHERE state = 'closed';

-- The branch of a pull request that is opened again is deleted at its next end, if at all.
CREATE FUNCTION draftsman.reopen_pull_request() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.branch_deleted_at := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER pull_requests_reopened BEFORE UPDATE OF state ON draftsman.pull_requests
    FOR EACH ROW WHEN (NEW.state = 'open' AND OLD.state <> 'open')
    EXECUTE FUNCTION draftsman.reopen_pull_request();

-- A job that follows up on the pull request of another: with its branch, agent session and work.
CREATE TABLE draftsman.follow_ups (
    job      bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    root     bigint NOT NULL REFERENCES draftsman.pull_requests,
    ordinal  int NOT NULL CHECK (ordinal > 0),
    parent   bigint NOT NULL REFERENCES draftsman.job_requests CHECK (parent < job),
    CONSTRAINT follow_ups_parent UNIQUE (parent)
);
--   follow_ups_root  the follow-ups of a pull request, in order
CREATE INDEX follow_ups_root ON draftsman.follow_ups (root, job);

-- Whether a job follows up on another.
CREATE FUNCTION draftsman.follows_up(old bigint, new bigint) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM draftsman.follow_ups f WHERE f.job = $2 AND f.parent = $1)
$$;

-- Whether a request with this key follows up on an open pull request of this person.
CREATE FUNCTION draftsman.is_follow_up(key text, invoker text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM draftsman.pull_requests p
          JOIN draftsman.job_requests r ON r.number = p.root
         WHERE $1 ~ '^follow-up:[1-9][0-9]{0,17}:[1-9][0-9]{0,8}$' AND p.state = 'open'
           AND r.invoker_id = $2
           AND p.root = CASE WHEN $1 ~ '^follow-up:[1-9][0-9]{0,17}:'
                        THEN split_part($1, ':', 2)::bigint END)
$$;

-- An event of a forge, or a message of a person to a finished job. Each is stored once, however
-- often and over which ways it arrives, and has an effect once: `outcome` is written with it.
CREATE TABLE draftsman.forge_events (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    forge         text NOT NULL CHECK (forge <> ''),
    project       text NOT NULL CHECK (project = lower(project)),
    number        int NOT NULL CHECK (number > 0),
    key           text NOT NULL CHECK (key <> ''),
    kind          text NOT NULL CHECK (kind IN (
                      'comment', 'review', 'review_thread', 'check_failed', 'conflict', 'merged',
                      'closed', 'reopened', 'labeled_issue', 'issue_comment', 'answer')),
    source        draftsman.channel NOT NULL,
    author        text NOT NULL,
    author_name   text NOT NULL,
    author_id     text NOT NULL DEFAULT '',
    is_bot        boolean NOT NULL,
    association   text,
    verdict       text,
    title         text NOT NULL,
    text          text NOT NULL,
    label         text,
    path          text,
    line          int,
    commit        text,
    thread        text,
    url           text,
    at            timestamptz,
    received_at   timestamptz NOT NULL DEFAULT draftsman.now(),
    outcome       text,
    reason        text,
    job           bigint REFERENCES draftsman.job_requests,
    message       int,
    processed_at  timestamptz,
    answered_at   timestamptz,
    CONSTRAINT forge_events_text CHECK (
        char_length(text) <= CASE kind WHEN 'labeled_issue' THEN 60000 ELSE 10000 END),
    CONSTRAINT forge_events_once UNIQUE (forge, project, number, key),
    CONSTRAINT forge_events_outcome_check CHECK (outcome IN ('ignored', 'sent', 'ended', 'reopened')
        OR (outcome IN ('submitted', 'answered', 'refused')
            AND kind IN ('labeled_issue', 'issue_comment', 'answer'))),
    CONSTRAINT forge_events_processed CHECK ((processed_at IS NULL) = (outcome IS NULL)),
    CONSTRAINT forge_events_sent CHECK ((outcome = 'sent') = (message IS NOT NULL)
        AND (message IS NULL OR job IS NOT NULL)),
    CONSTRAINT forge_events_answered CHECK (answered_at IS NULL OR outcome = 'sent')
);
--   forge_events_new     events that had no effect yet
--   forge_events_job     events of a job, in order
--   forge_events_sent    events that are answered once their job has ended
CREATE INDEX forge_events_new ON draftsman.forge_events (id) WHERE processed_at IS NULL;
CREATE INDEX forge_events_job ON draftsman.forge_events (job, id) WHERE job IS NOT NULL;
CREATE INDEX forge_events_sent ON draftsman.forge_events (id)
    WHERE outcome = 'sent' AND answered_at IS NULL;

CREATE TRIGGER forge_events_immutable BEFORE UPDATE OF forge, project, number, key, kind, source,
    author, author_name, author_id, is_bot, association, verdict, title, text, label, path, line,
    commit, thread, url, at, received_at
    ON draftsman.forge_events FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('an event of a forge is immutable');
CREATE TRIGGER forge_events_no_delete BEFORE DELETE ON draftsman.forge_events FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('events of forges are never deleted');

-- A bot stores events of the accounts in its channels, and no message in the name of another person.
CREATE FUNCTION draftsman.check_forge_event() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT draftsman.may_act_as(NEW.source || ':' || NEW.author) THEN
        PERFORM draftsman.deny_access(
            format('%s cannot store events of %s:%s', session_user, NEW.source, NEW.author));
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER forge_events_author BEFORE INSERT ON draftsman.forge_events FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_forge_event();

-- The pull request that a run opened, with the commit that it published last. The record of a run
-- says whether the forge is read (`follow_ups`). A pull request that belongs to another job stays with it.
CREATE FUNCTION draftsman.register_pull_request() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
            ON CONFLICT (root) DO UPDATE SET head = excluded.head, base = excluded.base;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_steps_pull_request AFTER INSERT OR UPDATE OF status ON draftsman.job_steps
    FOR EACH ROW WHEN (NEW.key = 'agent:pull_request' AND NEW.status = 'done')
    EXECUTE FUNCTION draftsman.register_pull_request();

-- The retry of a follow-up is a follow-up too: it has the same branch and pull request.
CREATE FUNCTION draftsman.inherit_follow_up() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO draftsman.follow_ups (job, root, ordinal, parent)
    SELECT NEW.number, f.root, f.ordinal, f.job
      FROM draftsman.follow_ups f WHERE f.job = NEW.retry_of;
    RETURN NULL;
END $$;

CREATE TRIGGER job_requests_follow_up AFTER INSERT ON draftsman.job_requests
    FOR EACH ROW WHEN (NEW.retry_of IS NOT NULL) EXECUTE FUNCTION draftsman.inherit_follow_up();

-- Sends an event to an unfinished job, once, as a message to its agent; returns the number of the
-- message, NULL if the event had an effect before, or the job has ended or has 200 messages.
CREATE FUNCTION draftsman.send_forge_event(event bigint, job bigint, sender text, text text)
RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sent  draftsman.forge_events;
    actor text;
    place int;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') THEN
        PERFORM draftsman.deny_access('only workers send events of forges to jobs');
    END IF;
    PERFORM FROM draftsman.job_states j
      WHERE j.number = $2 AND j.finished_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO sent FROM draftsman.forge_events e
     WHERE e.id = $1 AND e.processed_at IS NULL FOR NO KEY UPDATE;
    SELECT coalesce(max(m.ordinal), 0) + 1 INTO place FROM draftsman.job_messages m WHERE m.job = $2;
    IF sent.id IS NULL OR place > 200 THEN
        RETURN NULL;
    END IF;
    actor := coalesce(nullif(sent.author, ''), sent.forge);
    INSERT INTO draftsman.job_messages
           (job, ordinal, source, source_event_id, sender_id, sender_display_name, sender, text)
    VALUES ($2, place, sent.source, format('forge:%s:%s', $1, $2), actor,
            coalesce(nullif(sent.author_name, ''), sent.forge), $3, $4);
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES ($2, 'message_sent', sent.source || ':' || actor, jsonb_strip_nulls(jsonb_build_object(
            'message', place, 'text', left($4, 2000), 'event', sent.kind, 'url', sent.url)));
    UPDATE draftsman.forge_events e
       SET outcome = 'sent', job = $2, message = place, processed_at = draftsman.now()
     WHERE e.id = $1;
    PERFORM pg_notify('draftsman_runs', $2::text);
    RETURN place;
END $$;

-- Stores a message of a person to a finished job whose pull request is open, once for each event of
-- its channel; returns the pull request, NULL if there is none.
CREATE FUNCTION draftsman.request_follow_up(
    job bigint, source draftsman.channel, sender_id text, display_name text,
    source_event_id text, text text
) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pull draftsman.pull_requests;
BEGIN
    PERFORM draftsman.require_control($1, $2 || ':' || $3, 'responder');
    SELECT p.* INTO pull FROM draftsman.pull_requests p
     WHERE p.state = 'open' AND p.root = coalesce(
           (SELECT f.root FROM draftsman.follow_ups f WHERE f.job = $1), $1);
    IF pull.root IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO draftsman.forge_events (forge, project, number, key, kind, source, author,
           author_name, is_bot, title, text)
    VALUES (pull.forge, pull.project, pull.number, 'message:' || $2 || ':' || $5, 'comment', $2, $3,
            coalesce($4, $3), false, '', $6)
        ON CONFLICT DO NOTHING;
    RETURN pull.url;
END $$;

--   forge_events_people  events of people that had no effect yet
CREATE INDEX forge_events_people ON draftsman.forge_events (id)
    WHERE processed_at IS NULL AND kind IN ('labeled_issue', 'issue_comment', 'answer');

-- A bot records the outcome of events of people, once.
CREATE FUNCTION draftsman.finish_forge_event(event bigint, outcome text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access(format('%s processes no events of forges', session_user));
    END IF;
    UPDATE draftsman.forge_events e
       SET outcome = $2, processed_at = draftsman.now()
     WHERE e.id = $1 AND e.processed_at IS NULL
       AND e.kind IN ('labeled_issue', 'issue_comment', 'answer');
    RETURN FOUND;
END $$;

-- Gives a new job the attachments of the job that it retries, follows up or comes after.
CREATE FUNCTION draftsman.inherit_attachments(old bigint, new bigint) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    copied int;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.jobs j
                    WHERE j.number = $2 AND j.retry_of = $1 AND j.run_count = 0)
       AND NOT EXISTS (SELECT FROM draftsman.follow_ups f WHERE f.job = $2 AND f.parent = $1)
       AND NOT EXISTS (SELECT FROM draftsman.job_dependencies d
                        WHERE d.job = $2 AND d.parent = $1) THEN
        RETURN 0;
    END IF;
    INSERT INTO draftsman.job_attachments (job, ordinal, attachment)
    SELECT $2, p.place + row_number() OVER (ORDER BY a.ordinal), a.attachment
      FROM draftsman.job_attachments a
     CROSS JOIN (SELECT coalesce(max(o.ordinal), 0) AS place
                   FROM draftsman.job_attachments o WHERE o.job = $2) p
     WHERE a.job = $1 AND a.ordinal <= 20 - p.place
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS copied = ROW_COUNT;
    RETURN copied;
END $$;
