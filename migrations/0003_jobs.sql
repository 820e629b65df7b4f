-- Jobs, their requests, runs, steps, checkpoints, artifacts and logs; their pauses, messages and
-- attachments.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0003_jobs') AS applied \gset
\if :applied \echo '0003_jobs is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0003_jobs');

CREATE TYPE draftsman.job_status AS ENUM (
    'scheduled', 'queued', 'claimed', 'running', 'waiting_for_input', 'waiting_for_approval',
    'resumed', 'retrying', 'completed', 'failed', 'dead_letter', 'canceled', 'expired');
CREATE TYPE draftsman.job_mode AS ENUM ('investigate', 'fix');
CREATE TYPE draftsman.source_type AS ENUM ('trello_ticket', 'plain_text_intake');
CREATE TYPE draftsman.run_status AS ENUM (
    'running', 'completed', 'failed', 'skipped', 'parked', 'interrupted', 'canceled');
CREATE TYPE draftsman.on_lost AS ENUM ('retry', 'resume', 'fail', 'new_job');
CREATE TYPE draftsman.error_class AS ENUM (
    'TRANSIENT_INFRA', 'TRANSIENT_APP', 'PERMANENT', 'INVALID_OUTPUT', 'DENIED');

-- In the reverse order in which a job passes them; from `key` on, it does not hold its concurrency
-- key.
CREATE TYPE draftsman.job_hold AS ENUM ('paused', 'limit', 'key', 'parents');
CREATE TYPE draftsman.step_status AS ENUM ('pending', 'done');

-- Gaps of 100 leave room to move a job between two others with a single write.
CREATE SEQUENCE draftsman.job_positions INCREMENT BY 100 START WITH 100;
CREATE SEQUENCE draftsman.lease_tokens;

-- Jobs --------------------------------------------------------------------------------------------

-- A job is a request, which never changes, and a state. Two narrow rows cost less than a wide row
-- that each transition writes again. A request and its state are inserted by the same statement.
CREATE TABLE draftsman.job_requests (
    number                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id                    uuid NOT NULL,
    type                  text NOT NULL,
    idempotency_key       text NOT NULL,
    request_digest        text NOT NULL,
    mode                  draftsman.job_mode NOT NULL DEFAULT 'fix',
    source                draftsman.channel NOT NULL,
    source_type           draftsman.source_type NOT NULL DEFAULT 'plain_text_intake',
    external_event_id     text,
    invoker_id            text NOT NULL,
    invoker_display_name  text,
    repo_host             text,
    repo_owner            text,
    repo_name             text,
    ticket_url            text,
    ticket_title          text,
    ticket_text           text,
    payload               jsonb NOT NULL DEFAULT '{}',
    overrides             jsonb NOT NULL DEFAULT '{}',
    requested_skills      text[] NOT NULL DEFAULT '{}',
    tags                  text[] NOT NULL DEFAULT '{}',
    agent                 text,
    retry_of              bigint,
    chain_length          int NOT NULL DEFAULT 0,
    template              text,
    template_version      int,
    created_at            timestamptz NOT NULL DEFAULT draftsman.now()
);

-- With a fill factor of 50, two successive versions of a row fit its page: no lock record for a
-- row that moves to another page, and only the part of the row from the first to the last changed
-- column is logged (0.4 kB less WAL a job). The columns that a claim and its settlement change are
-- therefore the last, and those that rarely change are before them (70 B).
--
-- A claim passes the index entries of all jobs claimed since the last vacuum (16 ns each). A vacuum
-- is therefore due after 5,000 jobs, however many have finished, and cleans the indexes also where
-- the changed pages are few (0.1 s of CPU for two million finished jobs).
CREATE TABLE draftsman.job_states (
    number                bigint PRIMARY KEY WITH (fillfactor = 50),
    position              bigint NOT NULL DEFAULT nextval('draftsman.job_positions'),
    priority              int NOT NULL DEFAULT 0,
    on_lost               draftsman.on_lost NOT NULL DEFAULT 'retry',
    attempts              int NOT NULL DEFAULT 0,
    max_attempts          int NOT NULL DEFAULT 3,
    retry_count           int NOT NULL DEFAULT 0,
    max_retries           int NOT NULL DEFAULT 3,
    queued_at             timestamptz,
    run_at                timestamptz,
    next_retry_at         timestamptz,
    cancel_requested_at   timestamptz,
    type                  text NOT NULL,
    queue                 text NOT NULL DEFAULT 'default',
    subject_key           text,
    concurrency_key       text,
    hold                  draftsman.job_hold,
    limits                text[],
    held_by               text,
    last_error            text,
    error_class           draftsman.error_class,
    cancel_requested_by   text,
    cancel_reason         text,
    pr_url                text,
    has_targets           boolean NOT NULL DEFAULT false,
    has_children          boolean NOT NULL DEFAULT false,
    by_type               boolean NOT NULL DEFAULT false,  -- see set_by_type()
    run_count             int NOT NULL DEFAULT 0,
    claimed_at            timestamptz,
    started_at            timestamptz,
    claimed_from          draftsman.job_status,
    status                draftsman.job_status NOT NULL DEFAULT 'queued',
    version               int NOT NULL DEFAULT 1,
    updated_at            timestamptz NOT NULL DEFAULT draftsman.now(),
    lease_token           bigint,
    worker_id             uuid,
    finished_at           timestamptz,
    result_token          bigint,
    result                jsonb
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0, vacuum_index_cleanup = on);

-- Each further index costs about 190 B of WAL a job. PostgreSQL prepares the condition of a partial
-- index again for each statement; IS NULL costs least. The partial indexes hold only the rows that
-- need them: an ordinary job has no due time and no subject, and a generated key is `auto:` and the
-- id of the job, which has an index of its own.
--   job_requests_pkey   the request of a job; the newest jobs
--   job_requests_id     a job by its id, or by a prefix of it
--   job_requests_key    submission: a single job for a type and a given idempotency key
--   job_states_pkey     the state of a job
--   job_states_claim    the claim, in queue order
--   job_states_by_type  the claim by type, where many jobs are of types of other workers
--   job_states_held     jobs left out of the claim: by reason and concurrency key, in queue order
--   job_states_limited  jobs that wait for a place in a bucket of a limit, in queue order
--   job_states_key      a single job that holds a concurrency key: from its claim, or before, to
--                       its end
--   job_states_status   lists and counts by status
--   job_states_due      jobs that are due; the earliest due time for the leader's timer
--   job_states_subject  a single live job for a subject
CREATE UNIQUE INDEX job_requests_id ON draftsman.job_requests (id) WITH (fillfactor = 50);
CREATE UNIQUE INDEX job_requests_key ON draftsman.job_requests (type, idempotency_key)
    WITH (fillfactor = 50)
    WHERE NOT starts_with(idempotency_key, 'auto:');
CREATE INDEX job_states_claim ON draftsman.job_states (queue, priority DESC, position, number)
    WHERE status IN ('queued', 'resumed') AND hold IS NULL AND NOT by_type;
CREATE INDEX job_states_by_type
    ON draftsman.job_states (queue, type, priority DESC, position, number)
    WHERE by_type AND status IN ('queued', 'resumed') AND hold IS NULL;
CREATE INDEX job_states_held
    ON draftsman.job_states (hold, concurrency_key, priority DESC, position, number)
    WHERE hold IS NOT NULL AND held_by IS NULL;
CREATE INDEX job_states_limited ON draftsman.job_states (held_by, priority DESC, position, number)
    WHERE held_by IS NOT NULL;
CREATE UNIQUE INDEX job_states_key ON draftsman.job_states (concurrency_key)
    WHERE concurrency_key IS NOT NULL AND finished_at IS NULL AND (hold >= 'key') IS NOT TRUE;
CREATE INDEX job_states_status ON draftsman.job_states (status, number);
CREATE INDEX job_states_due ON draftsman.job_states (coalesce(next_retry_at, run_at))
    WHERE status IN ('scheduled', 'retrying');
CREATE UNIQUE INDEX job_states_subject ON draftsman.job_states (subject_key)
    WHERE subject_key IS NOT NULL
      AND status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired');

-- Requests ----------------------------------------------------------------------------------------

-- The fields of a request as clients send them: those that all requests of a batch share.
CREATE TYPE draftsman.request AS (
    id                    uuid,
    type                  text,
    idempotency_key       text,
    request_digest        text,
    queue                 text,
    priority              int,
    subject_key           text,
    concurrency_key       text,
    mode                  draftsman.job_mode,
    source                draftsman.channel,
    source_type           draftsman.source_type,
    external_event_id     text,
    invoker_id            text,
    invoker_display_name  text,
    repo_host             text,
    repo_owner            text,
    repo_name             text,
    ticket_url            text,
    ticket_title          text,
    ticket_text           text,
    payload               jsonb,
    overrides             jsonb,
    requested_skills      text[],
    tags                  text[],
    agent                 text,
    retry_of              bigint,
    chain_length          int,
    template              text,
    template_version      int,
    run_at                timestamptz,
    delay                 float8,
    max_attempts          int,
    max_retries           int,
    on_lost               draftsman.on_lost,
    has_targets           boolean,
    hold                  draftsman.job_hold
);

-- The key that a request has in common with those that repeat its job, and the job that it
-- replaced. Only requests that are to be unique have a row. A debounced job starts by
-- `debounce_until`, which the jobs that replace it inherit, so that a stream of requests cannot
-- postpone it for ever.
CREATE TABLE draftsman.unique_keys (
    job             bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    key             text NOT NULL CHECK (key <> ''),
    replaces        bigint UNIQUE CHECK (replaces < job),
    debounce_until  timestamptz
);
--   unique_keys_key  the jobs with a key, newest first
CREATE INDEX unique_keys_key ON draftsman.unique_keys (key, job);

-- Runs --------------------------------------------------------------------------------------------

-- The columns that change when a run ends are the last: less of the row is logged.
--
-- No foreign key and no unique index for the open run: the trigger job_runs_inserted and the
-- checks of record_transitions() guarantee both, and cost less for each row.
CREATE TABLE draftsman.job_runs (
    job              bigint NOT NULL,
    lease_token      bigint NOT NULL,
    worker_id        uuid NOT NULL,
    started_at       timestamptz NOT NULL DEFAULT draftsman.now(),
    heartbeat_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    ordinal          int NOT NULL CHECK (ordinal > 0),
    params_snapshot  jsonb NOT NULL DEFAULT '{}',
    exit_code        int,
    error            text,
    error_class      draftsman.error_class,
    usage            jsonb,
    status           draftsman.run_status NOT NULL DEFAULT 'running',
    finished_at      timestamptz,
    result           jsonb,
    PRIMARY KEY (job, ordinal),
    CONSTRAINT job_runs_finished CHECK ((finished_at IS NULL) = (status = 'running')),
    CONSTRAINT job_runs_never_denied CHECK (error_class <> 'DENIED')
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Steps whose key begins with `agent:` or `sleep:` belong to the worker, such as the branch that
-- it published; no handler can write them.
CREATE TABLE draftsman.job_steps (
    job            bigint NOT NULL REFERENCES draftsman.job_requests,
    key            text NOT NULL CHECK (key <> '' AND char_length(key) <= 1000),
    owner          text NOT NULL,
    status         draftsman.step_status NOT NULL DEFAULT 'pending',
    invocation_id  text NOT NULL,
    run            int NOT NULL,
    result         jsonb,
    created_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    finished_at    timestamptz,
    PRIMARY KEY (job, key),
    CONSTRAINT job_steps_finished CHECK ((finished_at IS NOT NULL) = (status = 'done')),
    CONSTRAINT job_steps_owner CHECK (
        owner = CASE WHEN key ~ '^(agent|sleep):' THEN 'worker' ELSE 'handler' END)
);

-- A patch and a work bundle have reserved names, which no other file can take.
CREATE TABLE draftsman.artifacts (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job         bigint NOT NULL REFERENCES draftsman.job_requests,
    run         int NOT NULL,
    name        text NOT NULL CHECK (name <> '' AND char_length(name) <= 1000),
    kind        text NOT NULL CHECK (kind IN ('patch', 'report', 'file', 'bundle',
                                              'transcript', 'evidence')),
    size        bigint NOT NULL CHECK (size BETWEEN 0 AND 26214400),
    sha256      text NOT NULL,
    added       int CHECK (added >= 0),
    removed     int CHECK (removed >= 0),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    UNIQUE (job, run, name),
    CONSTRAINT artifacts_reserved CHECK ((kind = 'patch') = (name = 'changes.patch')
        AND (kind = 'bundle') = (name = 'checkpoint.bundle')
        AND (kind = 'transcript') = (name = 'transcript.jsonl')
        AND (kind = 'evidence') = (name = 'evidence.json'))
);

CREATE TABLE draftsman.artifact_chunks (
    artifact  bigint NOT NULL REFERENCES draftsman.artifacts ON DELETE CASCADE,
    seq       int NOT NULL,
    data      bytea NOT NULL,
    PRIMARY KEY (artifact, seq)
);

CREATE TABLE draftsman.job_checkpoints (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    job         bigint NOT NULL REFERENCES draftsman.job_requests,
    run         int NOT NULL,
    data        jsonb NOT NULL CHECK (octet_length(data::text) <= 8388608),
    bundle      bigint REFERENCES draftsman.artifacts,
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, id)
);

CREATE TABLE draftsman.run_log_chunks (
    job         bigint NOT NULL,
    run         int NOT NULL,
    seq         int NOT NULL,
    text        text NOT NULL CHECK (octet_length(text) <= 262144),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, run, seq)
);

-- The activity of the agent of a run: the newest rows of each job.
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

-- Usage of the quotas of a job. A row is created with the first use.
CREATE TABLE draftsman.job_quotas (
    job    bigint NOT NULL REFERENCES draftsman.job_requests,
    quota  text NOT NULL CHECK (quota IN ('events', 'steps', 'artifacts', 'checkpoints',
                                          'questions', 'log')),
    count  bigint NOT NULL CHECK (count >= 0),
    bytes  bigint NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (job, quota)
) WITH (fillfactor = 70);

-- Pauses, messages and attachments ----------------------------------------------------------------

-- A pause of a job, in any state but a final one. As for the pause of a queue, the claim reads this
-- table, so that a job that is promoted, resumed or released meanwhile needs no check. The worker
-- of a running job, and of a job that was claimed at the same time, learns of it with its
-- heartbeat.
CREATE TABLE draftsman.job_pauses (
    job        bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    reason     text NOT NULL CHECK (reason <> ''),
    paused_by  text NOT NULL CHECK (paused_by <> ''),
    paused_at  timestamptz NOT NULL DEFAULT draftsman.now()
);

-- Consequences of a change of a job that its transaction left to a later transaction: because
-- another transaction holds a lock that they need, because they are too many for a statement, or
-- because it is the transaction of a caller, which may stay open for any time and must not hold a
-- lock that workers need. Each row is of one kind:
--   bucket  the change of the places taken in a bucket; 0 if only waiting jobs ask for places
--   key     a concurrency key that may be free
--   ended   a job whose end has yet to release or cancel its children and the jobs of its group, or
--           that has a reservation which has yet to be ended
--   jobs    new jobs whose positions have yet to be set
-- The count of a bucket is its row with these changes, which are added when the bucket is locked.
CREATE TABLE draftsman.postponed_work (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bucket  text,
    change  int,
    key     text,
    ended   bigint,
    jobs    bigint[],
    txid    xid8 NOT NULL DEFAULT pg_current_xact_id(),
    due_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    CONSTRAINT postponed_work_kind CHECK (num_nonnulls(bucket, key, ended, jobs) = 1),
    CONSTRAINT postponed_work_change CHECK ((bucket IS NULL) = (change IS NULL))
);
CREATE INDEX postponed_work_bucket ON draftsman.postponed_work (bucket) WHERE bucket IS NOT NULL;
CREATE INDEX postponed_work_due ON draftsman.postponed_work (due_at);

-- A message of a person to a job. `run` is the run whose agent was last given it; it is delivered
-- once that run has stored a checkpoint with it, or ended its job. A message that was given to a
-- run that died before is given again.
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
