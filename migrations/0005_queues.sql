-- Queues: their pauses, the history of changes, and reservations: a queue whose only job that may
-- be claimed is the reserving job.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0005_queues') AS applied \gset
\if :applied \echo '0005_queues is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0005_queues');

-- A pause of a queue (`type` is NULL), or of a type in a queue. The claim reads this table once, so
-- a pause takes effect with its own commit and writes no job. A job that is submitted, promoted or
-- resumed meanwhile needs no check either.
CREATE TABLE draftsman.queue_pauses (
    queue      text NOT NULL CHECK (queue <> ''),
    type       text CHECK (type <> ''),
    reason     text NOT NULL CHECK (reason <> ''),
    paused_by  text NOT NULL,
    paused_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    CONSTRAINT queue_pauses_unique UNIQUE NULLS NOT DISTINCT (queue, type)
);

COMMENT ON TABLE draftsman.queue_pauses IS
    'The paused queues and types, which the claim leaves out. Written by `draftsman queues pause` '
    'and `resume`.';
COMMENT ON COLUMN draftsman.queue_pauses.queue IS 'the queue';
COMMENT ON COLUMN draftsman.queue_pauses.type IS 'the paused type in it; NULL: the whole queue';
COMMENT ON COLUMN draftsman.queue_pauses.reason IS
    'the reason, which `draftsman why` shows for each held job';
COMMENT ON COLUMN draftsman.queue_pauses.paused_by IS 'the operator who paused it';
COMMENT ON COLUMN draftsman.queue_pauses.paused_at IS 'when it was paused';

-- The types of queues that have jobs, but no worker that handles them now, as the leader found
-- them. The claim does not read it: a worker claims the jobs of its own types. It keeps places of
-- limits for the jobs that a worker can run (admit).
CREATE TABLE draftsman.unhandled_types (
    queue  text NOT NULL CHECK (queue <> ''),
    type   text NOT NULL CHECK (type <> ''),
    since  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (queue, type)
);

COMMENT ON TABLE draftsman.unhandled_types IS
    'The types of queues that have jobs, but no live worker that handles them. Written by the '
    'leader; places of limits are not given to these jobs.';
COMMENT ON COLUMN draftsman.unhandled_types.queue IS 'the queue';
COMMENT ON COLUMN draftsman.unhandled_types.type IS 'the type';
COMMENT ON COLUMN draftsman.unhandled_types.since IS 'since when a job of it has waited';

-- The history of pauses and reservations.
CREATE TABLE draftsman.queue_changes (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue       text NOT NULL,
    type        text,
    action      text NOT NULL CHECK (action IN ('pause', 'resume', 'reserve', 'release')),
    actor       text NOT NULL,
    reason      text,
    created_at  timestamptz NOT NULL DEFAULT draftsman.now()
);

COMMENT ON TABLE draftsman.queue_changes IS
    'Who paused, resumed, reserved and released queues and types. Append-only.';
COMMENT ON COLUMN draftsman.queue_changes.id IS 'the order of the changes';
COMMENT ON COLUMN draftsman.queue_changes.queue IS 'the queue';
COMMENT ON COLUMN draftsman.queue_changes.type IS 'the type in it; NULL: the whole queue';
COMMENT ON COLUMN draftsman.queue_changes.action IS '`pause`, `resume`, `reserve` or `release`';
COMMENT ON COLUMN draftsman.queue_changes.actor IS 'the operator';
COMMENT ON COLUMN draftsman.queue_changes.reason IS 'the reason of a pause, or the reserving job';
COMMENT ON COLUMN draftsman.queue_changes.created_at IS 'when it was done';

-- The reservation of a queue for a job. The claim reads this table once, as it reads the pauses,
-- and takes no other job of the queue until the row is gone or has expired. The row is written with
-- the request of the job; the heartbeat of its run renews it, and an expired row is never renewed.
CREATE TABLE draftsman.queue_reservations (
    queue        text PRIMARY KEY CHECK (queue <> ''),
    job          bigint NOT NULL UNIQUE REFERENCES draftsman.job_requests,
    actor        text NOT NULL CHECK (actor <> ''),
    seconds      float8 NOT NULL CHECK (seconds BETWEEN 60 AND 86400),
    reserved_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    expires_at   timestamptz NOT NULL,
    CHECK (expires_at > reserved_at)
);

COMMENT ON TABLE draftsman.queue_reservations IS
    'The reserved queues, of which the claim takes the reserving job alone. Written by `draftsman '
    'run --now`.';
COMMENT ON COLUMN draftsman.queue_reservations.queue IS 'the queue';
COMMENT ON COLUMN draftsman.queue_reservations.job IS 'the reserving job';
COMMENT ON COLUMN draftsman.queue_reservations.actor IS 'the operator who submitted it';
COMMENT ON COLUMN draftsman.queue_reservations.seconds IS
    'time from a heartbeat of its run to the expiry';
COMMENT ON COLUMN draftsman.queue_reservations.reserved_at IS 'when it was reserved';
COMMENT ON COLUMN draftsman.queue_reservations.expires_at IS
    'when it ends, unless the start or a heartbeat of the job renews it';
