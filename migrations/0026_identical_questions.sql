-- Identical open questions of several jobs, which are asked once and answered together.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0026_identical_questions') AS applied \gset
\if :applied \echo '0026_identical_questions is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0026_identical_questions');

-- The open questions that may be answered together, in the order in which they were asked. Questions
-- with the same digest are identical.
CREATE TABLE draftsman.identical_questions (
    id        bigint GENERATED ALWAYS AS IDENTITY,
    digest    text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    job       bigint NOT NULL,
    question  int NOT NULL,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);
--   identical_questions_digest  the questions that are identical to another
CREATE UNIQUE INDEX identical_questions_digest ON draftsman.identical_questions (digest, id);

-- The digest of all that people see of a question, and of its repository; NULL for a question that is never
-- answered together with others: an approval, whose decision is bound to the changes of its job, a
-- permission request, under whatever key, a question of the worker about this job, and the second of
-- two questions of a job that look the same. What people would take for a permission request is one,
-- whatever the agent says: it shows a command, or has the choices.
CREATE FUNCTION draftsman.digest_of(asked draftsman.job_questions) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT encode(sha256(convert_to(jsonb_build_array(
               r.repo_host, r.repo_owner, r.repo_name, ($1).text, ($1).choices, ($1).freeform_allowed,
               ($1).context_snippet, ($1).action, ($1).on_expire, ($1).default_value, ($1).approvers,
               (SELECT jsonb_build_array(t.patch_sha256, t.critical) FROM draftsman.question_times t
                 WHERE t.job = ($1).job AND t.question = ($1).ordinal))::text, 'UTF8')), 'hex')
      FROM draftsman.job_requests r
     WHERE r.number = ($1).job AND r.repo_name <> '' AND ($1).kind = 'input'
       AND ($1).key !~ '^(agent|permission):' AND NOT ($1).is_permission
       AND ($1).text !~ E'(^|[\n\r\u000B\u000C\u001C-\u001E\u0085\u2028\u2029])\\s*\\$\\s'
       AND NOT EXISTS (SELECT FROM jsonb_array_elements(($1).choices) c
                        WHERE c ->> 'value' IN ('allow once', 'allow for this job'))
       AND NOT EXISTS (
           SELECT FROM draftsman.job_questions q
            WHERE q.job = ($1).job AND q.run = ($1).run AND q.ordinal < ($1).ordinal
              AND (q.text, q.choices, q.freeform_allowed, q.context_snippet, q.action, q.on_expire,
                   q.default_value, q.approvers) IS NOT DISTINCT FROM
                  (($1).text, ($1).choices, ($1).freeform_allowed, ($1).context_snippet, ($1).action,
                   ($1).on_expire, ($1).default_value, ($1).approvers))
$$;

-- The other open questions that are identical to a question, in the order asked.
CREATE FUNCTION draftsman.identical_to(job bigint, question int)
RETURNS SETOF draftsman.identical_questions LANGUAGE sql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT i.* FROM draftsman.identical_questions me
      JOIN draftsman.identical_questions i ON i.digest = me.digest AND i.id <> me.id
     WHERE me.job = $1 AND me.question = $2
     ORDER BY i.id
$$;

-- Registers a question. Two identical questions are registered one after the other, so that the second
-- finds the first: a caller waits until the first is committed.
CREATE FUNCTION draftsman.register_identical(asked draftsman.job_questions, digest text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF $2 IS NOT NULL AND NOT EXISTS (
        SELECT FROM draftsman.identical_questions i
         WHERE i.job = ($1).job AND i.question = ($1).ordinal) THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('draftsman.identical_questions ' || $2, 0));
        INSERT INTO draftsman.identical_questions (digest, job, question)
        VALUES ($2, ($1).job, ($1).ordinal);
    END IF;
END $$;

-- The questions of a run are registered in the order of their digests, so that two runs never wait for
-- each other.
CREATE FUNCTION draftsman.register_questions() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.register_identical(d.asked, d.digest)
       FROM (SELECT n::draftsman.job_questions AS asked,
                    draftsman.digest_of(n::draftsman.job_questions) AS digest
               FROM new_questions n
              ORDER BY digest
             OFFSET 0) d;
    RETURN NULL;
END $$;
CREATE TRIGGER job_questions_register AFTER INSERT ON draftsman.job_questions
    REFERENCING NEW TABLE AS new_questions
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.register_questions();

CREATE FUNCTION draftsman.unregister_question() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM draftsman.identical_questions WHERE job = NEW.job AND question = NEW.ordinal;
    RETURN NULL;
END $$;
CREATE TRIGGER job_questions_unregister AFTER UPDATE OF status ON draftsman.job_questions FOR EACH ROW
    WHEN (OLD.status = 'open' AND NEW.status <> 'open')
    EXECUTE FUNCTION draftsman.unregister_question();

-- Messages -------------------------------------------------------------------------------------

-- The messages that show an identical question of the same requester: one for each target and thread.
CREATE FUNCTION draftsman.messages_of(digest text, requester text)
RETURNS SETOF draftsman.deliveries LANGUAGE sql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT ON (d.channel, d.target, d.thread) d.*
      FROM draftsman.identical_questions i
      JOIN draftsman.job_requests r ON r.number = i.job AND r.invoker_id = $2
      JOIN draftsman.deliveries d ON d.job = i.job AND d.question = i.question
     WHERE i.digest = $1 AND d.kind = 'question'
       AND d.status IN ('pending', 'sending', 'unconfirmed', 'sent')
     ORDER BY d.channel, d.target, d.thread, d.seq
$$;

-- Whether a target shows an identical question of the same requester that was asked before; with a
-- thread, whether this thread does.
CREATE FUNCTION draftsman.is_shown(
    job bigint, question int, channel draftsman.delivery_channel, target text, thread text
) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM draftsman.identical_questions me
          JOIN draftsman.job_requests r ON r.number = me.job
         CROSS JOIN LATERAL draftsman.messages_of(me.digest, r.invoker_id) d
          JOIN draftsman.identical_questions i ON i.job = d.job AND i.question = d.question
         WHERE me.job = $1 AND me.question = $2 AND i.id < me.id
           AND d.channel = $3 AND d.target = $4 AND ($5 IS NULL OR d.thread = $5))
$$;

-- The name of the identical question that a target shows instead of the first open question of a job
-- that its thread does not show; NULL if the thread of the job shows its own.
CREATE FUNCTION draftsman.shown_instead(
    job bigint, channel draftsman.delivery_channel, target text, thread_key text
) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('D-%s/%s', i.job, i.question)
      FROM draftsman.job_questions q
     CROSS JOIN LATERAL draftsman.identical_to(q.job, q.ordinal) i
     WHERE q.job = $1 AND q.status = 'open'
       AND NOT EXISTS (
           SELECT FROM draftsman.deliveries d
            WHERE d.job = q.job AND d.question = q.ordinal AND d.thread_key = $4
              AND d.kind = 'question' AND d.status <> 'superseded')
       AND EXISTS (
           SELECT FROM draftsman.deliveries d
            WHERE d.job = i.job AND d.question = i.question AND d.channel = $2 AND d.target = $3
              AND d.kind = 'question' AND d.status <> 'superseded')
     ORDER BY q.ordinal, i.id
     LIMIT 1
$$;

-- Edits the messages that show identical questions, which say how many jobs ask.
CREATE FUNCTION draftsman.edit_messages(digest text) RETURNS void LANGUAGE sql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.edit_question(i.job, i.question)
      FROM draftsman.identical_questions i
     WHERE i.digest = $1
     ORDER BY i.id
$$;

-- Writes the messages of the open questions of a job, whose lock the caller holds. A target that shows
-- an identical question of the same requester gets none, and that message is edited; nor does the
-- target of a person who has it in a digest. The jobs of identical questions are locked first: an
-- answer that is being committed is waited for, and answers them only.
CREATE FUNCTION draftsman.enqueue_questions(job bigint) RETURNS void LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
DECLARE
    asked  draftsman.job_questions;
    same   text[];
    others bigint[];
BEGIN
    -- the trigger of the questions may follow that of the job
    PERFORM draftsman.register_identical(d.asked, d.digest)
       FROM (SELECT q AS asked, draftsman.digest_of(q) AS digest FROM draftsman.job_questions q
              WHERE q.job = $1 AND q.status = 'open'
              ORDER BY digest
             OFFSET 0) d;
    SELECT array_agg(DISTINCT me.digest), array_agg(DISTINCT i.job) INTO same, others
      FROM draftsman.identical_questions me
      JOIN draftsman.identical_questions i ON i.digest = me.digest AND i.job <> me.job
     WHERE me.job = $1;
    IF others IS NOT NULL THEN
        PERFORM FROM draftsman.job_states j WHERE j.number = ANY (others)
          ORDER BY j.number FOR NO KEY UPDATE;
    END IF;
    FOR asked IN
        SELECT q.* FROM draftsman.job_questions q WHERE q.job = $1 AND q.status = 'open'
         ORDER BY q.ordinal
    LOOP
        PERFORM draftsman.plan_digests(asked);
        INSERT INTO draftsman.deliveries
               (job, question, channel, target, thread, thread_key, kind, dedupe_key, status)
        SELECT t.job, asked.ordinal, t.channel, t.target, t.thread, t.thread_key, 'question',
               'question:' || asked.ordinal,
               CASE WHEN draftsman.is_silent($1, asked.ordinal, t.channel, t.target, t.thread)
               THEN 'superseded'
               ELSE 'pending' END::draftsman.delivery_status
          FROM draftsman.job_targets t
         WHERE t.job = $1 AND 'question' = ANY (t.kinds)
         ORDER BY t.ordinal;
    END LOOP;
    IF others IS NOT NULL THEN
        PERFORM draftsman.edit_messages(d) FROM unnest(same) d;
    END IF;
END $$;

-- A question closed alone, for example because its job was canceled: those that are left have a
-- message in each of their targets. Runs at the end of the transaction, which may have answered all.
CREATE FUNCTION draftsman.post_left() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    remaining record;
BEGIN
    FOR remaining IN
        SELECT i.job, i.question, r.invoker_id FROM draftsman.identical_questions i
          JOIN draftsman.job_requests r ON r.number = i.job
         WHERE i.digest = OLD.digest ORDER BY i.id
    LOOP
        PERFORM FROM draftsman.job_states j WHERE j.number = remaining.job FOR NO KEY UPDATE;
        INSERT INTO draftsman.deliveries
               (job, question, channel, target, thread, thread_key, kind, dedupe_key)
        SELECT t.job, remaining.question, t.channel, t.target, t.thread, t.thread_key, 'question',
               'question:' || remaining.question || ':left'
          FROM draftsman.job_targets t
          JOIN draftsman.identical_questions i ON i.job = t.job AND i.question = remaining.question
         WHERE t.job = remaining.job AND 'question' = ANY (t.kinds) AND NOT EXISTS (
               SELECT FROM draftsman.messages_of(OLD.digest, remaining.invoker_id) d
                WHERE d.channel = t.channel AND d.target = t.target
                  AND (t.thread IS NULL OR d.thread = t.thread))
         ORDER BY t.ordinal
            ON CONFLICT DO NOTHING;
    END LOOP;
    IF FOUND THEN
        PERFORM draftsman.edit_messages(OLD.digest);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER identical_questions_left AFTER DELETE ON draftsman.identical_questions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION draftsman.post_left();

-- Answers --------------------------------------------------------------------------------------

-- The pending decision that this transaction applies, and that an answer belongs to: to its
-- question, or to one that is identical.
CREATE FUNCTION draftsman.applied_decision(answer draftsman.job_answers)
RETURNS SETOF draftsman.pending_decisions LANGUAGE sql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.* FROM draftsman.pending_decisions p
     WHERE p.taken_by = pg_current_xact_id_if_assigned() AND p.source = ($1).source
       AND p.source_event_id = ($1).source_event_id AND p.actor_id = ($1).responder_id
       AND p.payload = ($1).payload - '{late,refusal}'::text[]
       AND ((p.job, p.question) = (($1).job, ($1).question) OR EXISTS (
            SELECT FROM draftsman.job_questions a
              JOIN draftsman.job_questions b ON b.job = ($1).job AND b.ordinal = ($1).question
             WHERE a.job = p.job AND a.ordinal = p.question
               AND draftsman.digest_of(a) = draftsman.digest_of(b)))
$$;
