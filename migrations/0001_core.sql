-- The durable core: jobs, runs, steps, checkpoints, events, questions, answers, workers, leases,
-- artifacts and logs. One transaction: `draftsman migrate`, or `psql -1 -f`, in the order of names.

CREATE SCHEMA IF NOT EXISTS draftsman;

CREATE TABLE IF NOT EXISTS draftsman.schema_migrations (
    name        text PRIMARY KEY,
    checksum    text,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- First, so that a second run of this file ends here and changes nothing.
INSERT INTO draftsman.schema_migrations (name) VALUES ('0001_core');

-- The clock that decides leases, expiry and due times. A session may shift it.
CREATE FUNCTION draftsman.now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.now()
         + coalesce(nullif(current_setting('draftsman.clock_offset', true), ''), '0')::interval
$$;

CREATE TYPE draftsman.job_status AS ENUM (
    'scheduled', 'queued', 'claimed', 'running', 'waiting_for_input', 'waiting_for_approval',
    'resumed', 'retrying', 'completed', 'failed', 'dead_letter', 'canceled', 'expired');
CREATE TYPE draftsman.job_mode AS ENUM ('investigate', 'fix');
CREATE TYPE draftsman.channel AS ENUM (
    'slack', 'trello', 'tui', 'cli', 'api', 'mcp', 'schedule', 'internal');
CREATE TYPE draftsman.source_type AS ENUM ('trello_ticket', 'plain_text_intake');
CREATE TYPE draftsman.run_status AS ENUM (
    'running', 'completed', 'failed', 'skipped', 'paused', 'interrupted', 'canceled');
CREATE TYPE draftsman.on_lost AS ENUM ('retry', 'resume', 'fail', 'new_job');
CREATE TYPE draftsman.error_class AS ENUM (
    'TRANSIENT_INFRA', 'TRANSIENT_APP', 'PERMANENT', 'INVALID_OUTPUT');
CREATE TYPE draftsman.question_kind AS ENUM ('input', 'approval');
CREATE TYPE draftsman.question_status AS ENUM (
    'open', 'answered', 'expired', 'canceled', 'superseded');
CREATE TYPE draftsman.on_expire AS ENUM ('expire', 'default', 'continue');
CREATE TYPE draftsman.on_deny AS ENUM ('fail', 'continue');
CREATE TYPE draftsman.step_status AS ENUM ('pending', 'done');

-- Gaps of 100 leave room to move a job between two others with one write.
CREATE SEQUENCE draftsman.job_positions INCREMENT BY 100 START WITH 100;
CREATE SEQUENCE draftsman.lease_tokens;

CREATE TABLE draftsman.jobs (
    number                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id                    uuid NOT NULL,
    type                  text NOT NULL CHECK (type <> ''),
    idempotency_key       text NOT NULL CHECK (idempotency_key <> ''),
    request_digest        text NOT NULL,
    queue                 text NOT NULL DEFAULT 'default' CHECK (queue <> ''),
    priority              int NOT NULL DEFAULT 0,
    position              bigint NOT NULL DEFAULT nextval('draftsman.job_positions'),
    subject_key           text,
    status                draftsman.job_status NOT NULL DEFAULT 'queued',
    claimed_from          draftsman.job_status CHECK (claimed_from IN ('queued', 'resumed')),
    mode                  draftsman.job_mode NOT NULL DEFAULT 'fix',
    source                draftsman.channel NOT NULL,
    source_type           draftsman.source_type NOT NULL DEFAULT 'plain_text_intake',
    external_event_id     text,
    invoker_id            text NOT NULL,
    invoker_display_name  text,
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
    retry_of              bigint REFERENCES draftsman.jobs,
    chain_length          int NOT NULL DEFAULT 0 CHECK (chain_length BETWEEN 0 AND 1000),
    run_at                timestamptz,
    run_count             int NOT NULL DEFAULT 0 CHECK (run_count >= 0),
    attempts              int NOT NULL DEFAULT 0,
    max_attempts          int NOT NULL DEFAULT 3,
    retry_count           int NOT NULL DEFAULT 0,
    max_retries           int NOT NULL DEFAULT 3,
    next_retry_at         timestamptz,
    last_error            text,
    error_class           draftsman.error_class,
    on_lost               draftsman.on_lost NOT NULL DEFAULT 'retry',
    worker_id             uuid,
    lease_token           bigint,
    cancel_requested_at   timestamptz,
    cancel_requested_by   text,
    cancel_reason         text,
    result                jsonb,
    version               int NOT NULL DEFAULT 1,
    created_at            timestamptz NOT NULL DEFAULT draftsman.now(),
    queued_at             timestamptz,
    claimed_at            timestamptz,
    started_at            timestamptz,
    finished_at           timestamptz,
    updated_at            timestamptz NOT NULL DEFAULT draftsman.now(),

    CONSTRAINT jobs_finished CHECK ((finished_at IS NOT NULL)
        = (status IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))),
    CONSTRAINT jobs_retry_time CHECK ((next_retry_at IS NOT NULL) = (status = 'retrying')),
    CONSTRAINT jobs_run_time CHECK (status <> 'scheduled' OR run_at IS NOT NULL),
    CONSTRAINT jobs_error CHECK (status NOT IN ('failed', 'dead_letter') OR last_error IS NOT NULL),
    CONSTRAINT jobs_claimed_from CHECK ((claimed_from IS NOT NULL) = (status = 'claimed')),
    CONSTRAINT jobs_worker CHECK ((worker_id IS NOT NULL) = (status IN ('claimed', 'running'))),
    CONSTRAINT jobs_lease CHECK ((lease_token IS NOT NULL) = (status IN ('claimed', 'running'))),
    CONSTRAINT jobs_cancel CHECK ((cancel_requested_at IS NULL) = (cancel_requested_by IS NULL)),
    CONSTRAINT jobs_attempts CHECK (attempts BETWEEN 0 AND max_attempts AND max_attempts <= 100),
    CONSTRAINT jobs_retries CHECK (retry_count BETWEEN 0 AND max_retries AND max_retries <= 100)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Each index beyond the keys costs about 190 B of WAL a job; these are all. The last two hold only
-- rows that have a due time or a subject, so an ordinary job never enters them.
--   jobs_pkey      a job by its number; the newest jobs first
--   jobs_id        a job by its id, or by a prefix of it
--   jobs_key       intake: the same type and key make one job
--   jobs_claim     the claim, in queue order
--   jobs_status    lists and counts by status
--   jobs_due       promote what is due; the leader's timer on the earliest
--   jobs_subject   one live job for a subject
CREATE UNIQUE INDEX jobs_id ON draftsman.jobs (id);
ALTER TABLE draftsman.jobs ADD CONSTRAINT jobs_key UNIQUE (type, idempotency_key);
CREATE INDEX jobs_claim ON draftsman.jobs (queue, priority DESC, position, created_at, number)
    WHERE status IN ('queued', 'resumed');
CREATE INDEX jobs_status ON draftsman.jobs (status, number);
CREATE INDEX jobs_due ON draftsman.jobs (coalesce(next_retry_at, run_at))
    WHERE status IN ('scheduled', 'retrying');
CREATE UNIQUE INDEX jobs_subject ON draftsman.jobs (subject_key)
    WHERE subject_key IS NOT NULL
      AND status NOT IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired');

-- What a worker may take: the claim and `why` both read this, and nothing else says it.
CREATE VIEW draftsman.claimable AS
    SELECT number, queue, type, priority, position, created_at, status, run_count
      FROM draftsman.jobs
     WHERE status IN ('queued', 'resumed');

CREATE TABLE draftsman.job_runs (
    job              bigint NOT NULL REFERENCES draftsman.jobs,
    ordinal          int NOT NULL CHECK (ordinal > 0),
    worker_id        uuid NOT NULL,
    lease_token      bigint NOT NULL,
    params_snapshot  jsonb NOT NULL DEFAULT '{}',
    status           draftsman.run_status NOT NULL DEFAULT 'running',
    heartbeat_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    started_at       timestamptz NOT NULL DEFAULT draftsman.now(),
    finished_at      timestamptz,
    exit_code        int,
    error            text,
    error_class      draftsman.error_class,
    usage            jsonb,
    result           jsonb,
    PRIMARY KEY (job, ordinal),
    CONSTRAINT job_runs_finished CHECK ((finished_at IS NULL) = (status = 'running'))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX job_runs_open ON draftsman.job_runs (job) WHERE status = 'running';

CREATE TABLE draftsman.job_steps (
    job            bigint NOT NULL REFERENCES draftsman.jobs,
    key            text NOT NULL CHECK (key <> ''),
    status         draftsman.step_status NOT NULL DEFAULT 'pending',
    invocation_id  text NOT NULL,
    run            int NOT NULL,
    result         jsonb,
    created_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    finished_at    timestamptz,
    PRIMARY KEY (job, key),
    CONSTRAINT job_steps_finished CHECK ((finished_at IS NOT NULL) = (status = 'done'))
);

CREATE TABLE draftsman.artifacts (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job         bigint NOT NULL REFERENCES draftsman.jobs,
    run         int NOT NULL,
    name        text NOT NULL CHECK (name <> ''),
    kind        text NOT NULL CHECK (kind IN ('patch', 'report', 'file', 'bundle')),
    size        bigint NOT NULL CHECK (size BETWEEN 0 AND 26214400),
    sha256      text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    UNIQUE (job, run, name)
);

CREATE TABLE draftsman.artifact_chunks (
    artifact  bigint NOT NULL REFERENCES draftsman.artifacts ON DELETE CASCADE,
    seq       int NOT NULL,
    data      bytea NOT NULL,
    PRIMARY KEY (artifact, seq)
);

CREATE TABLE draftsman.job_checkpoints (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    job         bigint NOT NULL REFERENCES draftsman.jobs,
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

-- A restored dump starts a new epoch: its transaction ids say nothing about the old ones.
CREATE TABLE draftsman.feed (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    epoch  int NOT NULL
);
INSERT INTO draftsman.feed (epoch) VALUES (1);
CREATE FUNCTION draftsman.feed_epoch() RETURNS int LANGUAGE sql STABLE AS
    'SELECT epoch FROM draftsman.feed';

CREATE SEQUENCE draftsman.job_event_ids;
CREATE TABLE draftsman.job_events (
    job          bigint NOT NULL,
    id           bigint NOT NULL DEFAULT nextval('draftsman.job_event_ids'),
    run          int,
    kind         text NOT NULL,
    from_status  draftsman.job_status,
    to_status    draftsman.job_status,
    actor        text NOT NULL,
    payload      jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(payload::text) <= 65536),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    epoch        int NOT NULL DEFAULT draftsman.feed_epoch(),
    txid         xid8 NOT NULL DEFAULT pg_current_xact_id()
) PARTITION BY RANGE (created_at);
CREATE INDEX job_events_job ON draftsman.job_events (job, id);
CREATE INDEX job_events_feed ON draftsman.job_events (epoch, txid, id);
CREATE TABLE draftsman.job_events_default PARTITION OF draftsman.job_events DEFAULT;

CREATE TABLE draftsman.job_questions (
    job               bigint NOT NULL REFERENCES draftsman.jobs,
    ordinal           int NOT NULL CHECK (ordinal > 0),
    run               int NOT NULL,
    key               text NOT NULL CHECK (key <> ''),
    kind              draftsman.question_kind NOT NULL,
    status            draftsman.question_status NOT NULL DEFAULT 'open',
    text              text NOT NULL CHECK (text <> ''),
    choices           jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(choices) = 'array'),
    freeform_allowed  boolean NOT NULL DEFAULT false,
    context_snippet   text,
    approvers         text[] NOT NULL DEFAULT '{}',
    quorum            int NOT NULL DEFAULT 1 CHECK (quorum >= 1),
    on_expire         draftsman.on_expire NOT NULL DEFAULT 'expire',
    default_value     text,
    on_deny           draftsman.on_deny NOT NULL DEFAULT 'fail',
    digest            text NOT NULL,
    action            jsonb,
    resolution        jsonb,
    asked_at          timestamptz NOT NULL DEFAULT draftsman.now(),
    expires_at        timestamptz,
    answered_at       timestamptz,
    PRIMARY KEY (job, ordinal),
    CONSTRAINT job_questions_gate CHECK (kind = 'input'
        OR (choices = '[]' AND NOT freeform_allowed AND on_expire = 'expire')),
    CONSTRAINT job_questions_answerable CHECK (kind = 'approval'
        OR choices <> '[]' OR freeform_allowed),
    CONSTRAINT job_questions_default CHECK ((default_value IS NOT NULL) = (on_expire = 'default')),
    CONSTRAINT job_questions_resolved CHECK ((resolution IS NOT NULL) = (status <> 'open')),
    CONSTRAINT job_questions_answered CHECK (status <> 'answered' OR answered_at IS NOT NULL)
);
CREATE UNIQUE INDEX job_questions_open ON draftsman.job_questions (job) WHERE status = 'open';
CREATE INDEX job_questions_expiry ON draftsman.job_questions (expires_at) WHERE status = 'open';

CREATE TABLE draftsman.job_answers (
    id                      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job                     bigint NOT NULL,
    question                int NOT NULL,
    kind                    draftsman.question_kind NOT NULL,
    source                  draftsman.channel NOT NULL,
    source_event_id         text NOT NULL,
    responder_id            text NOT NULL,
    responder_display_name  text,
    voter                   text NOT NULL,
    payload                 jsonb NOT NULL,
    accepted                boolean NOT NULL,
    reason                  text,
    created_at              timestamptz NOT NULL DEFAULT draftsman.now(),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT job_answers_once UNIQUE (job, question, source_event_id),
    CONSTRAINT job_answers_refused CHECK (accepted OR reason IS NOT NULL)
);
CREATE UNIQUE INDEX job_answers_input ON draftsman.job_answers (job, question)
    WHERE accepted AND kind = 'input';
CREATE UNIQUE INDEX job_answers_vote ON draftsman.job_answers (job, question, voter)
    WHERE accepted AND kind = 'approval';

CREATE TABLE draftsman.approval_tokens (
    token_hash  text PRIMARY KEY,
    job         bigint NOT NULL,
    question    int NOT NULL,
    approver    text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    used_at     timestamptz,
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    UNIQUE (job, question, approver)
);

CREATE TABLE draftsman.workers (
    id             uuid PRIMARY KEY,
    lock_id        int GENERATED BY DEFAULT AS IDENTITY UNIQUE,
    host           text NOT NULL,
    host_id        text NOT NULL,
    pid            int NOT NULL,
    pid_started    double precision NOT NULL,
    version        text NOT NULL,
    types          text[] NOT NULL,
    queues         text[] NOT NULL,
    slots          int NOT NULL CHECK (slots > 0),
    draining       boolean NOT NULL DEFAULT false,
    started_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    heartbeat_at   timestamptz NOT NULL DEFAULT draftsman.now(),
    unlocked_at    timestamptz
);

CREATE TABLE draftsman.leases (
    name        text PRIMARY KEY,
    owner       uuid NOT NULL,
    term        bigint NOT NULL CHECK (term > 0),
    expires_at  timestamptz NOT NULL
);
