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
INSERT INTO draftsman.event_epoch (epoch) VALUES (1);

CREATE FUNCTION draftsman.current_epoch() RETURNS int LANGUAGE sql STABLE AS
    'SELECT epoch FROM draftsman.event_epoch';

-- The epoch of new events is a constant of the table rather than a query for each event.
--
-- A claim that also starts its job writes one row, from `queued` or `resumed` to `running`, for two
-- events: it saves a third of the WAL of events and their indexes. The view `events` shows both; the
-- id of `job_claimed` is the odd number before that of the row. Fixed widths come first, so that no
-- byte is spent on alignment.
CREATE SEQUENCE draftsman.job_event_ids INCREMENT BY 2 START WITH 2;
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
    payload      jsonb NOT NULL DEFAULT '{}' CHECK (pg_column_size(payload) <= 65536)
) PARTITION BY RANGE (created_at);
CREATE INDEX job_events_job ON draftsman.job_events (job, id);
CREATE INDEX job_events_cursor ON draftsman.job_events (epoch, txid, id);
-- Searches by kind. A job that only runs and completes has no entry here.
CREATE INDEX job_events_kind ON draftsman.job_events (kind, epoch, txid, id)
    WHERE kind NOT IN ('job_created', 'job_claimed', 'job_started', 'job_completed');

-- The events in a row of job_events.
CREATE FUNCTION draftsman.events_of_row(
    id bigint, run int, kind text, from_status draftsman.job_status, to_status draftsman.job_status
) RETURNS TABLE (id bigint, run int, kind text, from_status draftsman.job_status,
                 to_status draftsman.job_status) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT $1 - 1, NULL::int, 'job_claimed', $4, 'claimed'::draftsman.job_status
     WHERE $4 IN ('queued', 'resumed') AND $5 = 'running'
     UNION ALL
    SELECT $1, $2, $3, CASE WHEN $4 IN ('queued', 'resumed') AND $5 = 'running' THEN 'claimed'
                       ELSE $4 END, $5
$$;

-- The events as they are read.
CREATE VIEW draftsman.events AS
    SELECT r.job, e.id, e.run, e.kind, e.from_status, e.to_status, r.actor, r.payload, r.created_at,
           r.epoch, r.txid
      FROM draftsman.job_events r
     CROSS JOIN LATERAL draftsman.events_of_row(r.id, r.run, r.kind, r.from_status, r.to_status) e;

CREATE FUNCTION draftsman.raise_epoch(by int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    raised int;
BEGIN
    UPDATE draftsman.event_epoch SET epoch = epoch + by RETURNING epoch INTO raised;
    EXECUTE format('ALTER TABLE draftsman.job_events ALTER COLUMN epoch SET DEFAULT %s', raised);
    RETURN raised;
END $$;

-- Row triggers apply to the partitions as well, but TRUNCATE of a partition bypasses its parent:
-- each partition needs a trigger of its own.
CREATE TABLE draftsman.job_events_default PARTITION OF draftsman.job_events DEFAULT;
ALTER INDEX draftsman.job_events_default_job_id_idx SET (fillfactor = 24);
CREATE TRIGGER job_events_append_only BEFORE UPDATE OR DELETE ON draftsman.job_events FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('events are append-only');
CREATE TRIGGER job_events_no_truncate BEFORE TRUNCATE ON draftsman.job_events
    EXECUTE FUNCTION draftsman.refuse_change('events are append-only');
CREATE TRIGGER job_events_no_truncate BEFORE TRUNCATE ON draftsman.job_events_default
    EXECUTE FUNCTION draftsman.refuse_change('events are append-only');

-- Transitions ---------------------------------------------------------------------------------

-- The kind of the event of a transition. Rendered from TRANSITIONS in draftsman.domain.job.
--
-- This function, the next, and check_transition() are in PL/pgSQL, which is not inlined into the plan of
-- record_transitions(): each operator of a plan is looked up again for each statement, and the
-- transitions of most jobs, from the queue to a run and to its completion, need none of these.
CREATE FUNCTION draftsman.transition_kind(
    before draftsman.job_status, after draftsman.job_status
) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE before
        WHEN 'scheduled' THEN CASE after
            WHEN 'queued' THEN 'job_promoted'
            WHEN 'resumed' THEN 'job_woken'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'queued' THEN CASE after
            WHEN 'claimed' THEN 'job_claimed'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'claimed' THEN CASE after
            WHEN 'running' THEN 'job_started'
            WHEN 'queued' THEN 'job_returned'
            WHEN 'resumed' THEN 'job_returned'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'running' THEN CASE after
            WHEN 'waiting_for_input' THEN 'needs_input'
            WHEN 'waiting_for_approval' THEN 'needs_approval'
            WHEN 'scheduled' THEN 'job_snoozed'
            WHEN 'completed' THEN 'job_completed'
            WHEN 'failed' THEN 'job_failed'
            WHEN 'dead_letter' THEN 'job_dead_lettered'
            WHEN 'retrying' THEN 'job_retrying'
            WHEN 'canceled' THEN 'job_canceled'
            WHEN 'resumed' THEN 'job_released' END
        WHEN 'waiting_for_input' THEN CASE after
            WHEN 'resumed' THEN 'job_resumed'
            WHEN 'expired' THEN 'job_expired'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'waiting_for_approval' THEN CASE after
            WHEN 'waiting_for_input' THEN 'needs_input'
            WHEN 'resumed' THEN 'job_resumed'
            WHEN 'failed' THEN 'job_failed'
            WHEN 'expired' THEN 'job_expired'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'resumed' THEN CASE after
            WHEN 'claimed' THEN 'job_claimed'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'retrying' THEN CASE after
            WHEN 'queued' THEN 'job_retried'
            WHEN 'canceled' THEN 'job_canceled' END
    END;
END $$;

-- What the event of a transition says besides its statuses.
CREATE FUNCTION draftsman.transition_details(
    job bigint, status draftsman.job_status, result jsonb, error text,
    error_class draftsman.error_class, attempts int, retries int, next_retry_at timestamptz,
    run_at timestamptz, cancel_reason text, canceled_by text
) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF status = 'expired' THEN
        RETURN (SELECT jsonb_build_object('question', max(q.ordinal))
                  FROM draftsman.job_questions q
                 WHERE q.job = $1 AND q.status = 'expired' AND q.on_expire IN ('expire', 'escalate'));
    END IF;
    RETURN CASE status
        WHEN 'completed' THEN jsonb_build_object('summary', left(result ->> 'summary', 2000))
        WHEN 'failed' THEN jsonb_build_object(
             'error', left(error, 2000), 'error_class', error_class)
        WHEN 'dead_letter' THEN jsonb_build_object('error', left(error, 2000),
             'error_class', error_class, 'attempts', attempts, 'retries', retries)
        WHEN 'retrying' THEN jsonb_build_object('error', left(error, 2000),
             'error_class', error_class, 'next_retry_at', next_retry_at)
        WHEN 'canceled' THEN jsonb_strip_nulls(jsonb_build_object(
             'reason', left(cancel_reason, 2000), 'by', canceled_by))
        WHEN 'scheduled' THEN jsonb_build_object('run_at', run_at)
        ELSE '{}' END;
END $$;

-- Partitions ----------------------------------------------------------------------------------

-- Creates the partition of a month; false when it exists, or when the default partition already
-- has rows of the month. The events of a job arrive in sequence: a fill factor of 24 leaves
-- room for three later events of each job on the index page of the first (0.3 kB less WAL a job).
CREATE FUNCTION draftsman.make_event_partition(month date) RETURNS boolean LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first timestamptz := month::timestamp AT TIME ZONE 'UTC';
    after timestamptz := (month::timestamp + interval '1 month') AT TIME ZONE 'UTC';
    name  text := 'job_events_' || to_char(month, 'YYYY_MM');
BEGIN
    IF to_regclass('draftsman.' || name) IS NOT NULL OR EXISTS (
        SELECT FROM draftsman.job_events_default WHERE created_at >= first AND created_at < after)
    THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE draftsman.%I PARTITION OF draftsman.job_events
        FOR VALUES FROM (%L) TO (%L)', name, first, after);
    -- a job's later entries find room on the page of its first
    EXECUTE format('ALTER INDEX draftsman.%I SET (fillfactor = 24)', name || '_job_id_idx');
    EXECUTE format('CREATE TRIGGER job_events_no_truncate BEFORE TRUNCATE ON draftsman.%I
        EXECUTE FUNCTION draftsman.refuse_change(%L)', name, 'events are append-only');
    RETURN true;
END $$;

-- Creates the partitions of this month and of some later months; returns the number of missing. Each
-- write of an event waits behind the lock on the table, so it does not wait long for an open transaction.
CREATE FUNCTION draftsman.make_event_partitions(ahead int) RETURNS int LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    this  date := date_trunc('month', draftsman.now() AT TIME ZONE 'UTC');
    month date;
    made  int := 0;
BEGIN
    FOR month IN SELECT generate_series(this::timestamp, this + make_interval(months => ahead),
                                        interval '1 month')
    LOOP
        made := made + draftsman.make_event_partition(month)::int;
    END LOOP;
    RETURN made;
END $$;
SELECT draftsman.make_event_partitions(3);

-- The months that have a partition.
CREATE VIEW draftsman.event_months AS
    SELECT to_date(right(c.relname, 7), 'YYYY_MM') AS month
      FROM pg_inherits i
      JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'draftsman.job_events'::regclass
       AND c.relname ~ '^job_events_[0-9]{4}_[0-9]{2}$';

-- Archives ------------------------------------------------------------------------------------

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

CREATE TABLE draftsman.archived_jobs (
    job          bigint NOT NULL,
    month        date NOT NULL REFERENCES draftsman.event_archives ON DELETE CASCADE,
    events       int NOT NULL CHECK (events > 0),
    transitions  int NOT NULL CHECK (transitions BETWEEN 0 AND events),
    PRIMARY KEY (job, month)
);

-- Blocks writes to a month, not reads, until the transaction ends.
CREATE FUNCTION draftsman.lock_event_month(month date) RETURNS boolean LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := 'job_events_' || to_char(month, 'YYYY_MM');
BEGIN
    IF to_regclass('draftsman.' || name) IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE draftsman.%I IN SHARE ROW EXCLUSIVE MODE', name);
    RETURN true;
END $$;

-- Records the archive of a month and drops its partition; returns the number of events. PostgreSQL
-- refuses DETACH CONCURRENTLY beside a default partition and in a transaction; the lock on
-- job_events is therefore taken last and held briefly.
CREATE FUNCTION draftsman.drop_event_month(
    month date, sha256 text, host text, path text
) RETURNS bigint LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first timestamptz := month::timestamp AT TIME ZONE 'UTC';
    after timestamptz := (month::timestamp + interval '1 month') AT TIME ZONE 'UTC';
    name  text := 'job_events_' || to_char(month, 'YYYY_MM');
    found bigint;
BEGIN
    IF draftsman.session_kind() <> 'owner' AND after > draftsman.now() - interval '1 month' THEN
        PERFORM draftsman.deny_access(
            'only months that ended more than a month ago can be archived');
    END IF;
    INSERT INTO draftsman.event_archives
           (month, events, sha256, host, path, last_epoch, last_txid, last_id)
    SELECT $1, (SELECT count(*) FROM draftsman.events
                 WHERE created_at >= first AND created_at < after),
           $2, $3, $4, l.epoch, l.txid, l.id
      FROM (SELECT 1) one
      LEFT JOIN (SELECT epoch, txid, id FROM draftsman.job_events
                  WHERE created_at >= first AND created_at < after
                  ORDER BY epoch DESC, txid DESC, id DESC LIMIT 1) l ON true
    RETURNING event_archives.events INTO found;
    INSERT INTO draftsman.archived_jobs (job, month, events, transitions)
    SELECT e.job, $1, count(*), count(e.to_status)
      FROM draftsman.events e
     WHERE e.created_at >= first AND e.created_at < after
     GROUP BY e.job;
    EXECUTE format('ALTER TABLE draftsman.job_events DETACH PARTITION draftsman.%I', name);
    EXECUTE format('DROP TABLE draftsman.%I', name);
    RETURN found;
END $$;
