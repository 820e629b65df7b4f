-- Events: append-only, partitioned by month, with a cursor that never skips a late commit; and the
-- archives of past months.

INSERT INTO draftsman.schema_functions (name) VALUES ('events')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Events as they are read -------------------------------------------------------------------------

-- The first number of the block of a job: numbers that differ in the last seven bits only.
CREATE OR REPLACE FUNCTION draftsman.event_block(job bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN job & -128;

-- The id after which a row may have events after this id: the last event of a row of a block is 254
-- ids after that of the row.
CREATE OR REPLACE FUNCTION draftsman.event_row_before(id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN id - 254;

-- The events in a row of job_events that are of one job.
CREATE OR REPLACE FUNCTION draftsman.events_of_row(
    job bigint, id bigint, run int, kind text, from_status draftsman.job_status,
    to_status draftsman.job_status, jobs bigint[]
) RETURNS TABLE (
    id bigint, run int, kind text, from_status draftsman.job_status, to_status draftsman.job_status
)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jobs IS NULL THEN id ELSE id + 2 * (job & 127) END - 1, NULL::int,
           'job_claimed', from_status, 'claimed'::draftsman.job_status
     WHERE from_status IN ('queued', 'resumed') AND to_status = 'running'
     UNION ALL
    SELECT CASE WHEN jobs IS NULL THEN id ELSE id + 2 * (job & 127) END, run, kind,
           CASE WHEN from_status IN ('queued', 'resumed') AND to_status = 'running'
                THEN 'claimed' ELSE from_status END,
           to_status
$$;

-- The events as they are read. Those of a job are found by its number.
CREATE OR REPLACE VIEW draftsman.events AS
    SELECT r.job, e.id, e.run, e.kind, e.from_status, e.to_status, r.actor, r.payload, r.created_at,
           r.epoch, r.txid
      FROM draftsman.job_events r
     CROSS JOIN LATERAL draftsman.events_of_row(
           r.job, r.id, r.run, r.kind, r.from_status, r.to_status, NULL) e
     WHERE r.jobs IS NULL
     UNION ALL
    SELECT j.number, e.id, e.run, e.kind, e.from_status, e.to_status, r.actor, r.payload,
           r.created_at, r.epoch, r.txid
      FROM draftsman.job_requests j
      JOIN draftsman.job_events r ON r.job = draftsman.event_block(j.number)
       AND j.number = ANY (r.jobs)
     CROSS JOIN LATERAL draftsman.events_of_row(
           j.number, r.id, r.run, r.kind, r.from_status, r.to_status, r.jobs) e;

-- The same events in the order of the stream. `row_id` and `row_kind` are those of the row, and in
-- its indexes: the ids of its events are from `row_id - 1` to `row_id + 254`.
CREATE OR REPLACE VIEW draftsman.event_stream AS
    SELECT j.job, e.id, e.run, e.kind, e.from_status, e.to_status, r.actor, r.payload, r.created_at,
           r.epoch, r.txid, r.id AS row_id, r.kind AS row_kind
      FROM draftsman.job_events r
     CROSS JOIN LATERAL unnest(coalesce(r.jobs, ARRAY[r.job])) j (job)
     CROSS JOIN LATERAL draftsman.events_of_row(
           j.job, r.id, r.run, r.kind, r.from_status, r.to_status, r.jobs) e;

-- The first or the newest events of a job after an id, up to a number of rows. Those in rows of
-- several jobs are few, at most three a run.
CREATE OR REPLACE FUNCTION draftsman.events_of_job(
    job bigint, after bigint, most int, newest boolean
) RETURNS SETOF draftsman.events
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT events_of_job.job, e.id, e.run, e.kind, e.from_status, e.to_status, r.actor, r.payload,
           r.created_at, r.epoch, r.txid
      FROM ((SELECT * FROM draftsman.job_events r
              WHERE NOT newest AND r.job = events_of_job.job AND r.jobs IS NULL AND r.id > after
              ORDER BY r.id
              LIMIT most)
             UNION ALL
            (SELECT * FROM draftsman.job_events r
              WHERE newest AND r.job = events_of_job.job AND r.jobs IS NULL AND r.id > after
              ORDER BY r.id DESC
              LIMIT most)
             UNION ALL
            SELECT * FROM draftsman.job_events r
             WHERE r.job = draftsman.event_block(events_of_job.job)
               AND events_of_job.job = ANY (r.jobs) AND r.id > draftsman.event_row_before(after)) r
     CROSS JOIN LATERAL draftsman.events_of_row(
           events_of_job.job, r.id, r.run, r.kind, r.from_status, r.to_status, r.jobs) e
     WHERE e.id > after
     ORDER BY CASE WHEN newest THEN -e.id ELSE e.id END
     LIMIT most
$$;

CREATE OR REPLACE FUNCTION draftsman.current_epoch() RETURNS int
LANGUAGE sql STABLE AS
    'SELECT epoch FROM draftsman.event_epoch';

CREATE OR REPLACE FUNCTION draftsman.raise_epoch(by int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    raised int;
BEGIN
    UPDATE draftsman.event_epoch SET epoch = epoch + by RETURNING epoch INTO raised;
    EXECUTE format('ALTER TABLE draftsman.job_events ALTER COLUMN epoch SET DEFAULT %s', raised);
    RETURN raised;
END $$;

-- Events that sessions insert ---------------------------------------------------------------------

-- Events that workers and bots insert directly, beside those of triggers and functions, which write
-- the event of each change that they make: a person's session inserts none. A worker inserts those
-- of its runs and sweeps, and both those of deliveries that they send. The list has the kinds that
-- only functions write.
CREATE OR REPLACE FUNCTION draftsman.may_insert_event(
    job bigint, kind text, actor text, detail jsonb
) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE draftsman.session_kind()
         WHEN 'owner' THEN true
         WHEN 'worker' THEN draftsman.may_act_as(actor) AND actor !~ '^(internal|schedule):'
              AND NOT draftsman.applies_decision(actor) AND kind <> ALL (
              '{action_refused,answer_deleted,answer_edited,answer_received,answer_refused,
                attachment_refused,attachments_added,budget_raised,cancel_requested,message_sent,
                question_acknowledged,question_delegated,question_extended,question_notified,
                question_unacknowledged,queue_reserved,redelivered,request_joined,
                reservation_ended,rule_applied,token_minted,token_redeemed,token_refused,
                vote_received}'::text[]) AND kind NOT LIKE 'job\_%' AND kind NOT LIKE 'needs\_%'
         WHEN 'bot' THEN actor = 'system' AND kind IN ('delivery_sent', 'delivery_dead_lettered',
              'attachment_uploaded', 'attachment_failed')
         ELSE false END
    AND (draftsman.session_kind() = 'owner'
         OR EXISTS (SELECT FROM draftsman.job_requests j WHERE j.number = may_insert_event.job))
    AND (draftsman.session_kind() = 'owner' OR kind !~ '^(delivery|attachment)_'
         OR EXISTS (SELECT FROM draftsman.deliveries d  -- as it is before this statement ends it
                     WHERE d.job = may_insert_event.job AND d.status = 'sending'
                       AND to_jsonb(d.seq) = detail -> 'delivery'
                       AND d.seq = CASE WHEN jsonb_typeof(detail -> 'delivery') = 'number'
                                   THEN (detail ->> 'delivery')::numeric END));

DROP POLICY IF EXISTS job_events_read ON draftsman.job_events;
CREATE POLICY job_events_read ON draftsman.job_events FOR SELECT USING (true);

DROP POLICY IF EXISTS job_events_insert ON draftsman.job_events;
CREATE POLICY job_events_insert ON draftsman.job_events FOR INSERT
    WITH CHECK (draftsman.may_insert_event(job, kind, actor, payload));

-- Months ------------------------------------------------------------------------------------------

-- Creates the partitions of this month and of some later months; returns the number of missing.
-- Each write of an event waits behind the lock on the table, so it does not wait long for an open
-- transaction.
CREATE OR REPLACE FUNCTION draftsman.make_event_partitions(ahead int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
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

-- Creates the partition of a month; false when it exists, or when the default partition already
-- has rows of the month. The events of a job arrive in sequence: a fill factor of 24 leaves
-- room for three later events of each job on the index page of the first (0.3 kB less WAL a job).
CREATE OR REPLACE FUNCTION draftsman.make_event_partition(month date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
        EXECUTE FUNCTION draftsman.refuse_change(%L)', name, 'events.append_only');
    RETURN true;
END $$;

-- The months that have a partition.
CREATE OR REPLACE VIEW draftsman.event_months AS
    SELECT to_date(right(c.relname, 7), 'YYYY_MM') AS month
      FROM pg_inherits i
      JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'draftsman.job_events'::regclass
       AND c.relname ~ '^job_events_[0-9]{4}_[0-9]{2}$';

-- Blocks writes to a month, not reads, until the transaction ends.
CREATE OR REPLACE FUNCTION draftsman.lock_event_month(month date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
CREATE OR REPLACE FUNCTION draftsman.drop_event_month(
    month date, sha256 text, host text, path text
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first timestamptz := month::timestamp AT TIME ZONE 'UTC';
    after timestamptz := (month::timestamp + interval '1 month') AT TIME ZONE 'UTC';
    name  text := 'job_events_' || to_char(month, 'YYYY_MM');
    found bigint;
BEGIN
    IF draftsman.session_kind() <> 'owner' AND after > draftsman.now() - interval '1 month' THEN
        PERFORM draftsman.deny_access('events.recent_month');
    END IF;
    INSERT INTO draftsman.event_archives
           (month, events, sha256, host, path, last_epoch, last_txid, last_id)
    SELECT month, (SELECT count(*) FROM draftsman.event_stream
                 WHERE created_at >= first AND created_at < after),
           sha256, host, path, l.epoch, l.txid, l.id
      FROM (SELECT 1) one
      LEFT JOIN (SELECT epoch, txid, id FROM draftsman.event_stream
                  WHERE created_at >= first AND created_at < after
                  ORDER BY epoch DESC, txid DESC, row_id DESC, id DESC LIMIT 1) l ON true
    RETURNING event_archives.events INTO found;
    INSERT INTO draftsman.archived_jobs (job, month, events, transitions)
    SELECT e.job, month, count(*), count(e.to_status)
      FROM draftsman.event_stream e
     WHERE e.created_at >= first AND e.created_at < after
     GROUP BY e.job;
    EXECUTE format('ALTER TABLE draftsman.job_events DETACH PARTITION draftsman.%I', name);
    EXECUTE format('DROP TABLE draftsman.%I', name);
    RETURN found;
END $$;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER job_events_append_only BEFORE UPDATE OR DELETE ON draftsman.job_events
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('events.append_only');
-- Row triggers apply to the partitions as well, but TRUNCATE of a partition bypasses its parent:
-- each partition needs a trigger of its own.
CREATE OR REPLACE TRIGGER job_events_no_truncate BEFORE TRUNCATE ON draftsman.job_events
    EXECUTE FUNCTION draftsman.refuse_change('events.append_only');
CREATE OR REPLACE TRIGGER job_events_no_truncate BEFORE TRUNCATE ON draftsman.job_events_default
    EXECUTE FUNCTION draftsman.refuse_change('events.append_only');

SELECT draftsman.make_event_partitions(3);

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_events() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.event_block(bigint), draftsman.event_row_before(bigint),
        draftsman.events_of_row(bigint, bigint, int, text, draftsman.job_status,
            draftsman.job_status, bigint[]),
        draftsman.events_of_job(bigint, bigint, int, boolean),
        draftsman.current_epoch(), draftsman.may_insert_event(bigint, text, text, jsonb)');
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.make_event_partitions(int), draftsman.make_event_partition(date),
        draftsman.lock_event_month(date), draftsman.drop_event_month(date, text, text, text)');
    SELECT draftsman.grant_to('worker', 'INSERT (job, run, kind, actor, payload)
        ON draftsman.job_events');
    SELECT draftsman.grant_to('bot', 'INSERT (job, kind, actor, payload) ON draftsman.job_events');
$$;
