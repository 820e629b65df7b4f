-- Events of forges, pull requests of jobs, and the jobs that follow them up.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0015_forges') AS applied \gset
\if :applied \echo '0015_forges is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0015_forges');

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
    ended_at           timestamptz,
    branch_deleted_at  timestamptz,
    CONSTRAINT pull_requests_number UNIQUE (forge, project, number),
    CONSTRAINT pull_requests_ended CHECK ((ended_at IS NULL) = (state = 'open'))
);
--   pull_requests_open    the pull requests of a forge that are read
--   pull_requests_ended   those with a branch that is perhaps deleted
--   pull_requests_closed  those that are perhaps opened again
CREATE INDEX pull_requests_open ON draftsman.pull_requests (forge, project) WHERE state = 'open';
CREATE INDEX pull_requests_ended ON draftsman.pull_requests (forge, ended_at)
    WHERE state <> 'open' AND branch_deleted_at IS NULL;
CREATE INDEX pull_requests_closed ON draftsman.pull_requests (forge, ended_at)
    WHERE state = 'closed';

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
--   forge_events_new   events that had no effect yet
--   forge_events_job   events of a job, in order
--   forge_events_sent  events that are answered once their job has ended
CREATE INDEX forge_events_new ON draftsman.forge_events (id) WHERE processed_at IS NULL;
CREATE INDEX forge_events_job ON draftsman.forge_events (job, id) WHERE job IS NOT NULL;
CREATE INDEX forge_events_sent ON draftsman.forge_events (id)
    WHERE outcome = 'sent' AND answered_at IS NULL;
