-- Which process sends a delivery, when its call is over, and what goes first; dead letters that no
-- target hears of.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0020_dispatch');

-- `sender` is the number of the session lock of the process that claimed the delivery, as in
-- `workers.lock_id`; it counts where `sender_token` is the lease token: an earlier release claims
-- without it. A call is begun by a statement that proves the lease, and is over at `call_ends_at`.
ALTER TABLE draftsman.deliveries
    ADD COLUMN urgent boolean NOT NULL DEFAULT false,
    ADD COLUMN sender int,
    ADD COLUMN sender_token bigint,
    ADD COLUMN call_ends_at timestamptz;
ALTER TABLE draftsman.leases ADD COLUMN lock_id int;

-- Urgent are questions, reminders, decisions and results, and what precedes them in their thread.
CREATE FUNCTION draftsman.mark_urgent() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.urgent := true;
    RETURN NEW;
END $$;
CREATE TRIGGER deliveries_urgency BEFORE INSERT ON draftsman.deliveries FOR EACH ROW
    WHEN (NEW.kind IN ('question', 'reminder', 'settle', 'result'))
    EXECUTE FUNCTION draftsman.mark_urgent();

CREATE OR REPLACE FUNCTION draftsman.order_deliveries() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    threads text[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE draftsman.deliveries d SET urgent = true
          FROM new_deliveries n
         WHERE n.urgent AND d.thread_key = n.thread_key AND d.seq < n.seq AND NOT d.urgent
           AND d.status IN ('pending', 'sending', 'unknown');
    END IF;
    SELECT array_agg(thread_key) INTO threads
      FROM (SELECT DISTINCT thread_key FROM new_deliveries WHERE next_attempt_at IS NULL) n;
    IF threads IS NOT NULL THEN
        PERFORM draftsman.release_threads(threads);
    END IF;
    RETURN NULL;
END $$;

UPDATE draftsman.deliveries d SET urgent = true
 WHERE d.status IN ('pending', 'sending', 'unknown') AND EXISTS (
       SELECT FROM draftsman.deliveries u
        WHERE u.thread_key = d.thread_key AND u.seq >= d.seq
          AND u.status IN ('pending', 'sending', 'unknown')
          AND u.kind IN ('question', 'reminder', 'settle', 'result'));

--   deliveries_urgent  the claim: for each target what is urgent and due longest
CREATE INDEX deliveries_urgent ON draftsman.deliveries (channel, target, next_attempt_at, seq)
    WHERE next_attempt_at IS NOT NULL AND urgent;

-- Dead letters that no target hears of, until the leader writes their notification.
CREATE TABLE draftsman.unnotified_jobs (
    job       bigint PRIMARY KEY REFERENCES draftsman.jobs,
    since     timestamptz NOT NULL DEFAULT draftsman.now()
);
CREATE FUNCTION draftsman.note_unnotified() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.overrides ->> 'notify' IS DISTINCT FROM 'none' AND NOT EXISTS (
        SELECT FROM draftsman.deliveries d WHERE d.job = NEW.number AND d.kind = 'result') THEN
        INSERT INTO draftsman.unnotified_jobs (job) VALUES (NEW.number) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
-- by its name after jobs_told, which writes to the targets
CREATE TRIGGER jobs_unnotified AFTER UPDATE OF status ON draftsman.jobs FOR EACH ROW
    WHEN (NEW.status = 'dead_letter' AND OLD.status <> 'dead_letter')
    EXECUTE FUNCTION draftsman.note_unnotified();

-- A bot holds the lease of its poller, and no other.
CREATE FUNCTION draftsman.check_lease() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() = 'bot' AND (NEW.name <> 'trello' OR OLD.name <> 'trello') THEN
        PERFORM draftsman.refuse_session(format('a bot cannot hold the lease %s',
            CASE WHEN NEW.name <> 'trello' THEN NEW.name ELSE OLD.name END));
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER leases_checked BEFORE INSERT OR UPDATE ON draftsman.leases FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_lease();

CREATE OR REPLACE FUNCTION pg_temp.patch(name text, before text, after text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    old text := pg_get_functiondef(name::regprocedure);
BEGIN
    IF strpos(old, before) = 0 THEN
        RAISE EXCEPTION '% has no: %', name, before;
    END IF;
    EXECUTE overlay(old PLACING after FROM strpos(old, before) FOR length(before));
END $$;
SELECT pg_temp.patch('draftsman.grant_roles()',
    '    IF to_regrole(''draftsman_bot'') IS NOT NULL THEN', $patch$
    IF to_regrole('draftsman_worker') IS NOT NULL THEN
        GRANT DELETE ON draftsman.unnotified_jobs TO draftsman_worker;
    END IF;
    IF to_regrole('draftsman_bot') IS NOT NULL THEN
        GRANT INSERT, UPDATE ON draftsman.leases TO draftsman_bot;$patch$);
SELECT draftsman.grant_roles();
