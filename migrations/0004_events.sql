-- Events: append-only, partitioned by month, with a cursor that never skips a late commit; and the
-- archives of past months.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0004_events') AS applied \gset
\if :applied \echo '0004_events is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0004_events');

-- The epoch of the event cursor. A restored dump starts a new epoch: its transaction ids cannot be
-- compared with those of the server that it was taken from.
CREATE TABLE draftsman.event_epoch (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    epoch  int NOT NULL
);

COMMENT ON TABLE draftsman.event_epoch IS 'A single row: the epoch of new events.';
COMMENT ON COLUMN draftsman.event_epoch.single IS 'limits the table to a single row';
COMMENT ON COLUMN draftsman.event_epoch.epoch IS 'raised by `draftsman migrate --restored`';

INSERT INTO draftsman.event_epoch (epoch) VALUES (1);

-- The epoch of new events is a constant of the table rather than a query for each event.
--
-- The events of a statement that differ only in their job are one row, with the jobs in an array,
-- which saves most of the WAL of events and their indexes. Such jobs are of one block: their numbers
-- differ in the last seven bits only, and `job` has the first number of the block, by which the
-- events of a job are found. A claim that also starts its jobs writes one row, from `queued` or
-- `resumed` to `running`, for two events of each job. The views `events` and `event_stream` show
-- single events. The id of an event is that of its row, plus twice the place of its job in the
-- block; the odd number before it is that of `job_claimed`. Fixed widths come first, so that no byte
-- is spent on alignment.
CREATE SEQUENCE draftsman.job_event_ids INCREMENT BY 256 START WITH 256;

CREATE TABLE draftsman.job_events (
    job          bigint NOT NULL,
    id           bigint NOT NULL DEFAULT nextval('draftsman.job_event_ids'),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    txid         xid8 NOT NULL DEFAULT pg_current_xact_id(),
    epoch        int NOT NULL DEFAULT 1,
    run          int,
    from_status  draftsman.job_status,
    to_status    draftsman.job_status,
    kind         text NOT NULL,
    actor        text NOT NULL,
    payload      jsonb NOT NULL DEFAULT '{}' CHECK (pg_column_size(payload) <= 65536),
    jobs         bigint[]
) PARTITION BY RANGE (created_at);

COMMENT ON TABLE draftsman.job_events IS
    'Rows of events: of every transition and every other change. The events of a statement that '
    'differ only in their job are one row, and so are both transitions of a claim that starts its '
    'job. The views `events` and `event_stream` have single events. Append-only, partitioned by '
    'month.';
COMMENT ON COLUMN draftsman.job_events.job IS
    'its job; of several jobs the first number of their block of 128';
COMMENT ON COLUMN draftsman.job_events.id IS
    'the order within a job; the numbers up to the next multiple of 256 are for the events of the '
    'row';
COMMENT ON COLUMN draftsman.job_events.created_at IS 'the wall-clock time';
COMMENT ON COLUMN draftsman.job_events.txid IS
    'transaction id; epoch, txid and id order the stream of all events, so that a reader misses '
    'none';
COMMENT ON COLUMN draftsman.job_events.epoch IS
    'grows when a dump is restored, because transaction ids start again';
COMMENT ON COLUMN draftsman.job_events.run IS 'its run, if any';
COMMENT ON COLUMN draftsman.job_events.from_status IS 'for a transition: the old state';
COMMENT ON COLUMN draftsman.job_events.to_status IS
    'for a transition, and for the creation: the new state';
COMMENT ON COLUMN draftsman.job_events.kind IS 'the kind of the event';
COMMENT ON COLUMN draftsman.job_events.actor IS
    'the actor: `channel:id`, `worker:…`, `system`, or the database role of a psql session';
COMMENT ON COLUMN draftsman.job_events.payload IS 'details, at most 10 KB';
COMMENT ON COLUMN draftsman.job_events.jobs IS
    'the jobs of an event of several jobs; NULL: a single job';

CREATE INDEX job_events_job ON draftsman.job_events (job, id);
CREATE INDEX job_events_cursor ON draftsman.job_events (epoch, txid, id);
-- Searches by kind. A job that only runs and completes has no entry here.
CREATE INDEX job_events_kind ON draftsman.job_events (kind, epoch, txid, id)
    WHERE kind NOT IN ('job_created', 'job_claimed', 'job_started', 'job_completed');

-- Events of a month without a partition of its own; see make_event_partition().
CREATE TABLE draftsman.job_events_default PARTITION OF draftsman.job_events DEFAULT;
ALTER INDEX draftsman.job_events_default_job_id_idx SET (fillfactor = 24);

ALTER TABLE draftsman.job_events ENABLE ROW LEVEL SECURITY;

-- Archives ----------------------------------------------------------------------------------------

-- Events leave the database only when the partition of a month is dropped after its events were
-- archived. No event is ever deleted.
CREATE TABLE draftsman.event_archives (
    month        date PRIMARY KEY CHECK (extract(day FROM month) = 1),
    events       bigint NOT NULL CHECK (events >= 0),
    sha256       text NOT NULL,
    host         text NOT NULL,
    path         text NOT NULL,
    last_epoch   int,
    last_txid    xid8,
    last_id      bigint,
    archived_at  timestamptz NOT NULL DEFAULT draftsman.now()
);

COMMENT ON TABLE draftsman.event_archives IS
    'Months of events that were archived (docs/operations.md).';
COMMENT ON COLUMN draftsman.event_archives.month IS 'the first day of the month';
COMMENT ON COLUMN draftsman.event_archives.events IS 'the number of events';
COMMENT ON COLUMN draftsman.event_archives.sha256 IS
    'SHA-256 of their lines in the archive; only that archive can be restored';
COMMENT ON COLUMN draftsman.event_archives.host IS 'the host that wrote the archive';
COMMENT ON COLUMN draftsman.event_archives.path IS 'path of the file on that host';
COMMENT ON COLUMN draftsman.event_archives.last_epoch IS
    'with `last_txid` and `last_id` the cursor of its last event in the stream, if any';
COMMENT ON COLUMN draftsman.event_archives.last_txid IS 'see `last_epoch`';
COMMENT ON COLUMN draftsman.event_archives.last_id IS 'see `last_epoch`';
COMMENT ON COLUMN draftsman.event_archives.archived_at IS 'when it was archived';

CREATE TABLE draftsman.archived_jobs (
    job          bigint NOT NULL,
    month        date NOT NULL REFERENCES draftsman.event_archives ON DELETE CASCADE,
    events       int NOT NULL CHECK (events > 0),
    transitions  int NOT NULL CHECK (transitions BETWEEN 0 AND events),
    PRIMARY KEY (job, month)
);

COMMENT ON TABLE draftsman.archived_jobs IS 'Number of archived events of each job.';
COMMENT ON COLUMN draftsman.archived_jobs.job IS 'its job';
COMMENT ON COLUMN draftsman.archived_jobs.month IS 'the month';
COMMENT ON COLUMN draftsman.archived_jobs.events IS 'the number of events of the job';
COMMENT ON COLUMN draftsman.archived_jobs.transitions IS
    'the number of status transitions among them';
