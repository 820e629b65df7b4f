-- Digests: questions that a person gets in a single message at hours of their own, and not at once.
-- Events of pagers: acknowledgments of a question there.

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
    IF is_newest AND $5 = 'reopened' THEN
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
