-- Digests: questions that a person gets in a single message at hours of their own, and not at once.
-- Events of pagers: acknowledgments of a question there. Delegations of questions.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0027_digests') AS applied \gset
\if :applied \echo '0027_digests is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0027_digests');

-- The local times of a person's digests.
CREATE TABLE draftsman.digest_hours (
    person    text PRIMARY KEY CHECK (person <> ''),
    hours     time[] NOT NULL CHECK (cardinality(hours) BETWEEN 1 AND 24
                                     AND array_position(hours, NULL) IS NULL),
    timezone  text NOT NULL CHECK (timezone <> '')
);

-- A question for the digest of a person at `digest_at`. It is sent, or dropped because it closed
-- before, once.
CREATE TABLE draftsman.digest_questions (
    job        bigint NOT NULL,
    question   int NOT NULL,
    person     text NOT NULL CHECK (person <> ''),
    digest_at  timestamptz NOT NULL,
    sent_at    timestamptz,
    PRIMARY KEY (job, question, person),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);
--   digest_questions_due  the sweep of digests
CREATE INDEX digest_questions_due ON draftsman.digest_questions (digest_at)
    WHERE sent_at IS NULL;
CREATE TRIGGER digest_questions_sent_once BEFORE UPDATE ON draftsman.digest_questions FOR EACH ROW
    WHEN (OLD.sent_at IS NOT NULL OR NEW.sent_at IS NULL
          OR (OLD.job, OLD.question, OLD.person, OLD.digest_at)
             <> (NEW.job, NEW.question, NEW.person, NEW.digest_at))
    EXECUTE FUNCTION draftsman.refuse_change('a question is in at most one digest of a person');
CREATE TRIGGER digest_questions_no_delete BEFORE DELETE ON draftsman.digest_questions FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('a question is in at most one digest of a person');
CREATE TRIGGER digest_questions_no_truncate BEFORE TRUNCATE ON draftsman.digest_questions
    EXECUTE FUNCTION draftsman.refuse_change('a question is in at most one digest of a person');

-- Sets the hours of a person, or ends their digests (no hours). Operators may set those of others; `person`
-- counts for them and in a session of the owner.
CREATE FUNCTION draftsman.choose_digest(person text, hours time[], timezone text, actor text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := draftsman.session_kind();
    me   text := draftsman.person_of_actor($4);
BEGIN
    IF kind <> 'owner' AND (kind IN ('bot', 'person') AND (me = $1
       OR draftsman.has_role(me, 'operator'))) IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('%s may not change the digest of %s', $4, $1));
    END IF;
    PERFORM draftsman.now() AT TIME ZONE $3;  -- raises an error for an unknown zone
    DELETE FROM draftsman.digest_hours d WHERE d.person = $1;
    INSERT INTO draftsman.digest_hours (person, hours, timezone)
    SELECT $1, $2, $3 WHERE cardinality($2) > 0;
END $$;

-- The time of the next digest of a person; NULL without digests.
CREATE FUNCTION draftsman.next_digest(person text) RETURNS timestamptz LANGUAGE sql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT min(s.at)
      FROM draftsman.digest_hours d
     CROSS JOIN unnest(d.hours) AS h (hour)
     CROSS JOIN generate_series(0, 2) AS days
     CROSS JOIN LATERAL (
           SELECT (((draftsman.now() AT TIME ZONE d.timezone)::date + days) + h.hour)
                  AT TIME ZONE d.timezone AS at) s
     WHERE d.person = $1 AND s.at > draftsman.now()
$$;

-- Plans the digests of a new question, of each person who would be notified of it: its requester, the people
-- to whom it is addressed, or all responders if the requester is not known; and people whose own
-- target it has. An approval, a critical question, one about a budget, one with a ladder, and one that expires before the digest are never
-- planned: people are notified at once.
CREATE FUNCTION draftsman.plan_digests(asked draftsman.job_questions) RETURNS void LANGUAGE sql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO draftsman.digest_questions (job, question, person, digest_at)
    SELECT ($1).job, ($1).ordinal, d.person, n.at
      FROM draftsman.digest_hours d
     CROSS JOIN LATERAL (SELECT draftsman.next_digest(d.person) AS at) n
      JOIN draftsman.job_requests r ON r.number = ($1).job
     WHERE ($1).kind = 'input' AND ($1).key <> 'agent:budget'
       AND NOT EXISTS (SELECT FROM draftsman.question_times t WHERE t.job = ($1).job
                          AND t.question = ($1).ordinal AND t.critical)
       AND NOT EXISTS (SELECT FROM draftsman.question_ladders l WHERE l.job = ($1).job
                          AND l.question = ($1).ordinal)
       AND coalesce(($1).expires_at > n.at, true)
       AND (r.invoker_id = d.person OR draftsman.list_includes(d.person, ($1).approvers)
            OR (draftsman.has_role(d.person, 'responder') AND NOT EXISTS (
                SELECT FROM draftsman.people p WHERE p.name = r.invoker_id))
            OR EXISTS (SELECT FROM draftsman.job_targets t
                        WHERE t.job = ($1).job AND t.channel = 'slack'
                          AND draftsman.person_of('slack', t.target) = d.person))
        ON CONFLICT DO NOTHING
$$;

-- Whether a target, or a thread in it, gets no message of a question: it shows an identical question,
-- or reaches only a person who has the question in a digest.
CREATE FUNCTION draftsman.is_silent(
    job bigint, question int, channel draftsman.delivery_channel, target text,
    thread text DEFAULT NULL
) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.is_shown($1, $2, $3, $4, $5) OR ($3 = 'slack' AND EXISTS (
        SELECT FROM draftsman.digest_questions d
         WHERE d.job = $1 AND d.question = $2 AND d.person = draftsman.person_of('slack', $4)))
$$;

-- Events of the alert of a question in a pager, each once. Of a late event and a newer one, the newer
-- counts.
CREATE TABLE draftsman.pager_events (
    pager        text NOT NULL CHECK (pager <> ''),
    id           text NOT NULL CHECK (id <> ''),
    job          bigint NOT NULL,
    question     int NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('acknowledged', 'resolved', 'reopened')),
    occurred_at  timestamptz NOT NULL,
    received_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (pager, id),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);
--   pager_events_question   the newest event of a question
CREATE INDEX pager_events_question ON draftsman.pager_events (job, question, pager);
CREATE TRIGGER pager_events_immutable BEFORE UPDATE OR DELETE ON draftsman.pager_events
    FOR EACH ROW EXECUTE FUNCTION draftsman.refuse_change('an event of a pager is kept');
CREATE TRIGGER pager_events_no_truncate BEFORE TRUNCATE ON draftsman.pager_events
    EXECUTE FUNCTION draftsman.refuse_change('an event of a pager is kept');

-- Records an event of a pager; true if it is new, and no newer event of the question is known. Two
-- events of a question are recorded one after the other. An alert that is opened again ends the
-- acknowledgment that came from its pager.
CREATE FUNCTION draftsman.record_pager_event(
    pager text, id text, job bigint, question int, kind text, occurred_at timestamptz
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_newest boolean;
    ended     draftsman.question_acknowledgments;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access(format('%s cannot record events of pagers', session_user));
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = $3 FOR NO KEY UPDATE;
    INSERT INTO draftsman.pager_events (pager, id, job, question, kind, occurred_at)
    VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT ON CONSTRAINT pager_events_pkey DO NOTHING;
    is_newest := FOUND AND NOT EXISTS (
        SELECT FROM draftsman.pager_events e
         WHERE e.job = $3 AND e.question = $4 AND e.pager = $1 AND e.occurred_at > $6);
    IF is_newest AND $5 = 'reopened' AND EXISTS (
        SELECT FROM draftsman.job_questions q
         WHERE q.job = $3 AND q.ordinal = $4 AND q.status = 'open') THEN
        DELETE FROM draftsman.question_acknowledgments a
         WHERE a.job = $3 AND a.question = $4 AND a.pager = lower($1)
           AND a.expires_at > draftsman.now()
        RETURNING * INTO ended;
        IF FOUND THEN
            INSERT INTO draftsman.job_events (job, kind, actor, payload)
            VALUES ($3, 'question_unacknowledged', 'pager:' || $1,
                    jsonb_build_object('question', $4, 'by', ended.person));
            PERFORM draftsman.notify_question(
                $3, $4, format('D-%s/%s: %s no longer works on the answer', $3, $4, ended.person),
                format('unacknowledged:%s:%s', $4, $2));
            UPDATE draftsman.question_ladders l SET due_at = greatest(ended.next_step_at, (
                       SELECT g.expires_at FROM draftsman.question_delegations g
                        WHERE g.job = $3 AND g.question = $4))
             WHERE l.job = $3 AND l.question = $4 AND l.due_at > ended.next_step_at;
        END IF;
    END IF;
    RETURN is_newest;
END $$;

-- The question is delegated to another person: a message to the former delegate alone that waits, for
-- example for the hours of that person, is not sent, and notices name the new delegate.
CREATE FUNCTION draftsman.replace_delegate(
    job bigint, question int, former text, delegated_by text, delegate text
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM draftsman.deliveries d
     WHERE d.job = $1 AND d.question = $2 AND d.status = 'pending'
     ORDER BY d.seq FOR NO KEY UPDATE;
    UPDATE draftsman.deliveries d SET status = 'superseded', next_attempt_at = NULL
     WHERE d.job = $1 AND d.question = $2 AND d.kind = 'question' AND d.status = 'pending'
       AND d.thread_key = (
           SELECT f.thread_key FROM draftsman.question_notifications n
             JOIN draftsman.deliveries f ON f.seq = n.delivery
            WHERE n.job = $1 AND n.question = $2 AND n.step = 0 AND n.recipient = $3)
       AND NOT EXISTS (SELECT FROM draftsman.job_targets t
                        WHERE t.job = $1 AND t.thread_key = d.thread_key)
       AND NOT EXISTS (SELECT FROM draftsman.question_notifications n
                        WHERE n.job = $1 AND n.question = $2 AND n.step > 0 AND n.delivery = d.seq);
    UPDATE draftsman.deliveries d SET status = 'superseded', next_attempt_at = NULL
     WHERE d.job = $1 AND d.question = $2 AND d.kind = 'notice' AND d.status = 'pending'
       AND starts_with(d.dedupe_key, format('delegated:%s:', $2));
    INSERT INTO draftsman.deliveries
           (job, question, original, channel, target, thread, thread_key, kind, payload)
    SELECT d.job, d.question, d.seq, d.channel, d.target, d.thread, d.thread_key, 'question_closed',
           d.payload || jsonb_build_object('text', format(
               '%s; then %s asked %s', d.payload ->> 'text', $4, $5))
      FROM draftsman.deliveries d
     WHERE d.job = $1 AND d.question = $2 AND d.kind = 'notice'
       AND d.channel IN ('slack', 'trello', 'forge')
       AND d.status IN ('sending', 'unconfirmed', 'sent')
       AND starts_with(d.dedupe_key, format('delegated:%s:', $2))
       AND NOT EXISTS (SELECT FROM draftsman.deliveries e WHERE e.job = $1 AND e.original = d.seq)
     ORDER BY d.seq;
END $$;

-- Asks another person to answer a question: that person gets it, or a notice if a step sent it before, the
-- targets of the job get a notice, the messages of the question show the delegation, and the next step of
-- the ladder waits.
CREATE FUNCTION draftsman.delegate_question(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8,
    delegate text, slack_target text
) RETURNS timestamptz LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name    text := draftsman.require_responder($1, $2, $3, $4, $5, $6);
    until   timestamptz := draftsman.now() + make_interval(secs => $6);
    account text := coalesce(draftsman.slack_account($7),
                             CASE WHEN draftsman.session_kind() = 'owner' THEN $8 END);
    key     text := format('delegated:%s:%s:%s', $2, $7, extract(epoch FROM until));
    former  text;
    sent    bigint;
BEGIN
    IF draftsman.session_kind() <> 'owner' AND NOT draftsman.may_answer($1, $2, $7) THEN
        PERFORM draftsman.deny_access(format('%s may not answer D-%s/%s', $7, $1, $2));
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = $1 FOR NO KEY UPDATE;
    SELECT g.person INTO former FROM draftsman.question_delegations g
     WHERE g.job = $1 AND g.question = $2;
    INSERT INTO draftsman.question_delegations AS g (job, question, person, delegated_by, expires_at)
    VALUES ($1, $2, $7, name, until)
        ON CONFLICT ON CONSTRAINT question_delegations_pkey DO UPDATE
           SET person = excluded.person, delegated_by = excluded.delegated_by,
               expires_at = excluded.expires_at, created_at = excluded.created_at;
    DELETE FROM draftsman.question_acknowledgments a
     WHERE a.job = $1 AND a.question = $2 AND a.person = name;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES ($1, 'question_delegated', $3 || ':' || $4,
            jsonb_build_object('question', $2, 'by', name, 'to', $7, 'until', until));
    IF former <> $7 THEN
        PERFORM draftsman.replace_delegate($1, $2, former, name, $7);
    END IF;
    PERFORM draftsman.edit_question($1, $2);
    IF account IS NOT NULL AND former IS DISTINCT FROM $7 THEN
        INSERT INTO draftsman.deliveries AS d
               (job, question, channel, target, thread_key, kind, dedupe_key, payload)
        SELECT q.job, q.question, q.channel, q.target, q.thread_key, 'notice', key,
               jsonb_build_object(
                   'text', format('D-%s/%s: %s asked you to answer', $1, $2, name), 'names_job', true)
          FROM draftsman.deliveries q
         WHERE q.thread_key = 'D-' || $1 || ' slack:' || account AND q.question = $2
           AND q.kind = 'question' AND q.status NOT IN ('superseded', 'dead_letter')
         LIMIT 1
        RETURNING d.seq INTO sent;
        sent := coalesce(sent, draftsman.send_question($1, $2, 0, $7, 'slack', account, NULL));
    END IF;
    INSERT INTO draftsman.question_notifications (job, question, step, recipient, outcome, delivery)
    VALUES ($1, $2, 0, $7, CASE WHEN sent IS NULL THEN 'inbox' ELSE 'sent' END, sent)
        ON CONFLICT DO NOTHING;
    IF former IS DISTINCT FROM $7 THEN
        PERFORM draftsman.notify_question($1, $2,
            format('D-%s/%s: %s asked %s to answer', $1, $2, name, $7), key);
    END IF;
    UPDATE draftsman.question_ladders l SET due_at = greatest(l.due_at, until)
     WHERE l.job = $1 AND l.question = $2 AND l.due_at IS NOT NULL;
    RETURN until;
END $$;

-- Pauses the reminders of one person; a second snooze replaces the first.
CREATE FUNCTION draftsman.snooze_question(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8
) RETURNS timestamptz LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO draftsman.question_snoozes AS s (job, question, person, expires_at)
    VALUES ($1, $2, draftsman.require_responder($1, $2, $3, $4, $5, $6),
            draftsman.now() + make_interval(secs => $6))
        ON CONFLICT ON CONSTRAINT question_snoozes_pkey DO UPDATE
           SET expires_at = excluded.expires_at
    RETURNING s.expires_at
$$;
