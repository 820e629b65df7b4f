-- Deliveries (the outbox): messages to targets, written in the transaction that they report.

INSERT INTO draftsman.schema_functions (name) VALUES ('deliveries')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Status and results ------------------------------------------------------------------------------

-- A job changed its status: record_transitions() calls this for jobs with targets, resumed jobs and
-- dead letters. A pending status message is updated, which locks it: no sender can claim it with
-- the previous status before this transaction commits. A message that is being sent is followed by
-- another. A job leaves its open approvals only by approvals, by denials and requests for changes
-- that it accepts, or by an alternative that closed first. The leader reports a dead letter whose
-- result has no target.
CREATE OR REPLACE FUNCTION draftsman.enqueue_deliveries(
    before draftsman.job_states, after draftsman.job_states
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF before.status = 'waiting_for_approval' AND after.status IN ('waiting_for_input', 'resumed')
       AND (
        SELECT bool_and(q.status = 'answered'
                        AND (q.resolution ->> 'outcome' = 'approved'
                             OR (q.resolution ->> 'outcome' = 'denied' AND q.on_deny = 'continue')
                             OR (q.resolution ->> 'outcome' = 'changes_requested'
                                 AND q.on_changes <> 'refuse'))
                        OR q.status = 'canceled' AND q.alternative_of IS NOT NULL)
          FROM draftsman.job_questions q
         WHERE q.job = after.number AND q.run = after.run_count AND q.kind = 'approval'
       ) IS NOT TRUE THEN
        PERFORM draftsman.refuse('DM003', 'questions.approval_undecided', jsonb_build_object(
                    'job', after.number));
    END IF;
    IF after.has_targets AND after.status <> 'claimed' THEN
        PERFORM draftsman.deliver_status(after.number, after.version);
        IF after.status IN ('waiting_for_input', 'waiting_for_approval')
           AND before.status <> 'waiting_for_approval' THEN
            PERFORM draftsman.enqueue_questions(after.number);
        ELSIF after.finished_at IS NOT NULL THEN
            INSERT INTO draftsman.deliveries
                   (job, channel, target, thread, thread_key, kind, dedupe_key)
            SELECT t.job, t.channel, t.target, t.thread, t.thread_key, 'result', 'result'
              FROM draftsman.job_targets t
             WHERE t.job = after.number AND 'result' = ANY (t.kinds)
               AND (t.outcomes IS NULL OR after.status = ANY (t.outcomes))
             ORDER BY t.ordinal;
        END IF;
    END IF;
    IF after.status = 'dead_letter'
       AND (SELECT r.overrides ->> 'notify' FROM draftsman.job_requests r
             WHERE r.number = after.number) IS DISTINCT FROM 'none'
       AND NOT EXISTS (
           SELECT FROM draftsman.deliveries d WHERE d.job = after.number AND d.kind = 'result') THEN
        INSERT INTO draftsman.unnotified_jobs (job) VALUES (after.number) ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- Writes the status of a job to its targets in these channels (NULL: in all). A message that was
-- not sent yet gets the newer version.
CREATE OR REPLACE FUNCTION draftsman.deliver_status(
    job bigint, version int, channels draftsman.channel[] DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO draftsman.deliveries AS d (job, channel, target, thread, thread_key, kind, version)
    SELECT t.job, t.channel, t.target, t.thread, t.thread_key, 'status', deliver_status.version
      FROM draftsman.job_targets t
     WHERE t.job = deliver_status.job AND 'status' = ANY (t.kinds)
       AND (channels IS NULL OR t.channel = ANY (channels))
     ORDER BY t.ordinal
        ON CONFLICT (thread_key) WHERE kind = 'status' AND status = 'pending'
           DO UPDATE SET version = excluded.version;
END $$;

-- Writes a notice about a job, or about one of its questions, to the targets of the job, once for
-- each key.
CREATE OR REPLACE FUNCTION draftsman.deliver_notice(
    job bigint, question int, key text, payload jsonb
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO draftsman.deliveries
           (job, question, channel, target, thread, thread_key, kind, dedupe_key, payload)
    SELECT t.job, deliver_notice.question, t.channel, t.target, t.thread, t.thread_key, 'notice',
           deliver_notice.key, deliver_notice.payload
      FROM draftsman.job_targets t
     WHERE t.job = deliver_notice.job AND 'notice' = ANY (t.kinds)
     ORDER BY t.ordinal
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING;
END $$;

-- A new target receives the current status and the open questions at once.
CREATE OR REPLACE FUNCTION draftsman.enqueue_target_deliveries() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET enable_seqscan = off AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') AND EXISTS (
        SELECT FROM new_targets t
          JOIN draftsman.jobs j ON j.number = t.job
         CROSS JOIN LATERAL (SELECT draftsman.person_of('cli', session_user::text) AS name) me
         WHERE t.thread_key <> 'D-' || t.job || ' ' || t.channel || ':' || t.target
                               || coalesce('/' || t.thread, '')
            OR (draftsman.session_kind() = 'person' AND j.invoker_id IS DISTINCT FROM me.name
                AND NOT draftsman.has_role(me.name, 'invoker')
                AND NOT draftsman.has_role(me.name, 'operator'))) THEN
        PERFORM draftsman.deny_access('deliveries.add_target');
    END IF;
    IF draftsman.session_kind() <> 'owner' AND EXISTS (
        SELECT FROM new_targets t
         WHERE t.ordinal > 1000 OR char_length(t.target) > 4000 OR char_length(t.thread) > 500
            OR cardinality(t.kinds) > 20 OR array_position(t.kinds, NULL) IS NOT NULL
            OR cardinality(t.outcomes) > 20) THEN
        PERFORM draftsman.deny_access('deliveries.target_size');
    END IF;
    -- A statement without rows runs its triggers too: a new job has neither of these rows.
    IF EXISTS (SELECT FROM new_targets t
                 JOIN draftsman.job_states j ON j.number = t.job
                WHERE NOT j.has_targets AND j.finished_at IS NULL) THEN
        UPDATE draftsman.job_states j SET has_targets = true
         WHERE j.number IN (SELECT job FROM new_targets) AND NOT j.has_targets
           AND j.finished_at IS NULL;
    END IF;
    INSERT INTO draftsman.deliveries
           (job, channel, target, thread, thread_key, kind, version, next_attempt_at)
    SELECT t.job, t.channel, t.target, t.thread, t.thread_key, 'status', j.version,
           CASE WHEN (SELECT d.seq FROM draftsman.deliveries d
                       WHERE d.thread_key = t.thread_key
                         AND d.status IN ('pending', 'sending', 'unconfirmed')
                       LIMIT 1) IS NULL THEN draftsman.now() END
      FROM new_targets t
      JOIN draftsman.job_states j ON j.number = t.job
     WHERE 'status' = ANY (t.kinds)
     ORDER BY t.job, t.ordinal;
    IF EXISTS (SELECT FROM new_targets t
                 JOIN draftsman.job_questions q ON q.job = t.job AND q.status = 'open') THEN
        PERFORM draftsman.deliver_question(q.job, q.ordinal, array_agg(t.ordinal))
           FROM new_targets t
           JOIN draftsman.job_questions q ON q.job = t.job AND q.status = 'open'
          GROUP BY q.job, q.ordinal
          ORDER BY q.job, q.ordinal;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_targets_inserted AFTER INSERT ON draftsman.job_targets
    REFERENCING NEW TABLE AS new_targets FOR EACH STATEMENT
    EXECUTE FUNCTION draftsman.enqueue_target_deliveries();

-- Whether these targets of a process include a target. A name that ends with a slash is that of
-- all targets that begin with it, such as the issues of a forge.
CREATE OR REPLACE FUNCTION draftsman.is_served(target text, served text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    target = ANY (served) OR left(target, strpos(target, '/')) = ANY (served);

-- Questions ---------------------------------------------------------------------------------------

-- Writes the messages of the open questions of a job, whose lock the caller holds. A target that
-- shows an identical question of the same requester gets none, and that message is edited; nor does
-- the target of a person who has it in a digest. The job of the first identical question is locked
-- first, as by an answer to any of them: an answer that is being committed is waited for, and
-- answers them only.
CREATE OR REPLACE FUNCTION draftsman.enqueue_questions(job bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET enable_seqscan = off AS $$
DECLARE
    asked  draftsman.job_questions;
    same   text[];
    firsts bigint[];
BEGIN
    -- the trigger of the questions may follow that of the job
    PERFORM draftsman.register_identical(d.asked, d.digest)
       FROM (SELECT q AS asked, draftsman.digest_of(q) AS digest FROM draftsman.job_questions q
              WHERE q.job = enqueue_questions.job AND q.status = 'open'
              ORDER BY digest
             OFFSET 0) d;
    SELECT array_agg(DISTINCT me.digest), array_agg(DISTINCT f.job) INTO same, firsts
      FROM draftsman.identical_questions me
     CROSS JOIN LATERAL (
           SELECT i.job FROM draftsman.identical_questions i
            WHERE i.digest = me.digest AND i.job <> me.job
            ORDER BY i.id
            LIMIT 1) f
     WHERE me.job = enqueue_questions.job;
    IF firsts IS NOT NULL THEN
        PERFORM FROM draftsman.job_states j WHERE j.number = ANY (firsts)
          ORDER BY j.number FOR NO KEY UPDATE;
    END IF;
    FOR asked IN
        SELECT q.* FROM draftsman.job_questions q
         WHERE q.job = enqueue_questions.job AND q.status = 'open'
         ORDER BY q.ordinal
    LOOP
        PERFORM draftsman.plan_digests(asked);
        PERFORM draftsman.deliver_question(asked.job, asked.ordinal);
    END LOOP;
    IF firsts IS NOT NULL THEN
        PERFORM draftsman.edit_messages(d) FROM unnest(same) d;
    END IF;
END $$;

-- Writes a question to the targets of its job with these ordinals (NULL: to all). The message of a
-- target that gets none counts as superseded.
CREATE OR REPLACE FUNCTION draftsman.deliver_question(
    job bigint, question int, targets int[] DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO draftsman.deliveries
           (job, question, channel, target, thread, thread_key, kind, dedupe_key, status)
    SELECT t.job, deliver_question.question, t.channel, t.target, t.thread, t.thread_key,
           'question', 'question:' || deliver_question.question,
           CASE WHEN draftsman.is_silent(deliver_question.job, deliver_question.question, t.channel,
                                         t.target, t.thread)
           THEN 'superseded' ELSE 'pending' END::draftsman.delivery_status
      FROM draftsman.job_targets t
     WHERE t.job = deliver_question.job AND 'question' = ANY (t.kinds)
       AND (targets IS NULL OR t.ordinal = ANY (targets))
     ORDER BY t.ordinal;
END $$;

-- A question closed: copies that were not sent are superseded, and each copy that people see or
-- may see is updated.
CREATE OR REPLACE FUNCTION draftsman.enqueue_question_closed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM draftsman.deliveries WHERE job = NEW.job LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE draftsman.deliveries
       SET status = 'superseded', next_attempt_at = NULL
     WHERE seq = ANY (ARRAY(
           SELECT seq FROM draftsman.deliveries
            WHERE job = NEW.job AND question = NEW.ordinal AND kind IN ('question', 'reminder')
              AND status = 'pending'
            ORDER BY seq FOR NO KEY UPDATE));
    INSERT INTO draftsman.deliveries
           (job, question, original, channel, target, thread, thread_key, kind, dedupe_key)
    SELECT job, question, seq, channel, target, thread, thread_key, 'question_closed',
           'question_closed:' || seq
      FROM draftsman.deliveries
     WHERE job = NEW.job AND question = NEW.ordinal AND kind IN ('question', 'reminder')
       AND (status IN ('sending', 'sent', 'unconfirmed') OR (status = 'dead_letter' AND in_doubt))
     ORDER BY seq;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_questions_copies AFTER UPDATE OF status ON draftsman.job_questions
    FOR EACH ROW
    WHEN (OLD.status = 'open' AND NEW.status <> 'open')
    EXECUTE FUNCTION draftsman.enqueue_question_closed();

-- Makes dead letters due again, whose jobs the caller has locked; returns those that were. A dead
-- letter may have arrived: a copy is searched for first.
CREATE OR REPLACE FUNCTION draftsman.redeliver(seqs bigint[], actor text) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT draftsman.has_right(actor, 'operator', '{person,bot}') THEN
        PERFORM draftsman.deny_access('deliveries.redeliver', jsonb_build_object('actor', actor));
    END IF;
    RETURN QUERY
    WITH revived AS (
        UPDATE draftsman.deliveries d
           SET status = 'unconfirmed', in_doubt = true, attempts = 0
          FROM (SELECT seq FROM draftsman.deliveries
                 WHERE seq = ANY (seqs) AND status = 'dead_letter'
                 ORDER BY seq
                   FOR NO KEY UPDATE) r
         WHERE d.seq = r.seq
        RETURNING d.seq, d.job
    ), recorded AS (
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        SELECT job, 'redelivered', actor, jsonb_build_object('deliveries', array_agg(seq))
          FROM revived
         GROUP BY job
    )
    SELECT seq FROM revived ORDER BY seq;
END $$;

-- Updates the messages of an open question, whose data changed; the caller holds the lock of the job.
-- A pending message or edit is built from the new data: the first statement waits for claims under
-- way and locks what is pending, so that no process claims it before the commit. The second edits
-- messages that were claimed or sent, unless an edit is pending. An alert shows none of the data.
CREATE OR REPLACE FUNCTION draftsman.edit_question(job bigint, question int) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT FROM draftsman.deliveries d
     WHERE d.job = edit_question.job AND d.question = edit_question.question
       AND d.kind IN ('question', 'reminder', 'question_closed') AND d.status = 'pending'
     ORDER BY d.seq
       FOR NO KEY UPDATE;
    INSERT INTO draftsman.deliveries
           (job, question, original, channel, target, thread, thread_key, kind, payload)
    SELECT d.job, d.question, d.seq, d.channel, d.target, d.thread, d.thread_key, 'question_closed',
           d.payload
      FROM draftsman.deliveries d
     WHERE d.job = edit_question.job AND d.question = edit_question.question
       AND d.kind IN ('question', 'reminder')
       AND d.status IN ('sending', 'unconfirmed', 'sent')
       AND NOT EXISTS (SELECT FROM draftsman.channels c WHERE c.name = d.channel AND c.has_alerts)
       AND NOT EXISTS (SELECT FROM draftsman.deliveries e
                        WHERE e.thread_key = d.thread_key AND e.original = d.seq
                          AND e.status = 'pending')
     ORDER BY d.seq
$$;

-- Order within a thread ---------------------------------------------------------------------------

-- Questions, reminders, decisions and results are urgent, and so are earlier deliveries of their
-- thread.
CREATE OR REPLACE FUNCTION draftsman.mark_urgent() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.urgent := true;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER deliveries_set_urgent BEFORE INSERT ON draftsman.deliveries FOR EACH ROW
    WHEN (NEW.kind IN ('question', 'reminder', 'question_closed', 'result'))
    EXECUTE FUNCTION draftsman.mark_urgent();

CREATE OR REPLACE FUNCTION draftsman.order_deliveries() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET enable_seqscan = off AS $$
DECLARE
    threads text[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM pg_notify('draftsman_deliveries', channel::text)
           FROM (SELECT DISTINCT channel FROM new_deliveries WHERE next_attempt_at IS NOT NULL) n;
    END IF;
    IF TG_OP = 'INSERT' AND EXISTS (SELECT FROM new_deliveries WHERE urgent) THEN
        UPDATE draftsman.deliveries d SET urgent = true
          FROM new_deliveries n
         WHERE n.urgent AND d.thread_key = n.thread_key AND d.seq < n.seq AND NOT d.urgent
           AND d.status IN ('pending', 'sending', 'unconfirmed');
    END IF;
    SELECT array_agg(thread_key) INTO threads
      FROM (SELECT DISTINCT thread_key FROM new_deliveries WHERE next_attempt_at IS NULL) n;
    IF threads IS NOT NULL THEN
        PERFORM draftsman.release_threads(threads);
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER deliveries_inserted AFTER INSERT ON draftsman.deliveries
    REFERENCING NEW TABLE AS new_deliveries FOR EACH STATEMENT
    EXECUTE FUNCTION draftsman.order_deliveries();
CREATE OR REPLACE TRIGGER deliveries_updated AFTER UPDATE ON draftsman.deliveries
    REFERENCING NEW TABLE AS new_deliveries FOR EACH STATEMENT
    EXECUTE FUNCTION draftsman.order_deliveries();

-- In each thread a single delivery is next: it has a due time, or is being sent. The others have no
-- due time; when it ends, the first of them is next. A session that adds a delivery to a thread or
-- finishes it holds the lock of the job; otherwise a delivery added after a delivery that has just
-- ended would wait forever. There is no sort, which is a disabled node in the sessions of workers.
--
-- The first delivery of a thread is inserted with its due time: to set it later would write the row
-- and its index entries twice.
--
-- A session plans the statements of these functions once, maybe when a table is empty: rows are
-- looked up by index (enable_seqscan), one thread at a time (scalar subqueries are not joined).
CREATE OR REPLACE FUNCTION draftsman.release_threads(threads text[]) RETURNS void
LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$
DECLARE
    channels draftsman.channel[];
BEGIN
    WITH due AS (
        UPDATE draftsman.deliveries d
           SET next_attempt_at = draftsman.now()
          FROM (SELECT (SELECT seq FROM draftsman.deliveries
                         WHERE thread_key = t.thread_key
                           AND status IN ('pending', 'sending', 'unconfirmed')
                         ORDER BY seq
                         LIMIT 1) AS seq
                  FROM unnest(threads) AS t (thread_key)
                 WHERE (SELECT e.seq FROM draftsman.deliveries e
                         WHERE e.thread_key = t.thread_key AND e.next_attempt_at IS NOT NULL
                         LIMIT 1) IS NULL) h
         WHERE d.seq = h.seq AND d.next_attempt_at IS NULL
        RETURNING d.channel
    )
    SELECT array_agg(channel) INTO channels FROM (SELECT DISTINCT channel FROM due) d;
    PERFORM pg_notify('draftsman_deliveries', channel::text) FROM unnest(channels) AS c (channel);
END $$;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER deliveries_immutable AFTER UPDATE ON draftsman.deliveries FOR EACH ROW
    WHEN (OLD.status IN ('sent', 'superseded') OR OLD.id <> NEW.id OR OLD.job <> NEW.job
          OR OLD.kind <> NEW.kind OR OLD.thread_key <> NEW.thread_key)
    EXECUTE FUNCTION draftsman.refuse_change('deliveries.sent_immutable');
CREATE OR REPLACE TRIGGER deliveries_no_delete BEFORE DELETE ON draftsman.deliveries FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('deliveries.deliveries_kept');
CREATE OR REPLACE TRIGGER deliveries_no_truncate BEFORE TRUNCATE ON draftsman.deliveries
    EXECUTE FUNCTION draftsman.refuse_change('deliveries.deliveries_kept');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_deliveries() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.is_served(text, text[])');
    SELECT draftsman.grant_to('worker bot person', 'EXECUTE ON FUNCTION
        draftsman.redeliver(bigint[], text)');
    SELECT draftsman.grant_to('worker bot person', 'INSERT (job, ordinal, channel, target, thread,
        thread_key, kinds, outcomes) ON draftsman.job_targets');
    SELECT draftsman.grant_to('worker bot', 'INSERT, UPDATE (status, attempts, in_doubt,
        next_attempt_at, lease_token, sender_lock_id, call_ends_at, external_ref, last_error,
        sent_at) ON draftsman.deliveries');
    SELECT draftsman.grant_to('worker bot', 'INSERT, UPDATE ON draftsman.channel_limits');
    SELECT draftsman.grant_to('worker', 'DELETE ON draftsman.unnotified_jobs');
    SELECT draftsman.grant_to('bot', 'INSERT, UPDATE, DELETE ON draftsman.live_threads');
$$;
