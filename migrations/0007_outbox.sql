-- The outbox: what people are told, written in the transaction of what happened.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0007_outbox');

CREATE TYPE draftsman.delivery_channel AS ENUM ('log', 'webhook', 'slack', 'trello');
CREATE TYPE draftsman.delivery_kind AS ENUM (
    'status', 'question', 'settle', 'result', 'notice', 'reminder', 'file');
CREATE TYPE draftsman.delivery_status AS ENUM (
    'pending', 'sending', 'sent', 'unknown', 'superseded', 'dead');

-- Nothing below looks at a job without targets: the condition of a trigger sees it here.
ALTER TABLE draftsman.jobs ADD COLUMN has_targets boolean NOT NULL DEFAULT false;
ALTER TYPE draftsman.request ADD ATTRIBUTE has_targets boolean;

CREATE TABLE draftsman.job_targets (
    job         bigint NOT NULL REFERENCES draftsman.jobs,
    ordinal     int NOT NULL CHECK (ordinal > 0),
    channel     draftsman.delivery_channel NOT NULL,
    target      text NOT NULL CHECK (target <> ''),
    thread      text CHECK (thread <> ''),
    thread_key  text NOT NULL CHECK (thread_key <> ''),
    kinds       draftsman.delivery_kind[] NOT NULL
                DEFAULT '{status,question,result,notice,reminder,file}',
    outcomes    draftsman.job_status[],
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, ordinal),
    CONSTRAINT job_targets_once UNIQUE (job, thread_key)
);

CREATE TABLE draftsman.deliveries (
    seq              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id               uuid NOT NULL DEFAULT gen_random_uuid(),
    job              bigint NOT NULL REFERENCES draftsman.jobs,
    question         int,
    of_delivery      bigint REFERENCES draftsman.deliveries,
    channel          draftsman.delivery_channel NOT NULL,
    target           text NOT NULL,
    thread           text,
    thread_key       text NOT NULL,
    kind             draftsman.delivery_kind NOT NULL,
    version          int,
    payload          jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(payload::text) <= 1048576),
    dedupe_key       text,
    status           draftsman.delivery_status NOT NULL DEFAULT 'pending',
    attempts         int NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    in_doubt         boolean NOT NULL DEFAULT false,
    next_attempt_at  timestamptz,
    lease_token      bigint,
    external_ref     text,
    last_error       text,
    created_at       timestamptz NOT NULL DEFAULT draftsman.now(),
    sent_at          timestamptz,
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT deliveries_lease CHECK ((lease_token IS NOT NULL) = (status = 'sending')
        AND (status <> 'sending' OR next_attempt_at IS NOT NULL)),
    CONSTRAINT deliveries_over CHECK (next_attempt_at IS NULL
        OR status IN ('pending', 'sending', 'unknown')),
    CONSTRAINT deliveries_sent CHECK ((status = 'sent') = (sent_at IS NOT NULL)
        AND (status <> 'sent' OR external_ref IS NOT NULL)),
    CONSTRAINT deliveries_doubt CHECK (in_doubt OR status <> 'unknown'),
    CONSTRAINT deliveries_dead CHECK (status <> 'dead' OR last_error IS NOT NULL),
    CONSTRAINT deliveries_question CHECK (question IS NOT NULL
        OR kind NOT IN ('question', 'settle', 'reminder')),
    CONSTRAINT deliveries_settle CHECK (kind <> 'settle' OR of_delivery IS NOT NULL),
    CONSTRAINT deliveries_version CHECK ((version IS NOT NULL) = (kind = 'status'))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

--   deliveries_id       a delivery by its marker
--   deliveries_job      what a job's targets were told
--   deliveries_thread   the first of a thread that is not over
--   deliveries_turn     of a thread one is due, or on its way: what keeps their order
--   deliveries_due      the claim: for each target what is due longest
--   deliveries_status   lists and counts by status
--   deliveries_pending  one status message waits for a thread, and the newest status is in it
--   deliveries_once     nothing is written twice
CREATE UNIQUE INDEX deliveries_id ON draftsman.deliveries (id);
CREATE INDEX deliveries_job ON draftsman.deliveries (job, seq);
CREATE INDEX deliveries_thread ON draftsman.deliveries (thread_key, seq)
    WHERE status IN ('pending', 'sending', 'unknown');
CREATE UNIQUE INDEX deliveries_turn ON draftsman.deliveries (thread_key)
    WHERE next_attempt_at IS NOT NULL;
CREATE INDEX deliveries_due ON draftsman.deliveries (channel, target, next_attempt_at, seq)
    WHERE next_attempt_at IS NOT NULL;
CREATE INDEX deliveries_status ON draftsman.deliveries (status, seq);
CREATE UNIQUE INDEX deliveries_pending ON draftsman.deliveries (thread_key)
    WHERE kind = 'status' AND status = 'pending';
CREATE UNIQUE INDEX deliveries_once ON draftsman.deliveries (thread_key, dedupe_key)
    WHERE dedupe_key IS NOT NULL;

-- What a channel's accounts and methods allow. A row is made when the first of them is asked for.
CREATE TABLE draftsman.channel_limits (
    bucket        text PRIMARY KEY CHECK (bucket <> ''),
    free_at       timestamptz NOT NULL DEFAULT '-infinity',
    paused_until  timestamptz NOT NULL DEFAULT '-infinity',
    reason        text
);

-- Order. Of each thread one delivery has its turn: it is due at a time, or on its way. The others
-- wait with no time, and when it ends the first of them is next. Whoever adds to a thread, or ends
-- what is in it, holds the lock of its job: so none is added behind one that has just ended, to wait
-- for ever.
CREATE FUNCTION draftsman.release_threads(threads text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    told draftsman.delivery_channel[];
BEGIN
    WITH due AS (
        UPDATE draftsman.deliveries d
           SET next_attempt_at = draftsman.now()
          FROM unnest(threads) AS t (thread_key)
         CROSS JOIN LATERAL (
               SELECT seq FROM draftsman.deliveries
                WHERE thread_key = t.thread_key AND status IN ('pending', 'sending', 'unknown')
                ORDER BY seq
                LIMIT 1) h
         WHERE d.seq = h.seq AND d.next_attempt_at IS NULL
           AND NOT EXISTS (SELECT FROM draftsman.deliveries e
                            WHERE e.thread_key = t.thread_key AND e.next_attempt_at IS NOT NULL)
        RETURNING d.channel
    )
    SELECT array_agg(DISTINCT channel) INTO told FROM due;
    PERFORM pg_notify('draftsman_deliveries', channel::text) FROM unnest(told) AS c (channel);
END $$;

CREATE FUNCTION draftsman.order_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    threads text[];
BEGIN
    SELECT array_agg(DISTINCT thread_key) INTO threads
      FROM new_deliveries
     WHERE next_attempt_at IS NULL;
    IF threads IS NOT NULL THEN
        PERFORM draftsman.release_threads(threads);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER deliveries_added AFTER INSERT ON draftsman.deliveries
    REFERENCING NEW TABLE AS new_deliveries
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.order_deliveries();
CREATE TRIGGER deliveries_moved AFTER UPDATE ON draftsman.deliveries
    REFERENCING NEW TABLE AS new_deliveries
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.order_deliveries();

CREATE TRIGGER deliveries_kept AFTER UPDATE ON draftsman.deliveries FOR EACH ROW
    WHEN (OLD.status IN ('sent', 'superseded') OR OLD.id <> NEW.id OR OLD.job <> NEW.job
          OR OLD.kind <> NEW.kind OR OLD.thread_key <> NEW.thread_key)
    EXECUTE FUNCTION draftsman.refuse_change('what was sent stays as it was sent');
CREATE TRIGGER deliveries_never_deleted BEFORE DELETE ON draftsman.deliveries FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('deliveries are kept for ever');
CREATE TRIGGER deliveries_kept_all BEFORE TRUNCATE ON draftsman.deliveries
    EXECUTE FUNCTION draftsman.refuse_change('deliveries are kept for ever');

-- A job moved. A status message that is waiting is touched: nobody may take it, and say the status
-- before, until this is committed. One that is on its way is followed by another.
CREATE FUNCTION draftsman.tell_targets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO draftsman.deliveries AS d (job, channel, target, thread, thread_key, kind, version)
    SELECT t.job, t.channel, t.target, t.thread, t.thread_key, 'status', NEW.version
      FROM draftsman.job_targets t
     WHERE t.job = NEW.number AND 'status' = ANY (t.kinds)
     ORDER BY t.ordinal
        ON CONFLICT (thread_key) WHERE kind = 'status' AND status = 'pending'
           DO UPDATE SET version = excluded.version;
    IF NEW.status IN ('waiting_for_input', 'waiting_for_approval') THEN
        INSERT INTO draftsman.deliveries
               (job, question, channel, target, thread, thread_key, kind, dedupe_key)
        SELECT t.job, q.ordinal, t.channel, t.target, t.thread, t.thread_key, 'question',
               'question:' || q.ordinal
          FROM draftsman.job_targets t
          JOIN draftsman.job_questions q ON q.job = t.job AND q.status = 'open'
         WHERE t.job = NEW.number AND 'question' = ANY (t.kinds)
         ORDER BY t.ordinal;
    ELSIF NEW.finished_at IS NOT NULL THEN
        INSERT INTO draftsman.deliveries (job, channel, target, thread, thread_key, kind, dedupe_key)
        SELECT t.job, t.channel, t.target, t.thread, t.thread_key, 'result', 'result'
          FROM draftsman.job_targets t
         WHERE t.job = NEW.number AND 'result' = ANY (t.kinds)
           AND (t.outcomes IS NULL OR NEW.status = ANY (t.outcomes))
         ORDER BY t.ordinal;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER jobs_told AFTER UPDATE OF status ON draftsman.jobs FOR EACH ROW
    WHEN (NEW.has_targets AND NEW.status <> OLD.status AND NEW.status <> 'claimed')
    EXECUTE FUNCTION draftsman.tell_targets();

-- A target hears at once where the job is, and what it asks.
CREATE FUNCTION draftsman.greet_targets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE draftsman.jobs j SET has_targets = true
     WHERE j.number IN (SELECT job FROM new_targets) AND NOT j.has_targets
       AND j.finished_at IS NULL;
    INSERT INTO draftsman.deliveries (job, channel, target, thread, thread_key, kind, version)
    SELECT t.job, t.channel, t.target, t.thread, t.thread_key, 'status', j.version
      FROM new_targets t
      JOIN draftsman.jobs j ON j.number = t.job
     WHERE 'status' = ANY (t.kinds)
     ORDER BY t.job, t.ordinal;
    INSERT INTO draftsman.deliveries
           (job, question, channel, target, thread, thread_key, kind, dedupe_key)
    SELECT t.job, q.ordinal, t.channel, t.target, t.thread, t.thread_key, 'question',
           'question:' || q.ordinal
      FROM new_targets t
      JOIN draftsman.job_questions q ON q.job = t.job AND q.status = 'open'
     WHERE 'question' = ANY (t.kinds)
     ORDER BY t.job, t.ordinal;
    RETURN NULL;
END $$;
CREATE TRIGGER job_targets_added AFTER INSERT ON draftsman.job_targets
    REFERENCING NEW TABLE AS new_targets
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.greet_targets();

-- A question closed, in whatever way: what was not posted stays unsaid, and every copy that people
-- can see, or may be able to see, is rewritten.
CREATE FUNCTION draftsman.settle_copies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM draftsman.deliveries WHERE job = NEW.job LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE draftsman.deliveries
       SET status = 'superseded', next_attempt_at = NULL
     WHERE job = NEW.job AND question = NEW.ordinal AND kind IN ('question', 'reminder')
       AND status = 'pending';
    INSERT INTO draftsman.deliveries
           (job, question, of_delivery, channel, target, thread, thread_key, kind, dedupe_key)
    SELECT job, question, seq, channel, target, thread, thread_key, 'settle', 'settle:' || seq
      FROM draftsman.deliveries
     WHERE job = NEW.job AND question = NEW.ordinal AND kind IN ('question', 'reminder')
       AND (status IN ('sending', 'sent', 'unknown') OR (status = 'dead' AND in_doubt))
     ORDER BY seq;
    RETURN NULL;
END $$;
CREATE TRIGGER job_questions_settled AFTER UPDATE OF status ON draftsman.job_questions FOR EACH ROW
    WHEN (OLD.status = 'open' AND NEW.status <> 'open')
    EXECUTE FUNCTION draftsman.settle_copies();
