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
    tip                text,
    state              text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'merged', 'closed')),
    ended_at           timestamptz,
    branch_deleted_at  timestamptz,
    CONSTRAINT pull_requests_number UNIQUE (forge, project, number),
    CONSTRAINT pull_requests_ended CHECK ((ended_at IS NULL) = (state = 'open'))
);

COMMENT ON TABLE draftsman.pull_requests IS
    'The pull requests of jobs on forges whose events are received, each from its first job to '
    'its merge or its end. Written by the record of the run that opened it.';
COMMENT ON COLUMN draftsman.pull_requests.root IS
    'the first job; the jobs that follow it up have the same pull request';
COMMENT ON COLUMN draftsman.pull_requests.forge IS 'the table in `[forges]`';
COMMENT ON COLUMN draftsman.pull_requests.project IS 'the repository there, in lower case';
COMMENT ON COLUMN draftsman.pull_requests.number IS 'the number of the pull request';
COMMENT ON COLUMN draftsman.pull_requests.url IS 'its page';
COMMENT ON COLUMN draftsman.pull_requests.branch IS 'its branch, which all these jobs push';
COMMENT ON COLUMN draftsman.pull_requests.base IS 'the branch that it is merged into';
COMMENT ON COLUMN draftsman.pull_requests.head IS 'the commit that was published last';
COMMENT ON COLUMN draftsman.pull_requests.tip IS
    'the commit that people have pushed since, when the branch was read last; NULL: none';
COMMENT ON COLUMN draftsman.pull_requests.state IS '`open`, `merged` or `closed`';
COMMENT ON COLUMN draftsman.pull_requests.ended_at IS 'when its merge or end was received';
COMMENT ON COLUMN draftsman.pull_requests.branch_deleted_at IS 'when draftsman deleted the branch';

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

COMMENT ON TABLE draftsman.follow_ups IS
    'The jobs that follow up on the pull request of another job, with its branch, agent session '
    'and work.';
COMMENT ON COLUMN draftsman.follow_ups.job IS 'the job';
COMMENT ON COLUMN draftsman.follow_ups.root IS 'the first job of the pull request';
COMMENT ON COLUMN draftsman.follow_ups.ordinal IS
    'its place among the follow-ups of the pull request';
COMMENT ON COLUMN draftsman.follow_ups.parent IS 'the job before it, whose checkpoint it has';

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
    kind          text NOT NULL CHECK (kind ~ '^[a-z_]{1,40}$'),
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

COMMENT ON TABLE draftsman.forge_events IS
    'The events of forges, and messages of people to finished jobs. Each is stored once, however '
    'often it arrives, and has an effect once.';
COMMENT ON COLUMN draftsman.forge_events.id IS 'the order of arrival';
COMMENT ON COLUMN draftsman.forge_events.forge IS 'the table in `[forges]`';
COMMENT ON COLUMN draftsman.forge_events.project IS 'the repository there, in lower case';
COMMENT ON COLUMN draftsman.forge_events.number IS 'the number of the pull request or issue';
COMMENT ON COLUMN draftsman.forge_events.key IS
    'the identity of the event in its pull request or issue, the same in webhooks and polls';
COMMENT ON COLUMN draftsman.forge_events.kind IS
    'such as `comment`, `review` or `merged`; `labeled_issue`, `issue_comment` and `answer` are of '
    'people who request jobs and answer questions';
COMMENT ON COLUMN draftsman.forge_events.source IS
    'the channel: `forge`, or that of a message to a finished job';
COMMENT ON COLUMN draftsman.forge_events.author IS
    'the account in that channel, on a forge in lower case; empty for the forge itself';
COMMENT ON COLUMN draftsman.forge_events.author_name IS 'the name that is shown';
COMMENT ON COLUMN draftsman.forge_events.author_id IS
    'the forge''s id of the account, to which the login of a person is bound; empty: unknown';
COMMENT ON COLUMN draftsman.forge_events.is_bot IS 'whether a program or draftsman itself wrote it';
COMMENT ON COLUMN draftsman.forge_events.association IS
    'the relation of the author to the repository, as the forge names it';
COMMENT ON COLUMN draftsman.forge_events.verdict IS
    '`approved`, `changes_requested` or `commented`, of a review';
COMMENT ON COLUMN draftsman.forge_events.title IS
    'the title of an issue, the name of a check, or the base of a conflict';
COMMENT ON COLUMN draftsman.forge_events.text IS 'the text, or the relevant part of a log';
COMMENT ON COLUMN draftsman.forge_events.label IS 'the label that an issue was given';
COMMENT ON COLUMN draftsman.forge_events.path IS 'the file of a comment on lines';
COMMENT ON COLUMN draftsman.forge_events.line IS 'its line';
COMMENT ON COLUMN draftsman.forge_events.commit IS 'the commit that it is about';
COMMENT ON COLUMN draftsman.forge_events.thread IS 'the thread or comment that an answer goes to';
COMMENT ON COLUMN draftsman.forge_events.url IS 'its page';
COMMENT ON COLUMN draftsman.forge_events.at IS 'when the forge says it happened';
COMMENT ON COLUMN draftsman.forge_events.received_at IS 'when it was stored';
COMMENT ON COLUMN draftsman.forge_events.outcome IS
    '`ignored`, `sent` to a job, `ended` its pull request, or `reopened` it; NULL: no effect yet';
COMMENT ON COLUMN draftsman.forge_events.reason IS 'why it was ignored';
COMMENT ON COLUMN draftsman.forge_events.job IS 'the job that got it as a message';
COMMENT ON COLUMN draftsman.forge_events.message IS 'the number of that message';
COMMENT ON COLUMN draftsman.forge_events.processed_at IS 'when it had its effect';
COMMENT ON COLUMN draftsman.forge_events.answered_at IS
    'when the answer with the commit was written on the forge';

--   forge_events_new   events that had no effect yet
--   forge_events_job   events of a job, in order
--   forge_events_sent  events that are answered once their job has ended
CREATE INDEX forge_events_new ON draftsman.forge_events (id) WHERE processed_at IS NULL;
CREATE INDEX forge_events_job ON draftsman.forge_events (job, id) WHERE job IS NOT NULL;
CREATE INDEX forge_events_sent ON draftsman.forge_events (id)
    WHERE outcome = 'sent' AND answered_at IS NULL;
