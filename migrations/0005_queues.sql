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

-- The types of queues that have jobs, but no worker that handles them now, as the leader found
-- them. The claim does not read it: a worker claims the jobs of its own types. It keeps places of
-- limits for the jobs that a worker can run (admit).
CREATE TABLE draftsman.unhandled_types (
    queue  text NOT NULL CHECK (queue <> ''),
    type   text NOT NULL CHECK (type <> ''),
    since  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (queue, type)
);

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
