-- Jobs, their requests, runs, steps, checkpoints, artifacts and logs; their pauses, messages and
-- attachments.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0003_jobs') AS applied \gset
\if :applied \echo '0003_jobs is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0003_jobs');

CREATE TYPE draftsman.job_status AS ENUM (
    'scheduled', 'queued', 'claimed', 'running', 'waiting_for_input', 'waiting_for_approval',
    'resumed', 'retrying', 'completed', 'failed', 'dead_letter', 'canceled', 'expired');
CREATE TYPE draftsman.job_mode AS ENUM ('investigate', 'fix');
CREATE TYPE draftsman.source_type AS ENUM ('ticket', 'plain_text_intake');
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
    mode                  draftsman.job_mode,
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

COMMENT ON TABLE draftsman.job_requests IS
    'The request of a job; the view `jobs` joins it with the state. Never deleted, and never '
    'changed, except for a repository that is found while the job runs.';
COMMENT ON COLUMN draftsman.job_requests.number IS
    'the number that people use (`D-142`), and that other tables refer to';
COMMENT ON COLUMN draftsman.job_requests.id IS 'a UUIDv7 made by the application, globally unique';
COMMENT ON COLUMN draftsman.job_requests.type IS 'selects the handler';
COMMENT ON COLUMN draftsman.job_requests.idempotency_key IS
    'the same type and key are the same job; `auto:…` if none was given, `retry:…` for a retry';
COMMENT ON COLUMN draftsman.job_requests.request_digest IS
    'SHA-256 of the request: the same key with another request is refused';
COMMENT ON COLUMN draftsman.job_requests.mode IS
    'whether the agent may change the repository; NULL: not a request of an agent';
COMMENT ON COLUMN draftsman.job_requests.source IS 'the channel of the request';
COMMENT ON COLUMN draftsman.job_requests.source_type IS 'the kind of the request';
COMMENT ON COLUMN draftsman.job_requests.external_event_id IS
    'the channel''s own id of the request';
COMMENT ON COLUMN draftsman.job_requests.invoker_id IS
    'the requester: a person, or `channel:id` if unknown';
COMMENT ON COLUMN draftsman.job_requests.invoker_display_name IS
    'the requester''s name in that channel';
COMMENT ON COLUMN draftsman.job_requests.repo_host IS
    'host of the repository in lower case; NULL for a local folder';
COMMENT ON COLUMN draftsman.job_requests.repo_owner IS 'owner of the repository, from the URL';
COMMENT ON COLUMN draftsman.job_requests.repo_name IS
    'name of the repository, from the URL or the path';
COMMENT ON COLUMN draftsman.job_requests.ticket_url IS 'URL of the request';
COMMENT ON COLUMN draftsman.job_requests.ticket_title IS
    'title of the request, or the first line of its text';
COMMENT ON COLUMN draftsman.job_requests.ticket_text IS 'text of the request';
COMMENT ON COLUMN draftsman.job_requests.payload IS
    'data of the request for the handler; `repo` has the source and the ref';
COMMENT ON COLUMN draftsman.job_requests.overrides IS 'settings of this job alone';
COMMENT ON COLUMN draftsman.job_requests.requested_skills IS 'requested skills';
COMMENT ON COLUMN draftsman.job_requests.tags IS 'words, or `name=value`, for filters';
COMMENT ON COLUMN draftsman.job_requests.agent IS
    'the agent for `run_agent`; of a request without an agent, that of the run which found its '
    'repository';
COMMENT ON COLUMN draftsman.job_requests.retry_of IS
    'the finished job that this job retries; a job has at most a single retry';
COMMENT ON COLUMN draftsman.job_requests.chain_length IS
    'the number of retries since the first request';
COMMENT ON COLUMN draftsman.job_requests.template IS 'the template that it was made from';
COMMENT ON COLUMN draftsman.job_requests.template_version IS 'the version of the template';
COMMENT ON COLUMN draftsman.job_requests.created_at IS 'when it was requested';

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

COMMENT ON TABLE draftsman.job_states IS
    'The state of a job: the only row of both that a transition writes. A finished job does not '
    'change at all.';
COMMENT ON COLUMN draftsman.job_states.number IS 'the number of its request';
COMMENT ON COLUMN draftsman.job_states.position IS
    'lower values first, within a priority; rises by 100, so that a job can be moved between two '
    'others with a single write';
COMMENT ON COLUMN draftsman.job_states.priority IS 'higher values first';
COMMENT ON COLUMN draftsman.job_states.on_lost IS 'the action when its worker dies';
COMMENT ON COLUMN draftsman.job_states.attempts IS 'infrastructure errors and lost workers so far';
COMMENT ON COLUMN draftsman.job_states.max_attempts IS 'the limit of attempts; fixed at submission';
COMMENT ON COLUMN draftsman.job_states.retry_count IS 'application errors so far';
COMMENT ON COLUMN draftsman.job_states.max_retries IS 'the limit of retries; fixed at submission';
COMMENT ON COLUMN draftsman.job_states.queued_at IS 'when it last began to wait for a worker';
COMMENT ON COLUMN draftsman.job_states.run_at IS 'when it is or was due';
COMMENT ON COLUMN draftsman.job_states.next_retry_at IS 'while retrying: the time of the next run';
COMMENT ON COLUMN draftsman.job_states.cancel_requested_at IS 'when a cancel was requested';
COMMENT ON COLUMN draftsman.job_states.type IS 'the type of its request, for the claim';
COMMENT ON COLUMN draftsman.job_states.queue IS 'the queue that it waits in';
COMMENT ON COLUMN draftsman.job_states.subject_key IS
    'the subject of the job: a single live job for each subject';
COMMENT ON COLUMN draftsman.job_states.concurrency_key IS
    'of the jobs with this key, a single job is claimed, runs or waits for a person; fixed at '
    'submission';
COMMENT ON COLUMN draftsman.job_states.hold IS
    'why the claim leaves it out: `paused` (its type), `key` (another job holds its concurrency '
    'key), `limit` (no free place) or `parents` (they have not ended); NULL: it does not';
COMMENT ON COLUMN draftsman.job_states.limits IS
    'the buckets of its limits, sorted; NULL: it has none';
COMMENT ON COLUMN draftsman.job_states.held_by IS
    'the bucket that has no free place for it; `pause`: it waits for the end of the pause of its '
    'queue or type';
COMMENT ON COLUMN draftsman.job_states.last_error IS
    'the last error; of a denial or a lost worker, the name and values of a sentence';
COMMENT ON COLUMN draftsman.job_states.error_class IS 'the class of the last error';
COMMENT ON COLUMN draftsman.job_states.cancel_requested_by IS 'the person who requested it';
COMMENT ON COLUMN draftsman.job_states.cancel_reason IS
    'the reason; of the system, the name and values of a sentence';
COMMENT ON COLUMN draftsman.job_states.pr_url IS 'the pull request that the agent opened';
COMMENT ON COLUMN draftsman.job_states.has_targets IS
    'whether it has notification targets; the outbox ignores other jobs';
COMMENT ON COLUMN draftsman.job_states.has_children IS
    'whether jobs wait for it; set by their submission';
COMMENT ON COLUMN draftsman.job_states.by_type IS
    'whether claims find it by its type, because other workers would pass it (`set_by_type`)';
COMMENT ON COLUMN draftsman.job_states.run_count IS 'the ordinal of its newest run; not a budget';
COMMENT ON COLUMN draftsman.job_states.claimed_at IS 'when a worker last claimed it';
COMMENT ON COLUMN draftsman.job_states.started_at IS 'when it first ran';
COMMENT ON COLUMN draftsman.job_states.claimed_from IS
    'while claimed: the state to return to if it is not started';
COMMENT ON COLUMN draftsman.job_states.status IS 'its state (docs/state-machine.md)';
COMMENT ON COLUMN draftsman.job_states.version IS
    'grows by 1 with each transition; the number of its status events';
COMMENT ON COLUMN draftsman.job_states.updated_at IS 'when its row last changed';
COMMENT ON COLUMN draftsman.job_states.lease_token IS
    'new with each claim: every write of a run proves it';
COMMENT ON COLUMN draftsman.job_states.worker_id IS 'its worker, while claimed or running';
COMMENT ON COLUMN draftsman.job_states.finished_at IS 'when it ended; set exactly in final states';
COMMENT ON COLUMN draftsman.job_states.result_token IS
    'when completed: the lease token of the run whose result it has, the completed run';
COMMENT ON COLUMN draftsman.job_states.result IS 'the result of the handler, when completed';

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

COMMENT ON TABLE draftsman.unique_keys IS
    'The common part of a request and those that repeat its job, if the request is to be unique.';
COMMENT ON COLUMN draftsman.unique_keys.job IS 'its job';
COMMENT ON COLUMN draftsman.unique_keys.key IS
    '`key TYPE KEY`, `subject SUBJECT`, or `args TYPE DIGEST`';
COMMENT ON COLUMN draftsman.unique_keys.replaces IS 'the job that it replaced before that started';
COMMENT ON COLUMN draftsman.unique_keys.debounce_until IS
    'when a debounced job starts in any case; inherited by the jobs that replace it';

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

COMMENT ON TABLE draftsman.job_runs IS
    'An execution of a job by a worker. A job has at most a single open run, exactly while it is '
    'running.';
COMMENT ON COLUMN draftsman.job_runs.job IS 'its job';
COMMENT ON COLUMN draftsman.job_runs.lease_token IS 'the lease token of its claim';
COMMENT ON COLUMN draftsman.job_runs.worker_id IS 'its worker';
COMMENT ON COLUMN draftsman.job_runs.started_at IS 'when it started';
COMMENT ON COLUMN draftsman.job_runs.heartbeat_at IS 'the last heartbeat of its worker';
COMMENT ON COLUMN draftsman.job_runs.ordinal IS 'counted from 1 within the job: `D-142.3`';
COMMENT ON COLUMN draftsman.job_runs.params_snapshot IS
    'the job''s overrides; of an agent or tool also what the run resolved: command, version, base '
    'commit, limits, skills, sandbox';
COMMENT ON COLUMN draftsman.job_runs.exit_code IS 'exit code of the agent or tool, 0 included';
COMMENT ON COLUMN draftsman.job_runs.error IS
    'its error; of a lost worker, the name of a sentence';
COMMENT ON COLUMN draftsman.job_runs.error_class IS 'the class of the error';
COMMENT ON COLUMN draftsman.job_runs.usage IS
    'tokens, cost and other amounts, as the handler reports them';
COMMENT ON COLUMN draftsman.job_runs.status IS 'open, or its outcome';
COMMENT ON COLUMN draftsman.job_runs.finished_at IS 'when it ended';
COMMENT ON COLUMN draftsman.job_runs.result IS
    'the result that it returned although the job had been canceled';

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
        owner = CASE WHEN key ~ '^(agent|sleep|now):' THEN 'worker' ELSE 'handler' END)
);

COMMENT ON TABLE draftsman.job_steps IS
    'An effect that must happen once, recorded before and after it.';
COMMENT ON COLUMN draftsman.job_steps.job IS 'its job';
COMMENT ON COLUMN draftsman.job_steps.key IS
    'the handler''s name for it; `agent:…`, `sleep:…` and `now:…` are reserved for the worker';
COMMENT ON COLUMN draftsman.job_steps.owner IS
    '`worker` for the worker''s own steps, `handler` for those of a handler or an agent';
COMMENT ON COLUMN draftsman.job_steps.status IS '`pending` before the effect, `done` after it';
COMMENT ON COLUMN draftsman.job_steps.invocation_id IS
    'the same for every attempt; identifies the effect in external systems';
COMMENT ON COLUMN draftsman.job_steps.run IS 'the run that last touched it';
COMMENT ON COLUMN draftsman.job_steps.result IS 'the result of the effect';
COMMENT ON COLUMN draftsman.job_steps.created_at IS 'when it was begun';
COMMENT ON COLUMN draftsman.job_steps.finished_at IS 'when it was done';

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

COMMENT ON TABLE draftsman.artifacts IS 'Files that runs stored, at most 25 MB each.';
COMMENT ON COLUMN draftsman.artifacts.id IS 'the id that its chunks refer to';
COMMENT ON COLUMN draftsman.artifacts.job IS 'its job';
COMMENT ON COLUMN draftsman.artifacts.run IS 'the run that stored it; 0: inherited by a retry';
COMMENT ON COLUMN draftsman.artifacts.name IS 'the same name in the same run replaces it';
COMMENT ON COLUMN draftsman.artifacts.kind IS
    '`report` or `file`; reserved for the worker: `patch`, `transcript`, `evidence`, and `bundle` '
    'for the work of a checkpoint';
COMMENT ON COLUMN draftsman.artifacts.size IS 'bytes';
COMMENT ON COLUMN draftsman.artifacts.sha256 IS 'SHA-256 of its bytes';
COMMENT ON COLUMN draftsman.artifacts.added IS
    'lines that a patch adds; NULL: not a patch, or one over 1 MiB';
COMMENT ON COLUMN draftsman.artifacts.removed IS 'lines that a patch removes';
COMMENT ON COLUMN draftsman.artifacts.created_at IS 'when it was written';

CREATE TABLE draftsman.artifact_chunks (
    artifact  bigint NOT NULL REFERENCES draftsman.artifacts ON DELETE CASCADE,
    seq       int NOT NULL,
    data      bytea NOT NULL,
    PRIMARY KEY (artifact, seq)
);

COMMENT ON TABLE draftsman.artifact_chunks IS 'Bytes of artifacts, in chunks of 1 MiB.';
COMMENT ON COLUMN draftsman.artifact_chunks.artifact IS 'its artifact';
COMMENT ON COLUMN draftsman.artifact_chunks.seq IS 'the order, from 0';
COMMENT ON COLUMN draftsman.artifact_chunks.data IS 'the bytes';

CREATE TABLE draftsman.job_checkpoints (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    job         bigint NOT NULL REFERENCES draftsman.job_requests,
    run         int NOT NULL,
    data        jsonb NOT NULL CHECK (octet_length(data::text) <= 8388608),
    bundle      bigint REFERENCES draftsman.artifacts,
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, id)
);

COMMENT ON TABLE draftsman.job_checkpoints IS
    'State that a handler saved, so that a later run on any host can continue. The latest five '
    'are kept.';
COMMENT ON COLUMN draftsman.job_checkpoints.id IS 'in the order of saving';
COMMENT ON COLUMN draftsman.job_checkpoints.job IS 'its job';
COMMENT ON COLUMN draftsman.job_checkpoints.run IS 'the run that saved it; 0: inherited by a retry';
COMMENT ON COLUMN draftsman.job_checkpoints.data IS 'data of the handler, at most 1 MiB';
COMMENT ON COLUMN draftsman.job_checkpoints.bundle IS
    'the artifact with the work in progress: a git bundle';
COMMENT ON COLUMN draftsman.job_checkpoints.created_at IS 'when it was saved';

CREATE TABLE draftsman.run_log_chunks (
    job         bigint NOT NULL,
    run         int NOT NULL,
    seq         int NOT NULL,
    text        text NOT NULL CHECK (octet_length(text) <= 262144),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, run, seq)
);

COMMENT ON TABLE draftsman.run_log_chunks IS 'Logs of runs, in chunks of at most 64 KB.';
COMMENT ON COLUMN draftsman.run_log_chunks.job IS 'its job';
COMMENT ON COLUMN draftsman.run_log_chunks.run IS 'its run';
COMMENT ON COLUMN draftsman.run_log_chunks.seq IS 'the order';
COMMENT ON COLUMN draftsman.run_log_chunks.text IS 'the lines';
COMMENT ON COLUMN draftsman.run_log_chunks.created_at IS 'when they were stored';

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

COMMENT ON TABLE draftsman.run_activity IS
    'Activity of agents: the newest rows of each job. A transcript has all rows of a run.';
COMMENT ON COLUMN draftsman.run_activity.job IS 'its job';
COMMENT ON COLUMN draftsman.run_activity.run IS 'its run';
COMMENT ON COLUMN draftsman.run_activity.seq IS 'the order within the run, from 1';
COMMENT ON COLUMN draftsman.run_activity.kind IS
    '`message`, `thought`, `tool`, `file`, `plan`, `usage`, or `note` of the worker';
COMMENT ON COLUMN draftsman.run_activity.state IS
    'of a call: `pending`, `running`, `completed` or `failed`; of a file: `created`, `changed` or '
    '`deleted`';
COMMENT ON COLUMN draftsman.run_activity.key IS
    'the call or the file; a later row with the same key is its newer state';
COMMENT ON COLUMN draftsman.run_activity.text IS
    'the text of a message, the title of a call, the path of a file';
COMMENT ON COLUMN draftsman.run_activity.detail IS
    'the kind of a tool, the steps of a plan, or the usage of the run so far';
COMMENT ON COLUMN draftsman.run_activity.continues IS
    'whether the text goes on with that of the row before it';
COMMENT ON COLUMN draftsman.run_activity.created_at IS 'when it was stored';

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

COMMENT ON TABLE draftsman.job_quotas IS 'Usage of the quotas of a job (docs/agent-protocol.md).';
COMMENT ON COLUMN draftsman.job_quotas.job IS 'its job';
COMMENT ON COLUMN draftsman.job_quotas.quota IS
    '`events`, `steps`, `artifacts`, `checkpoints`, `questions` or `log`';
COMMENT ON COLUMN draftsman.job_quotas.count IS 'number of items';
COMMENT ON COLUMN draftsman.job_quotas.bytes IS 'their bytes';

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

COMMENT ON TABLE draftsman.job_pauses IS
    'The pause of a job: workers do not claim it, and park it if it runs. Removed at its end, or '
    'after the job has ended.';
COMMENT ON COLUMN draftsman.job_pauses.job IS 'its job';
COMMENT ON COLUMN draftsman.job_pauses.reason IS 'the reason, which `why` shows';
COMMENT ON COLUMN draftsman.job_pauses.paused_by IS 'the person who paused it';
COMMENT ON COLUMN draftsman.job_pauses.paused_at IS 'since when';

-- A failure is open until it is retried or a person dismisses it: the row is written with the
-- transition, and removed with the retry, which stands for it from then on, or with its dismissal.
-- Lists and counts read this table, and so cost the failures that are open, not all that ever were.
-- Jobs that were denied by an approver are not among them: a person has decided about these.
CREATE TABLE draftsman.open_failures (
    job     bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    status  draftsman.job_status NOT NULL CHECK (status IN ('failed', 'dead_letter'))
);

COMMENT ON TABLE draftsman.open_failures IS
    'Failed jobs and dead letters that wait for a person: neither retried nor dismissed.';
COMMENT ON COLUMN draftsman.open_failures.job IS 'the failed job; of a chain of retries, its newest';
COMMENT ON COLUMN draftsman.open_failures.status IS 'the status in which it ended';

CREATE TABLE draftsman.dismissals (
    job           bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    reason        text CHECK (reason <> ''),
    dismissed_by  text NOT NULL CHECK (dismissed_by <> ''),
    dismissed_at  timestamptz NOT NULL DEFAULT draftsman.now()
);

COMMENT ON TABLE draftsman.dismissals IS
    'Failures that a person took out of attention. The row is removed if the person takes it back.';
COMMENT ON COLUMN draftsman.dismissals.job IS 'the failed job';
COMMENT ON COLUMN draftsman.dismissals.reason IS 'the reason, if one was given';
COMMENT ON COLUMN draftsman.dismissals.dismissed_by IS 'the person who dismissed it';
COMMENT ON COLUMN draftsman.dismissals.dismissed_at IS 'when';

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

COMMENT ON TABLE draftsman.postponed_work IS
    'Consequences of a change of a job, left to a later transaction: because another transaction '
    'holds a lock that they need, because they are too many for a statement, or until the commit '
    'of a caller''s transaction. The leader does what is due.';
COMMENT ON COLUMN draftsman.postponed_work.id IS 'the order in which it was left';
COMMENT ON COLUMN draftsman.postponed_work.bucket IS
    'a bucket whose places have changed, or whose waiting jobs ask for places';
COMMENT ON COLUMN draftsman.postponed_work.change IS
    'the change of the places that are taken in the bucket; the count of a bucket is its row with '
    'these changes';
COMMENT ON COLUMN draftsman.postponed_work.key IS 'a concurrency key that may be free';
COMMENT ON COLUMN draftsman.postponed_work.ended IS
    'a job whose end has yet to release or cancel its children and the jobs of its group, or to '
    'end its reservation';
COMMENT ON COLUMN draftsman.postponed_work.jobs IS 'new jobs whose positions have yet to be set';
COMMENT ON COLUMN draftsman.postponed_work.txid IS
    'the transaction that left it, whose commit does it if it is that of a caller';
COMMENT ON COLUMN draftsman.postponed_work.due_at IS
    'when the leader does it; a second later if a lock is still held';

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

COMMENT ON TABLE draftsman.job_messages IS
    'A message of a person to a job, for its agent. It is given to a running agent or to the next '
    'run, and again until it is delivered.';
COMMENT ON COLUMN draftsman.job_messages.job IS 'its job';
COMMENT ON COLUMN draftsman.job_messages.ordinal IS 'counted from 1 within the job';
COMMENT ON COLUMN draftsman.job_messages.source IS 'the channel that it came from';
COMMENT ON COLUMN draftsman.job_messages.source_event_id IS
    'the id of the message in that channel: each event is a single message; `retry:…` for a copy, '
    '`review:…` for a request for changes';
COMMENT ON COLUMN draftsman.job_messages.sender_id IS 'the id of the sender in the channel';
COMMENT ON COLUMN draftsman.job_messages.sender_display_name IS
    'the name of the sender in the channel';
COMMENT ON COLUMN draftsman.job_messages.sender IS 'the person, or `channel:id` if unknown';
COMMENT ON COLUMN draftsman.job_messages.text IS 'the text, at most 10,000 characters';
COMMENT ON COLUMN draftsman.job_messages.run IS 'the run whose agent was last given it';
COMMENT ON COLUMN draftsman.job_messages.created_at IS 'when it was sent';
COMMENT ON COLUMN draftsman.job_messages.delivered_at IS
    'when the run stored a checkpoint that has it, or ended its job with it; NULL: not delivered';

-- A file that a person sent with a request or a message. The bot of its channel downloads it by
-- `reference`, which has no secret; until then it is pending. It is stored once, or refused with a
-- reason. A retry has the attachments of its job.
CREATE TABLE draftsman.attachments (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel        draftsman.channel NOT NULL REFERENCES draftsman.channels,
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

COMMENT ON TABLE draftsman.attachments IS
    'A file that a person sent with a request or a message. The bot of its channel downloads it; '
    'it is stored or refused once.';
COMMENT ON COLUMN draftsman.attachments.id IS 'number of the file';
COMMENT ON COLUMN draftsman.attachments.channel IS 'the channel that has it';
COMMENT ON COLUMN draftsman.attachments.reference IS
    'how the bot finds it in its channel; without secrets';
COMMENT ON COLUMN draftsman.attachments.name IS 'a safe file name';
COMMENT ON COLUMN draftsman.attachments.media_type IS 'as its channel says; not to be trusted';
COMMENT ON COLUMN draftsman.attachments.status IS '`pending`, `stored` or `refused`';
COMMENT ON COLUMN draftsman.attachments.reason IS 'why it was refused';
COMMENT ON COLUMN draftsman.attachments.size IS 'bytes, at most 10 MiB';
COMMENT ON COLUMN draftsman.attachments.sha256 IS 'SHA-256 of the bytes';
COMMENT ON COLUMN draftsman.attachments.attempts IS
    'claims for its download; the last of five refuses it';
COMMENT ON COLUMN draftsman.attachments.claimed_until IS 'until when a process downloads it';
COMMENT ON COLUMN draftsman.attachments.created_at IS 'when it was sent';
COMMENT ON COLUMN draftsman.attachments.ended_at IS 'when it was stored or refused';

CREATE INDEX attachments_pending ON draftsman.attachments (channel, id) WHERE status = 'pending';

CREATE TABLE draftsman.attachment_contents (
    attachment  bigint PRIMARY KEY REFERENCES draftsman.attachments,
    data        bytea NOT NULL CHECK (octet_length(data) <= 10485760)
);

COMMENT ON TABLE draftsman.attachment_contents IS 'The bytes of stored attachments.';
COMMENT ON COLUMN draftsman.attachment_contents.attachment IS 'the file';
COMMENT ON COLUMN draftsman.attachment_contents.data IS 'its bytes';

CREATE TABLE draftsman.job_attachments (
    job         bigint NOT NULL REFERENCES draftsman.job_requests,
    ordinal     int NOT NULL CHECK (ordinal BETWEEN 1 AND 20),
    attachment  bigint NOT NULL REFERENCES draftsman.attachments,
    message     int CHECK (message > 0),
    PRIMARY KEY (job, ordinal),
    UNIQUE (attachment, job)
);

COMMENT ON TABLE draftsman.job_attachments IS
    'The attachments of a job. A retry and a follow-up have those of their job.';
COMMENT ON COLUMN draftsman.job_attachments.job IS 'the job';
COMMENT ON COLUMN draftsman.job_attachments.ordinal IS 'counted from 1 within the job';
COMMENT ON COLUMN draftsman.job_attachments.attachment IS 'the file';
COMMENT ON COLUMN draftsman.job_attachments.message IS
    'the message to the job that it came with; NULL: the request';
