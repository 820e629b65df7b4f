-- Months of the trail that left the database. A month leaves in one way only: its partition is
-- dropped as a whole, after its events were archived. Nothing deletes an event.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0004_archives');

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
    job     bigint NOT NULL,
    month   date NOT NULL REFERENCES draftsman.event_archives ON DELETE CASCADE,
    events  int NOT NULL CHECK (events > 0),
    steps   int NOT NULL CHECK (steps BETWEEN 0 AND events),
    PRIMARY KEY (job, month)
);

-- One month's partition, with its own guard; false where it is there already, or where the default
-- partition has rows of the month.
CREATE FUNCTION draftsman.make_event_partition(month date) RETURNS boolean LANGUAGE plpgsql AS $$
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
    EXECUTE format('ALTER INDEX draftsman.%I SET (fillfactor = 30)', name || '_job_id_idx');
    EXECUTE format('CREATE TRIGGER job_events_kept_all BEFORE TRUNCATE ON draftsman.%I
        EXECUTE FUNCTION draftsman.refuse_change(%L)', name, 'the trail is append-only');
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION draftsman.make_event_partitions(ahead int) RETURNS int
LANGUAGE plpgsql AS $$
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

-- Months that have a partition of their own.
CREATE VIEW draftsman.event_months AS
    SELECT to_date(right(c.relname, 7), 'YYYY_MM') AS month
      FROM pg_inherits i
      JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'draftsman.job_events'::regclass
       AND c.relname ~ '^job_events_[0-9]{4}_[0-9]{2}$';

-- Lets nobody write into a month, and everybody read it, until the transaction ends.
CREATE FUNCTION draftsman.hold_event_month(month date) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    name text := 'job_events_' || to_char(month, 'YYYY_MM');
BEGIN
    IF to_regclass('draftsman.' || name) IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE draftsman.%I IN SHARE ROW EXCLUSIVE MODE', name);
    RETURN true;
END $$;

-- Records the archive and drops the partition. Not CONCURRENTLY: PostgreSQL refuses that beside a
-- default partition, and in a transaction. The lock on the whole trail comes last and is short.
CREATE FUNCTION draftsman.drop_event_month(
    month date, sha256 text, host text, path text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first timestamptz := month::timestamp AT TIME ZONE 'UTC';
    after timestamptz := (month::timestamp + interval '1 month') AT TIME ZONE 'UTC';
    name  text := 'job_events_' || to_char(month, 'YYYY_MM');
    found bigint;
BEGIN
    INSERT INTO draftsman.event_archives
           (month, events, sha256, host, path, last_epoch, last_txid, last_id)
    SELECT $1, (SELECT count(*) FROM draftsman.job_events
                 WHERE created_at >= first AND created_at < after),
           $2, $3, $4, l.epoch, l.txid, l.id
      FROM (SELECT 1) one
      LEFT JOIN (SELECT epoch, txid, id FROM draftsman.job_events
                  WHERE created_at >= first AND created_at < after
                  ORDER BY epoch DESC, txid DESC, id DESC LIMIT 1) l ON true
    RETURNING event_archives.events INTO found;
    INSERT INTO draftsman.archived_jobs (job, month, events, steps)
    SELECT e.job, $1, count(*), count(e.to_status)
      FROM draftsman.job_events e
     WHERE e.created_at >= first AND e.created_at < after
     GROUP BY e.job;
    EXECUTE format('ALTER TABLE draftsman.job_events DETACH PARTITION draftsman.%I', name);
    EXECUTE format('DROP TABLE draftsman.%I', name);
    RETURN found;
END $$;
