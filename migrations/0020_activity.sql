-- Activity of agents: the newest rows of each job, and threads in chat that show it live.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0020_activity') AS applied \gset
\if :applied \echo '0020_activity is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0020_activity');

CREATE TABLE draftsman.run_activity (
    job         bigint NOT NULL,
    run         int NOT NULL,
    seq         int NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('message', 'thought', 'tool', 'file', 'plan', 'usage',
                                              'note')),
    state       text CHECK (state IN ('pending', 'running', 'completed', 'failed', 'created',
                                      'changed', 'deleted')),
    key         text CHECK (length(key) <= 500),
    text        text NOT NULL CHECK (length(text) <= 16000),
    detail      jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(detail::text) <= 131072),
    continues   boolean NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, run, seq)
);
--   run_activity_plans  the newest plan of a run
CREATE INDEX run_activity_plans ON draftsman.run_activity (job, run, seq) WHERE kind = 'plan';

-- Threads of Slack that show a run while it works: the status of the thread, and a message that
-- grows, its stream. A row is claimed like a delivery: `token` is new with each claim, and another
-- process may claim the row when it is due again.
CREATE TABLE draftsman.live_threads (
    thread_key   text PRIMARY KEY CHECK (thread_key <> ''),
    job          bigint NOT NULL REFERENCES draftsman.job_requests,
    run          int NOT NULL CHECK (run > 0),
    stream       text NOT NULL DEFAULT 'none'
                 CHECK (stream IN ('none', 'starting', 'open', 'closed')),
    stream_ref   text,
    started_at   timestamptz,
    shown        jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(shown::text) <= 65536),
    status_text  text NOT NULL DEFAULT '' CHECK (length(status_text) <= 500),
    status_at    timestamptz,
    quiet        boolean NOT NULL DEFAULT false,
    added_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    due_at       timestamptz NOT NULL DEFAULT draftsman.now(),
    token        uuid,
    CONSTRAINT live_threads_started CHECK ((stream = 'none') = (started_at IS NULL)),
    CONSTRAINT live_threads_ref CHECK ((stream = 'open') = (stream_ref IS NOT NULL))
);
