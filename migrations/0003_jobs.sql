-- Jobs, their runs, steps, checkpoints, artifacts and logs; workers and leases.

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
-- In the reverse order in which a job passes them; from `key` on, it does not hold its concurrency key.
CREATE TYPE draftsman.job_hold AS ENUM ('paused', 'limit', 'key', 'parents');
-- In the order in which a suspect passes them; a lost trial makes it convicted, or waiting again.
CREATE TYPE draftsman.suspect_status AS ENUM ('noted', 'waiting', 'trial', 'acquitted', 'convicted');
CREATE TYPE draftsman.step_status AS ENUM ('pending', 'done');

-- Gaps of 100 leave room to move a job between two others with a single write.
CREATE SEQUENCE draftsman.job_positions INCREMENT BY 100 START WITH 100;
CREATE SEQUENCE draftsman.lease_tokens;

-- Jobs ----------------------------------------------------------------------------------------

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

-- Whether a held state violates the rule of its hold. PL/pgSQL is not inlined; see transition_kind().
CREATE FUNCTION draftsman.violates_hold(hold draftsman.job_hold, held_by text,
    status draftsman.job_status, run_count int, concurrency_key text, limits text[])
RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE hold
        WHEN 'parents' THEN run_count > 0 OR status NOT IN ('queued', 'scheduled')
        WHEN 'key' THEN concurrency_key IS NULL OR status NOT IN ('scheduled', 'queued', 'resumed',
             'waiting_for_input', 'waiting_for_approval')
        ELSE status NOT IN ('queued', 'resumed') OR CASE hold
             WHEN 'limit' THEN held_by IS NULL OR coalesce(limits, '{}') = '{}'
             ELSE concurrency_key IS NOT NULL OR limits <> '{}' END END;
END $$;

-- The name of the rule that a state violates. A CHECK constraint is parsed again for each statement, a
-- third of the fixed cost of a claim; these rules are in plans of triggers, which a session keeps.
CREATE FUNCTION draftsman.violated_rule(s draftsman.job_states) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN CASE
    WHEN NOT (s.attempts BETWEEN 0 AND s.max_attempts AND s.max_attempts BETWEEN 1 AND 100)
        THEN 'job_states_attempts'
    WHEN NOT ((s.cancel_requested_at IS NULL) = (s.cancel_requested_by IS NULL))
        THEN 'job_states_cancel'
    WHEN NOT ((s.claimed_from IS NOT NULL) = (s.status = 'claimed'))
        THEN 'job_states_claimed_from'
    WHEN NOT (s.claimed_from IN ('queued', 'resumed')) THEN 'job_states_claimed_from_check'
    WHEN NOT (s.status NOT IN ('failed', 'dead_letter') OR s.last_error IS NOT NULL)
        THEN 'job_states_error'
    WHEN NOT ((s.finished_at IS NOT NULL)
              = (s.status IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired')))
        THEN 'job_states_finished'
    WHEN s.held_by IS NOT NULL AND s.hold IS DISTINCT FROM 'limit' THEN 'job_states_held_by'
    WHEN s.hold IS NOT NULL AND draftsman.violates_hold(
         s.hold, s.held_by, s.status, s.run_count, s.concurrency_key, s.limits)
        THEN 'job_states_hold'
    WHEN NOT ((s.lease_token IS NOT NULL) = (s.status IN ('claimed', 'running')))
        THEN 'job_states_lease'
    WHEN NOT (s.queue <> '') THEN 'job_states_queue_check'
    WHEN NOT ((s.result_token IS NOT NULL) = (s.status = 'completed'))
        THEN 'job_states_result_token'
    WHEN NOT (s.retry_count BETWEEN 0 AND s.max_retries AND s.max_retries <= 100)
        THEN 'job_states_retries'
    WHEN NOT ((s.next_retry_at IS NOT NULL) = (s.status = 'retrying'))
        THEN 'job_states_retry_time'
    WHEN NOT (s.run_count >= 0) THEN 'job_states_run_count_check'
    WHEN NOT (s.status <> 'scheduled' OR s.run_at IS NOT NULL) THEN 'job_states_run_time'
    WHEN NOT ((s.worker_id IS NOT NULL) = (s.status IN ('claimed', 'running')))
        THEN 'job_states_worker'
END;

-- The error of a CHECK constraint. STRICT: a state that violates no rule costs no call.
CREATE FUNCTION draftsman.refuse_state(job bigint, rule text) RETURNS boolean
LANGUAGE plpgsql STRICT AS $$
BEGIN
    RAISE EXCEPTION 'new row for relation "job_states" violates check constraint "%"', rule
        USING ERRCODE = 'check_violation', SCHEMA = 'draftsman', TABLE = 'job_states',
            CONSTRAINT = rule, DETAIL = format('The row is the state of D-%s.', job);
END $$;

CREATE FUNCTION draftsman.refuse_inconsistency(job bigint, rule text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'D-%: %', job, rule USING ERRCODE = 'DM003';
END $$;

-- The name of the rule that a request violates; see violated_rule().
CREATE FUNCTION draftsman.violated_request_rule(r draftsman.job_requests) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN CASE
    WHEN NOT (r.chain_length BETWEEN 0 AND 1000) THEN 'job_requests_chain_length_check'
    WHEN NOT (r.idempotency_key <> '') THEN 'job_requests_idempotency_key_check'
    WHEN NOT ((r.template IS NULL) = (r.template_version IS NULL)) THEN 'job_requests_template'
    WHEN NOT (r.type <> '') THEN 'job_requests_type_check'
END;

-- Whether a request and its state are those of a new job.
CREATE FUNCTION draftsman.is_new_job(r draftsman.job_requests, s draftsman.job_states)
RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE RETURN
    draftsman.violated_request_rule(r) IS NULL AND s.type = r.type AND s.status IN ('scheduled', 'queued') AND s.version = 1 AND s.run_count = 0
    AND s.attempts = 0 AND s.retry_count = 0 AND s.cancel_requested_at IS NULL
    AND (NOT starts_with(r.idempotency_key, 'auto:') OR r.idempotency_key = 'auto:' || r.id);

CREATE FUNCTION draftsman.refuse_creation(
    r draftsman.job_requests, s draftsman.job_states
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    rule text := draftsman.violated_request_rule(r);
BEGIN
    IF rule IS NOT NULL THEN
        RAISE EXCEPTION 'new row for relation "job_requests" violates check constraint "%"', rule
            USING ERRCODE = 'check_violation', SCHEMA = 'draftsman', TABLE = 'job_requests',
                CONSTRAINT = rule, DETAIL = format('The row is the request of D-%s.', r.number);
    END IF;
    RAISE EXCEPTION '%', CASE
        WHEN s.number IS NULL THEN format('the request %s has no state', r.number)
        WHEN s.type <> r.type THEN
            format('D-%s: the state has type %s, not %s', r.number, s.type, r.type)
        WHEN starts_with(r.idempotency_key, 'auto:')
             AND r.idempotency_key <> 'auto:' || r.id THEN
            'a key that begins with auto: must continue with the id of the job, not '
            || r.idempotency_key
        WHEN r.retry_of IS NOT NULL AND NOT EXISTS (
             SELECT FROM draftsman.job_requests WHERE number = r.retry_of) THEN
            format('D-%s: there is no job D-%s to retry', r.number, r.retry_of)
        WHEN r.template_version IS NOT NULL AND NOT draftsman.is_template(r.template, r.template_version)
        THEN format('D-%s: there is no template %s@%s', r.number, r.template, r.template_version)
        ELSE 'a new job must be queued or scheduled, not started, with version 1; not '
            || s.status END USING ERRCODE = 'DM001';
END $$;

-- Each further index costs about 190 B of WAL a job. PostgreSQL prepares the condition of a partial
-- index again for each statement; IS NULL costs least. The partial indexes hold only the rows that
-- need them: an ordinary job has no due time and no subject, and a generated key is `auto:` and
-- the id of the job, which has an index of its own.
--   job_requests_pkey   the request of a job; the newest jobs
--   job_requests_id     a job by its id, or by a prefix of it
--   job_requests_key    submission: a single job for a type and a given idempotency key
--   job_states_pkey     the state of a job
--   job_states_claim    the claim, in queue order
--   job_states_by_type  the claim, in the order of each type, where many jobs are of types of other workers
--   job_states_held     jobs that are left out of the claim: by reason and concurrency key, in queue order
--   job_states_limited  jobs that wait for a place in a bucket of a limit, in queue order
--   job_states_key      a single job that holds a concurrency key, from its claim or before to its end
--   job_states_status   lists and counts by status
--   job_states_due      jobs that are due; the earliest due time for the leader's timer
--   job_states_subject  a single live job for a subject
CREATE UNIQUE INDEX job_requests_id ON draftsman.job_requests (id) WITH (fillfactor = 50);
CREATE UNIQUE INDEX job_requests_key ON draftsman.job_requests (type, idempotency_key) WITH (fillfactor = 50)
    WHERE NOT starts_with(idempotency_key, 'auto:');
CREATE INDEX job_states_claim ON draftsman.job_states (queue, priority DESC, position, number)
    WHERE status IN ('queued', 'resumed') AND hold IS NULL AND NOT by_type;
CREATE INDEX job_states_by_type ON draftsman.job_states (queue, type, priority DESC, position, number)
    WHERE by_type AND status IN ('queued', 'resumed') AND hold IS NULL;
CREATE INDEX job_states_held ON draftsman.job_states (hold, concurrency_key, priority DESC, position, number)
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

-- The jobs as they are read: the request of each with its state.
CREATE VIEW draftsman.jobs AS
    SELECT number, r.id, r.type, r.idempotency_key, r.request_digest, s.queue, s.priority, s.position,
           s.subject_key, s.concurrency_key, s.hold, s.limits, s.held_by, s.status, s.claimed_from, r.mode,
           r.source, r.source_type, r.external_event_id, r.invoker_id, r.invoker_display_name, r.repo_host,
           r.repo_owner, r.repo_name, r.ticket_url, r.ticket_title, r.ticket_text, r.payload, r.overrides,
           r.requested_skills, r.tags, r.agent, r.retry_of, r.chain_length, r.template, r.template_version,
           s.run_at, s.run_count, s.attempts, s.max_attempts, s.retry_count, s.max_retries, s.next_retry_at,
           s.last_error, s.error_class, s.on_lost, s.worker_id, s.lease_token, s.cancel_requested_at,
           s.cancel_requested_by, s.cancel_reason, s.pr_url, s.result, s.has_targets, s.version, r.created_at,
           s.queued_at, s.claimed_at, s.started_at, s.finished_at, s.updated_at
      FROM draftsman.job_states s
      JOIN draftsman.job_requests r USING (number);

-- Runs ----------------------------------------------------------------------------------------

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

-- Usage of the quotas of a job. A row is created with the first use.
CREATE TABLE draftsman.job_quotas (
    job    bigint NOT NULL REFERENCES draftsman.job_requests,
    quota  text NOT NULL CHECK (quota IN ('events', 'steps', 'artifacts', 'checkpoints',
                                          'questions', 'log')),
    count  bigint NOT NULL CHECK (count >= 0),
    bytes  bigint NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (job, quota)
) WITH (fillfactor = 70);

-- Workers -------------------------------------------------------------------------------------

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
    targets        text[] NOT NULL DEFAULT '{}',
    slots          int NOT NULL CHECK (slots > 0),
    draining       boolean NOT NULL DEFAULT false,
    started_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    heartbeat_at   timestamptz NOT NULL DEFAULT draftsman.now(),
    unlocked_at    timestamptz
);

-- Jobs that were lost together with other jobs of their worker, which any of them may have ended. After the
-- first such loss, which a person or the machine may have caused, a job runs again as usual (`noted`).
-- Jobs that are lost so again run one at a time (`try_suspects`), and spend no attempt unless one ends a
-- worker during its trial.
CREATE TABLE draftsman.suspects (
    job        bigint PRIMARY KEY REFERENCES draftsman.job_requests,
    crash      uuid NOT NULL,
    worker_id  uuid NOT NULL,
    run        int NOT NULL,
    seconds    double precision NOT NULL CHECK (seconds > 0),
    losses     int NOT NULL CHECK (losses > 0),
    status     draftsman.suspect_status NOT NULL
);

-- suspects_crash   the job of a crash that is on trial, for the explanation of one that waits
-- suspects_worker  the jobs that a lost worker had run, for the verdict on the others
CREATE INDEX suspects_crash ON draftsman.suspects (crash);
CREATE INDEX suspects_worker ON draftsman.suspects (worker_id);

-- What the loss of a run means, given the status of its job as a suspect, the number of runs that its
-- worker lost, and of those among them that are on trial or convicted. `charged`: it was alone.
CREATE FUNCTION draftsman.verdict(suspect draftsman.suspect_status, lost bigint, tried bigint)
RETURNS text LANGUAGE sql IMMUTABLE RETURN CASE
    WHEN tried = 1 AND suspect IN ('trial', 'convicted') THEN 'convicted'
    WHEN tried > 0 AND coalesce(suspect IN ('trial', 'convicted'), false) THEN 'waiting'
    WHEN tried > 0 THEN 'innocent'
    WHEN lost > 1 AND suspect IS NULL THEN 'noted'
    WHEN lost > 1 THEN 'waiting'
    ELSE 'charged' END;

-- Ends the trials of suspects that survived, releases those whose worker was ended by a convicted job, and
-- begins the next trial of each crash; returns the number of changes. A suspect survives if its run
-- ends in any other way, or lives for longer than the lost run did: at most for five minutes after the
-- first loss, and for twice as long after each further loss. Only `these` jobs (NULL: all), and not
-- those `without`: another job of their crash is tried instead. A suspect changes with the lock of its
-- job; those whose jobs another transaction has locked are left for the next call.
CREATE FUNCTION draftsman.try_suspects(these bigint[], without bigint[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    selected bigint[] := ARRAY(
        SELECT j.number
          FROM draftsman.suspects s
          JOIN draftsman.job_states j ON j.number = s.job
         WHERE ($1 IS NULL OR s.job = ANY ($1)) AND s.job <> ALL ($2)
         ORDER BY j.number
           FOR NO KEY UPDATE OF j SKIP LOCKED);
    ended    int;
    survived int;
    freed    bigint[];
    next     bigint[];
BEGIN
    DELETE FROM draftsman.suspects s USING draftsman.job_states j
     WHERE s.job = ANY (selected) AND j.number = s.job
       AND (j.finished_at IS NOT NULL
            OR j.status IN ('waiting_for_input', 'waiting_for_approval', 'scheduled')
            OR (j.run_count > s.run AND j.status IN ('retrying', 'queued', 'resumed')));
    GET DIAGNOSTICS ended = ROW_COUNT;
    UPDATE draftsman.suspects s SET status = 'acquitted'
      FROM draftsman.job_runs r
     WHERE s.job = ANY (selected) AND s.status = 'trial'
       AND r.job = s.job AND r.ordinal > s.run AND r.status = 'running'
       AND r.started_at < draftsman.now() - make_interval(secs => s.seconds);
    GET DIAGNOSTICS survived = ROW_COUNT;
    freed := ARRAY(SELECT s.job FROM draftsman.suspects s
                    WHERE s.job = ANY (selected) AND s.status = 'waiting' AND EXISTS (
                          SELECT FROM draftsman.suspects c
                           WHERE c.crash = s.crash AND c.status = 'convicted'));
    UPDATE draftsman.suspects SET status = 'acquitted' WHERE job = ANY (freed);
    next := ARRAY(SELECT min(s.job) FROM draftsman.suspects s
                   WHERE s.job = ANY (selected) AND s.status = 'waiting' AND NOT EXISTS (
                         SELECT FROM draftsman.suspects t
                          WHERE t.crash = s.crash AND t.status = 'trial')
                   GROUP BY s.crash);
    UPDATE draftsman.suspects SET status = 'trial' WHERE job = ANY (next);
    UPDATE draftsman.job_states SET next_retry_at = draftsman.now(), updated_at = draftsman.now()
     WHERE number = ANY (freed || next) AND status = 'retrying';
    RETURN ended + survived + cardinality(freed) + cardinality(next);
END $$;

-- Whether a session holds the session lock with this number: its process can reach the database.
-- 1146242644 is "DRFT" in ASCII.
CREATE FUNCTION draftsman.is_connected(lock_id int) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_locks l
         WHERE l.locktype = 'advisory' AND l.classid = 1146242644 AND l.objid = $1::oid
           AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d
                              WHERE d.datname = pg_catalog.current_database()))
$$;

CREATE TABLE draftsman.leases (
    name        text PRIMARY KEY,
    owner       uuid NOT NULL,
    lock_id     int,
    term        bigint NOT NULL CHECK (term > 0),
    expires_at  timestamptz NOT NULL
);

-- A bot may hold the leases of the pollers of Trello and of forges, and no other.
CREATE FUNCTION draftsman.check_lease() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() = 'bot' AND (NEW.name NOT IN ('trello', 'forges')
                                             OR OLD.name NOT IN ('trello', 'forges')) THEN
        PERFORM draftsman.deny_access(format('a bot cannot hold the lease %s',
            CASE WHEN NEW.name NOT IN ('trello', 'forges') THEN NEW.name ELSE OLD.name END));
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER leases_session BEFORE INSERT OR UPDATE ON draftsman.leases FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_lease();
