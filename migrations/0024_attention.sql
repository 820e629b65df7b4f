-- The time of people: first views of questions, acknowledgments, snoozes, delegations and ladders.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0024_attention') AS applied \gset
\if :applied \echo '0024_attention is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0024_attention');

-- A person who may answer the question opened it while it was open.
CREATE TABLE draftsman.question_views (
    job       bigint NOT NULL,
    question  int NOT NULL,
    person    text NOT NULL CHECK (person <> ''),
    channel   draftsman.channel NOT NULL,
    seen_at   timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, question, person),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);
CREATE TRIGGER question_views_immutable BEFORE UPDATE OR DELETE ON draftsman.question_views
    FOR EACH ROW EXECUTE FUNCTION draftsman.refuse_change('the first view is kept');
CREATE TRIGGER question_views_no_truncate BEFORE TRUNCATE ON draftsman.question_views
    EXECUTE FUNCTION draftsman.refuse_change('the first view is kept');

--   job_questions_asked   the questions of the last days, for figures
CREATE INDEX job_questions_asked ON draftsman.job_questions (asked_at);

-- The person whose figures the session may read, '' without one; NULL: those of all people.
CREATE FUNCTION draftsman.figures_of() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN k.kind IN ('owner', 'worker') THEN NULL
                WHEN k.kind = 'person' AND draftsman.has_role(p.name, 'operator') THEN NULL
                WHEN k.kind = 'person' THEN coalesce(p.name, '')
                ELSE '' END
      FROM (SELECT draftsman.session_kind() AS kind) k
     CROSS JOIN LATERAL (SELECT draftsman.person_of('cli', session_user::text) AS name) p
$$;
ALTER TABLE draftsman.question_views ENABLE ROW LEVEL SECURITY;
CREATE POLICY question_views_read ON draftsman.question_views FOR SELECT
    USING (coalesce(draftsman.figures_of() = person, true));

-- Records the first view of open questions. `person` counts in a session of the owner only; the person
-- of other sessions is that of their identity.
CREATE FUNCTION draftsman.record_views(
    jobs bigint[], questions int[], source draftsman.channel, actor_id text, person text
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind   text := draftsman.session_kind();
    viewer text := CASE WHEN kind = 'owner' THEN $5 ELSE draftsman.person_of($3::text, $4) END;
    added  bigint;
BEGIN
    IF kind = 'worker' OR NOT draftsman.may_act_as($3 || ':' || $4) THEN
        PERFORM draftsman.deny_access(format('%s cannot view as %s:%s', session_user, $3, $4));
    END IF;
    INSERT INTO draftsman.question_views (job, question, person, channel)
    SELECT q.job, q.ordinal, viewer, $3
      FROM unnest($1, $2) AS v (job, question)
      JOIN draftsman.job_questions q ON q.job = v.job AND q.ordinal = v.question
     WHERE q.status = 'open' AND viewer IS NOT NULL
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END $$;

-- A person works on the answer: all reminders of the question wait until then. `pager` is the pager in
-- which it was acknowledged, and `next_step_at` the time of the ladder's next step before.
CREATE TABLE draftsman.question_acknowledgments (
    job           bigint NOT NULL,
    question      int NOT NULL,
    person        text NOT NULL CHECK (person <> ''),
    expires_at    timestamptz NOT NULL,
    pager         text CHECK (pager <> ''),
    next_step_at  timestamptz,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- A person gets no reminder of the question until then.
CREATE TABLE draftsman.question_snoozes (
    job         bigint NOT NULL,
    question    int NOT NULL,
    person      text NOT NULL CHECK (person <> ''),
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (job, question, person),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- Whether a person may answer an open question, by the rules of `check_answer`.
CREATE FUNCTION draftsman.may_answer(job bigint, question int, person text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((
        SELECT q.status = 'open' AND CASE WHEN q.kind = 'approval' THEN
                   draftsman.has_role($3, 'approver')
                   AND draftsman.list_includes($3, q.approvers)
                   AND ($3 <> j.invoker_id
                        OR (SELECT p.self_approval FROM draftsman.approval_policy p)) IS TRUE
               ELSE j.invoker_id = $3 OR draftsman.has_role($3, 'responder')
                    OR draftsman.list_includes($3, q.approvers) END
          FROM draftsman.job_questions q
          JOIN draftsman.job_requests j ON j.number = q.job
         WHERE q.job = $1 AND q.ordinal = $2), false)
$$;

-- The person in whose name the session delays reminders of a question; raises an error without the
-- right. `person` counts in a session of the owner only.
CREATE FUNCTION draftsman.require_responder(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8
) RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := draftsman.session_kind();
    name text := CASE WHEN kind = 'owner' THEN $5 ELSE draftsman.person_of($3::text, $4) END;
BEGIN
    IF kind = 'worker' OR NOT draftsman.may_act_as($3 || ':' || $4) OR name IS NULL
       OR (kind <> 'owner' AND NOT draftsman.may_answer($1, $2, name)) THEN
        PERFORM draftsman.deny_access(
            format('%s:%s may not delay reminders of D-%s/%s', $3, $4, $1, $2));
    END IF;
    IF $6 <= 0 OR $6 > 86400 THEN
        PERFORM draftsman.deny_access('reminders can be delayed by more than 0 s and at most a day');
    END IF;
    RETURN name;
END $$;

-- A person was asked by another to answer: the ladder and the reminders wait until then.
CREATE TABLE draftsman.question_delegations (
    job           bigint NOT NULL,
    question      int NOT NULL,
    person        text NOT NULL CHECK (person <> ''),
    delegated_by  text NOT NULL CHECK (delegated_by <> ''),
    expires_at    timestamptz NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- The ladder of a question: its steps as they were configured when the question was asked. `step`, from
-- 1, is taken at `due_at`; NULL: no other follows. `owners` are the people who own the changed code.
CREATE TABLE draftsman.question_ladders (
    job       bigint NOT NULL,
    question  int NOT NULL,
    name      text NOT NULL CHECK (name <> ''),
    steps     jsonb NOT NULL
              CHECK (jsonb_typeof(steps) = 'array' AND steps <> '[]'),
    owners    text[] NOT NULL DEFAULT '{}',
    step      int NOT NULL DEFAULT 1,
    due_at    timestamptz,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT question_ladders_step CHECK (step > 0 AND (jsonb_typeof(steps) <> 'array' OR step
        <= jsonb_array_length(CASE WHEN jsonb_typeof(steps) = 'array' THEN steps ELSE '[]' END)
           + (due_at IS NULL)::int))
) WITH (fillfactor = 70);
--   question_ladders_due   the sweep of ladders and the leader's timer: holds open questions only
CREATE INDEX question_ladders_due ON draftsman.question_ladders (due_at) WHERE due_at IS NOT NULL;

-- Each person or target of a step that was taken, and why it was not notified if so. Step 0 is a
-- delegation.
CREATE TABLE draftsman.question_notifications (
    job          bigint NOT NULL,
    question     int NOT NULL,
    step         int NOT NULL CHECK (step >= 0),
    recipient    text NOT NULL CHECK (recipient <> ''),
    outcome      text NOT NULL
                 CHECK (outcome IN ('sent', 'thread', 'inbox', 'away', 'snoozed', 'not_allowed', 'empty')),
    away_until   timestamptz,
    delivery     bigint REFERENCES draftsman.deliveries,
    notified_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, question, step, recipient),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT question_notifications_sent CHECK (outcome <> 'sent' OR delivery IS NOT NULL),
    CONSTRAINT question_notifications_away CHECK (away_until IS NULL OR outcome IN ('away', 'snoozed'))
);
CREATE TRIGGER question_notifications_immutable BEFORE UPDATE OR DELETE
    ON draftsman.question_notifications FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('a step is taken once');
CREATE TRIGGER question_notifications_no_truncate BEFORE TRUNCATE
    ON draftsman.question_notifications EXECUTE FUNCTION draftsman.refuse_change('a step is taken once');

-- A closed question has no further step.
CREATE FUNCTION draftsman.end_ladder() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE draftsman.question_ladders SET due_at = NULL
     WHERE job = NEW.job AND question = NEW.ordinal AND due_at IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER job_questions_ladder AFTER UPDATE OF status ON draftsman.job_questions FOR EACH ROW
    WHEN (OLD.status = 'open' AND NEW.status <> 'open') EXECUTE FUNCTION draftsman.end_ladder();

-- Whether `take_ladder_step` adds people to those who may answer.
CREATE FUNCTION draftsman.escalates_by_ladder(
    before draftsman.job_questions, after draftsman.job_questions
) RETURNS boolean LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT has_schema_privilege(current_user, 'draftsman', 'CREATE')
       AND after.approvers @> before.approvers AND after.approvers <> before.approvers
       AND EXISTS (SELECT FROM draftsman.question_ladders l
                    WHERE l.job = before.job AND l.question = before.ordinal
                      AND l.due_at <= draftsman.now()
                      AND (l.steps -> (l.step - 1) ->> 'escalate')::boolean)
$$;

-- Sends a notice about a question to the targets of its job, once for each key.
CREATE FUNCTION draftsman.notify_question(job bigint, question int, text text, key text)
RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO draftsman.deliveries
           (job, question, channel, target, thread, thread_key, kind, dedupe_key, payload)
    SELECT t.job, $2, t.channel, t.target, t.thread, t.thread_key, 'notice', $4,
           jsonb_build_object('text', $3, 'names_job', true)
      FROM draftsman.job_targets t
     WHERE t.job = $1 AND 'notice' = ANY (t.kinds)
     ORDER BY t.ordinal
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
$$;

-- Sends a question to a person or target outside of the targets of its job, which may have it already;
-- returns the delivery. A later step, and another delegation, sends it again.
CREATE FUNCTION draftsman.send_question(
    job bigint, question int, step int, recipient text, channel draftsman.delivery_channel,
    target text, thread text
) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    place text := 'D-' || $1 || ' ' || $5 || ':' || $6 || coalesce('/' || $7, '');
    key   text := 'question:' || $2;
    sent  bigint;
BEGIN
    IF EXISTS (SELECT FROM draftsman.question_notifications n
                WHERE n.job = $1 AND n.question = $2 AND n.recipient = $4
                  AND n.delivery IS NOT NULL) THEN
        key := key || ':' || (SELECT count(*) FROM draftsman.deliveries d
                               WHERE d.thread_key = place AND d.question = $2);
    END IF;
    INSERT INTO draftsman.deliveries AS d
           (job, question, channel, target, thread, thread_key, kind, dedupe_key)
    VALUES ($1, $2, $5, $6, $7, place, 'question', key)
        ON CONFLICT DO NOTHING
    RETURNING d.seq INTO sent;
    RETURN coalesce(sent, (SELECT d.seq FROM draftsman.deliveries d WHERE d.thread_key = place AND d.dedupe_key = key));
END $$;

-- Takes the step of a ladder that is due, or with `later` postpones it; false if another session took or
-- delayed it, or the question closed. `notices` are the people and targets of the step, `names` those
-- who may answer from now on, if the step escalates; the next step follows after `seconds`.
CREATE FUNCTION draftsman.take_ladder_step(
    job bigint, question int, step int, due_at timestamptz, later timestamptz, notices jsonb,
    names text[], seconds float8
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    taken  draftsman.question_ladders;
    notice record;
    sent   bigint;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') THEN
        PERFORM draftsman.deny_access(format('%s cannot take steps of ladders', session_user));
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = $1 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT * INTO taken FROM draftsman.question_ladders l
     WHERE l.job = $1 AND l.question = $2 AND l.step = $3 AND l.due_at = $4
       AND l.due_at <= draftsman.now()
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF $5 IS NOT NULL THEN
        UPDATE draftsman.question_ladders l SET due_at = $5 WHERE l.job = $1 AND l.question = $2;
        RETURN true;
    END IF;
    FOR notice IN SELECT * FROM jsonb_to_recordset($6) AS n (
        recipient text, outcome text, away_until timestamptz, channel draftsman.delivery_channel,
        target text, thread text, text text)
    LOOP
        sent := NULL;
        IF notice.channel IS NOT NULL THEN
            sent := draftsman.send_question(
                $1, $2, $3, notice.recipient, notice.channel, notice.target, notice.thread);
        ELSIF notice.text IS NOT NULL THEN
            PERFORM draftsman.notify_question($1, $2, notice.text, format('ladder:%s:%s:%s', $2, $3, notice.recipient));
        ELSIF notice.outcome = 'thread' THEN
            SELECT d.seq INTO sent FROM draftsman.deliveries d
             WHERE d.job = $1 AND d.question = $2 AND d.kind = 'question'
             ORDER BY d.seq
             LIMIT 1;
        END IF;
        INSERT INTO draftsman.question_notifications
               (job, question, step, recipient, outcome, away_until, delivery)
        VALUES ($1, $2, $3, notice.recipient, notice.outcome, notice.away_until, sent);
    END LOOP;
    IF (taken.steps -> ($3 - 1) ->> 'escalate')::boolean THEN
        UPDATE draftsman.job_questions q
           SET approvers = q.approvers || ARRAY(
               SELECT DISTINCT n FROM unnest($7) n WHERE n <> ALL (q.approvers) ORDER BY n)
         WHERE q.job = $1 AND q.ordinal = $2 AND NOT q.approvers @> $7;
    END IF;
    UPDATE draftsman.question_ladders l
       SET step = l.step + 1, due_at = draftsman.now() + make_interval(secs => $8)
     WHERE l.job = $1 AND l.question = $2;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT $1, 'question_notified', 'system', jsonb_build_object(
               'question', $2, 'step', $3, 'ladder', taken.name,
               'notified', coalesce(jsonb_agg(n.recipient ORDER BY n.recipient) FILTER (
                   WHERE n.outcome IN ('sent', 'thread', 'inbox')), '[]'),
               'skipped', coalesce(jsonb_object_agg(n.recipient, n.outcome) FILTER (
                   WHERE n.outcome NOT IN ('sent', 'thread', 'inbox')), '{}'))
      FROM draftsman.question_notifications n
     WHERE n.job = $1 AND n.question = $2 AND n.step = $3;
    RETURN true;
END $$;

-- Acknowledges a question, unless the acknowledgment of another person holds; returns the one that
-- holds afterwards.
CREATE FUNCTION draftsman.acknowledge_question(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8
) RETURNS TABLE (holder text, until timestamptz) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := draftsman.require_responder($1, $2, $3, $4, $5, $6);
BEGIN
    PERFORM FROM draftsman.job_states j WHERE j.number = $1 FOR NO KEY UPDATE;
    INSERT INTO draftsman.question_acknowledgments AS a
           (job, question, person, expires_at, pager, next_step_at)
    VALUES ($1, $2, name, draftsman.now() + make_interval(secs => $6),
            CASE WHEN $3 = 'pager' THEN split_part($4, ':', 1) END,
            (SELECT l.due_at FROM draftsman.question_ladders l WHERE l.job = $1 AND l.question = $2))
        ON CONFLICT ON CONSTRAINT question_acknowledgments_pkey DO UPDATE
           SET person = excluded.person, expires_at = excluded.expires_at, pager = excluded.pager,
               next_step_at = CASE WHEN a.expires_at > draftsman.now() THEN a.next_step_at
                                   ELSE excluded.next_step_at END
         WHERE a.person = excluded.person OR a.expires_at <= draftsman.now();
    IF FOUND THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        SELECT $1, 'question_acknowledged', $3 || ':' || $4,
               jsonb_build_object('question', $2, 'by', a.person, 'until', a.expires_at)
          FROM draftsman.question_acknowledgments a WHERE a.job = $1 AND a.question = $2;
        PERFORM draftsman.notify_question(
            $1, $2, format('D-%s/%s: %s works on the answer', $1, $2, name),
            format('acknowledged:%s:%s', $2, name));
        INSERT INTO draftsman.deliveries
               (job, question, channel, target, thread_key, kind, dedupe_key, payload)
        SELECT DISTINCT d.job, d.question, d.channel, d.target, d.thread_key,
               'notice'::draftsman.delivery_kind, format('acknowledged:%s:%s%s', $2, name, (
                   SELECT max(e.received_at) FROM draftsman.pager_events e
                    WHERE e.job = $1 AND e.question = $2 AND e.kind = 'reopened')),
               jsonb_build_object('acknowledged_by', name)
          FROM draftsman.deliveries d
         WHERE d.job = $1 AND d.question = $2 AND d.channel = 'pager' AND d.kind = 'question'
            ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING;
        UPDATE draftsman.question_ladders l
           SET due_at = greatest(l.due_at, draftsman.now() + make_interval(secs => $6))
         WHERE l.job = $1 AND l.question = $2 AND l.due_at IS NOT NULL;
    END IF;
    RETURN QUERY
    SELECT a.person, a.expires_at FROM draftsman.question_acknowledgments a
     WHERE a.job = $1 AND a.question = $2;
END $$;
