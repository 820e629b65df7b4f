-- Events of forges, pull requests of jobs, and the jobs that follow them up.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0026_forge_events') AS applied \gset
\if :applied \echo '0026_forge_events is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0026_forge_events');

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
CREATE INDEX pull_requests_open ON draftsman.pull_requests (forge, project) WHERE state = 'open';

-- A job that follows up on the pull request of another: with its branch, agent session and work.
CREATE TABLE draftsman.follow_ups (
    job      bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    root     bigint NOT NULL REFERENCES draftsman.pull_requests,
    ordinal  int NOT NULL CHECK (ordinal > 0),
    parent   bigint NOT NULL REFERENCES draftsman.job_requests CHECK (parent < job),
    CONSTRAINT follow_ups_ordinal UNIQUE (root, ordinal)
);

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
                      'closed', 'labeled_issue', 'issue_comment')),
    source        draftsman.channel NOT NULL,
    author        text NOT NULL,
    author_name   text NOT NULL,
    is_bot        boolean NOT NULL,
    association   text,
    verdict       text,
    title         text NOT NULL,
    text          text NOT NULL CHECK (char_length(text) <= 10000),
    label         text,
    path          text,
    line          int,
    commit        text,
    thread        text,
    url           text,
    at            timestamptz,
    received_at   timestamptz NOT NULL DEFAULT draftsman.now(),
    outcome       text CHECK (outcome IN ('ignored', 'sent', 'ended')),
    reason        text,
    job           bigint REFERENCES draftsman.job_requests,
    message       int,
    processed_at  timestamptz,
    answered_at   timestamptz,
    CONSTRAINT forge_events_once UNIQUE (forge, project, number, key),
    CONSTRAINT forge_events_processed CHECK ((processed_at IS NULL) = (outcome IS NULL)),
    CONSTRAINT forge_events_sent CHECK ((outcome = 'sent') = (message IS NOT NULL)
        AND (message IS NULL OR job IS NOT NULL)),
    CONSTRAINT forge_events_answered CHECK (answered_at IS NULL OR outcome = 'sent')
);
--   forge_events_new     events that had no effect yet
--   forge_events_job     events of a job, of which some are answered at its end
CREATE INDEX forge_events_new ON draftsman.forge_events (id) WHERE processed_at IS NULL;
CREATE INDEX forge_events_job ON draftsman.forge_events (job, id) WHERE job IS NOT NULL;

CREATE TRIGGER forge_events_immutable BEFORE UPDATE OF forge, project, number, key, kind, source,
    author, author_name, is_bot, association, verdict, title, text, label, path, line, commit,
    thread, url, at, received_at
    ON draftsman.forge_events FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('an event of a forge is immutable');
CREATE TRIGGER forge_events_no_delete BEFORE DELETE ON draftsman.forge_events FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('events of forges are never deleted');

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

ALTER FUNCTION draftsman.grant_roles() RENAME TO grant_roles_before_forges;
CREATE FUNCTION draftsman.grant_roles() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    missing text := draftsman.grant_roles_before_forges();
BEGIN
    IF to_regrole('draftsman_bot') IS NOT NULL THEN
        GRANT INSERT ON draftsman.forge_events TO draftsman_bot;
    END IF;
    RETURN missing;
END $$;
