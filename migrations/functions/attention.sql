-- The time of people: views, acknowledgments, snoozes and delegations of questions, ladders that
-- ask further people, and digests.

INSERT INTO draftsman.schema_functions (name) VALUES ('attention')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Figures -----------------------------------------------------------------------------------------

-- The person whose figures the session may read, '' without one; NULL: those of all people.
CREATE OR REPLACE FUNCTION draftsman.figures_of() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN k.kind IN ('owner', 'worker') THEN NULL
                WHEN k.kind = 'person' AND draftsman.has_role(p.name, 'operator') THEN NULL
                WHEN k.kind = 'person' THEN coalesce(p.name, '')
                ELSE '' END
      FROM (SELECT draftsman.session_kind() AS kind) k
     CROSS JOIN LATERAL (SELECT draftsman.person_of('cli', session_user::text) AS name) p
$$;

DROP POLICY IF EXISTS question_views_read ON draftsman.question_views;
CREATE POLICY question_views_read ON draftsman.question_views FOR SELECT
    USING (coalesce(draftsman.figures_of() = person, true));

-- Records the first view of open questions. `person` counts in a session of the owner only; the
-- person of other sessions is that of their identity.
CREATE OR REPLACE FUNCTION draftsman.record_views(
    jobs bigint[], questions int[], source draftsman.channel, actor_id text, person text
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind   text := draftsman.session_kind();
    viewer text := CASE WHEN kind = 'owner' THEN person
                        ELSE draftsman.person_of(source::text, actor_id) END;
    added  bigint;
BEGIN
    IF kind = 'worker' OR NOT draftsman.may_act_as(source || ':' || actor_id) THEN
        PERFORM draftsman.deny_access('attention.view', jsonb_build_object(
                    'source', source, 'account', actor_id));
    END IF;
    INSERT INTO draftsman.question_views (job, question, person, channel)
    SELECT q.job, q.ordinal, viewer, source
      FROM unnest(jobs, questions) AS v (job, question)
      JOIN draftsman.job_questions q ON q.job = v.job AND q.ordinal = v.question
     WHERE q.status = 'open' AND viewer IS NOT NULL
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END $$;

-- Acknowledgments, snoozes and delegations --------------------------------------------------------

-- Acknowledges a question, unless the acknowledgment of another person holds; returns the one that
-- holds afterwards.
CREATE OR REPLACE FUNCTION draftsman.acknowledge_question(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8
) RETURNS TABLE (holder text, until timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := draftsman.require_responder(job, question, source, actor_id, person, seconds);
BEGIN
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE;
    INSERT INTO draftsman.question_acknowledgments AS a
           (job, question, person, expires_at, actor, next_step_at)
    VALUES (acknowledge_question.job, acknowledge_question.question, name,
            draftsman.now() + make_interval(secs => seconds),
            source || ':' || actor_id,
            (SELECT l.due_at FROM draftsman.question_ladders l
              WHERE l.job = acknowledge_question.job
                AND l.question = acknowledge_question.question))
        ON CONFLICT ON CONSTRAINT question_acknowledgments_pkey DO UPDATE
           SET person = excluded.person, expires_at = excluded.expires_at, actor = excluded.actor,
               next_step_at = CASE WHEN a.expires_at > draftsman.now() THEN a.next_step_at
                                   ELSE excluded.next_step_at END
         WHERE a.person = excluded.person OR a.expires_at <= draftsman.now();
    IF FOUND THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        SELECT acknowledge_question.job, 'question_acknowledged', source || ':' || actor_id,
               jsonb_build_object('question', acknowledge_question.question,
                                  'by', a.person, 'until', a.expires_at)
          FROM draftsman.question_acknowledgments a
         WHERE a.job = acknowledge_question.job AND a.question = acknowledge_question.question;
        PERFORM draftsman.deliver_notice(
            job, question, format('acknowledged:%s:%s', question, name),
            draftsman.sentence('attention.acknowledged', jsonb_build_object(
                'job', job, 'question', question, 'person', name)));
        UPDATE draftsman.question_ladders l
           SET due_at = greatest(l.due_at, draftsman.now() + make_interval(secs => seconds))
         WHERE l.job = acknowledge_question.job AND l.question = acknowledge_question.question
           AND l.due_at IS NOT NULL;
    END IF;
    RETURN QUERY
    SELECT a.person, a.expires_at FROM draftsman.question_acknowledgments a
     WHERE a.job = acknowledge_question.job AND a.question = acknowledge_question.question;
END $$;

-- Ends the acknowledgment that holds of an open question, if its account begins so; the next step of
-- the ladder is due as before. `actor` is that of the event, and `key` that of the notice. The caller
-- holds the lock of the job.
CREATE OR REPLACE FUNCTION draftsman.end_acknowledgment(
    job bigint, question int, accounts text, actor text, key text
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ended draftsman.question_acknowledgments;
BEGIN
    DELETE FROM draftsman.question_acknowledgments a USING draftsman.job_questions q
     WHERE a.job = end_acknowledgment.job AND a.question = end_acknowledgment.question
       AND starts_with(a.actor, accounts) AND a.expires_at > draftsman.now()
       AND q.job = a.job AND q.ordinal = a.question AND q.status = 'open'
    RETURNING a.* INTO ended;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, 'question_unacknowledged', actor,
            jsonb_build_object('question', question, 'by', ended.person));
    PERFORM draftsman.deliver_notice(
        job, question, format('unacknowledged:%s:%s', question, key),
        draftsman.sentence('attention.unacknowledged', jsonb_build_object(
            'job', job, 'question', question, 'person', ended.person)));
    UPDATE draftsman.question_ladders l SET due_at = greatest(ended.next_step_at, (
               SELECT g.expires_at FROM draftsman.question_delegations g
                WHERE g.job = end_acknowledgment.job
                  AND g.question = end_acknowledgment.question))
     WHERE l.job = end_acknowledgment.job AND l.question = end_acknowledgment.question
       AND l.due_at > ended.next_step_at;
END $$;

-- Pauses the reminders of one person; a second snooze replaces the first.
CREATE OR REPLACE FUNCTION draftsman.snooze_question(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8
) RETURNS timestamptz
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO draftsman.question_snoozes AS s (job, question, person, expires_at)
    VALUES (snooze_question.job, snooze_question.question,
            draftsman.require_responder(snooze_question.job, snooze_question.question,
                                        source, actor_id, snooze_question.person, seconds),
            draftsman.now() + make_interval(secs => seconds))
        ON CONFLICT ON CONSTRAINT question_snoozes_pkey DO UPDATE
           SET expires_at = excluded.expires_at
    RETURNING s.expires_at
$$;

-- Asks another person to answer a question: that person gets it, or a notice if a step sent it
-- before, the targets of the job get a notice, the messages of the question show the delegation,
-- and the next step of the ladder waits.
CREATE OR REPLACE FUNCTION draftsman.delegate_question(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8,
    delegate text, direct_channel draftsman.channel, direct_target text
) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name    text := draftsman.require_responder(job, question, source, actor_id, person, seconds);
    until   timestamptz := draftsman.now() + make_interval(secs => seconds);
    direct  record;
    key     text := format('delegated:%s:%s:%s', question, delegate, extract(epoch FROM until));
    former  text;
    sent    bigint;
BEGIN
    IF draftsman.session_kind() <> 'owner'
       AND NOT draftsman.may_answer(job, question, delegate) THEN
        PERFORM draftsman.deny_access('questions.answer', jsonb_build_object(
                    'voter', delegate, 'job', job, 'question', question));
    END IF;
    SELECT t.channel, t.target INTO direct
      FROM (SELECT 1 AS place, d.* FROM draftsman.target_of_person(delegate) d
             UNION ALL
            SELECT 2, direct_channel, direct_target
             WHERE draftsman.session_kind() = 'owner' AND direct_target IS NOT NULL) t
     ORDER BY t.place
     LIMIT 1;
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE;
    SELECT g.person INTO former FROM draftsman.question_delegations g
     WHERE g.job = delegate_question.job AND g.question = delegate_question.question;
    INSERT INTO draftsman.question_delegations AS g
           (job, question, person, delegated_by, expires_at)
    VALUES (delegate_question.job, delegate_question.question, delegate, name, until)
        ON CONFLICT ON CONSTRAINT question_delegations_pkey DO UPDATE
           SET person = excluded.person, delegated_by = excluded.delegated_by,
               expires_at = excluded.expires_at, created_at = excluded.created_at;
    DELETE FROM draftsman.question_acknowledgments a
     WHERE a.job = delegate_question.job AND a.question = delegate_question.question
       AND a.person = name;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, 'question_delegated', source || ':' || actor_id,
            jsonb_build_object('question', question, 'by', name, 'to', delegate, 'until', until));
    IF former <> delegate THEN
        PERFORM draftsman.replace_delegate(job, question, former, name, delegate);
    END IF;
    PERFORM draftsman.edit_question(job, question);
    IF direct.target IS NOT NULL AND former IS DISTINCT FROM delegate THEN
        INSERT INTO draftsman.deliveries AS d
               (job, question, channel, target, thread_key, kind, dedupe_key, payload)
        SELECT q.job, q.question, q.channel, q.target, q.thread_key, 'notice', key,
               draftsman.sentence('attention.delegated_to_you', jsonb_build_object(
                   'job', delegate_question.job, 'question', delegate_question.question,
                   'by', name))
          FROM draftsman.deliveries q
         WHERE q.thread_key = 'D-' || delegate_question.job || ' ' || direct.channel || ':' || direct.target
           AND q.question = delegate_question.question
           AND q.kind = 'question' AND q.status NOT IN ('superseded', 'dead_letter')
         LIMIT 1
        RETURNING d.seq INTO sent;
        sent := coalesce(sent, draftsman.send_question(
            job, question, 0, delegate, direct.channel, direct.target, NULL));
    END IF;
    INSERT INTO draftsman.question_notifications (job, question, step, recipient, outcome, delivery)
    VALUES (job, question, 0, delegate, CASE WHEN sent IS NULL THEN 'inbox' ELSE 'sent' END, sent)
        ON CONFLICT DO NOTHING;
    IF former IS DISTINCT FROM delegate THEN
        PERFORM draftsman.deliver_notice(job, question, key,
            draftsman.sentence('attention.delegated', jsonb_build_object(
                'job', job, 'question', question, 'by', name, 'to', delegate)));
    END IF;
    UPDATE draftsman.question_ladders l SET due_at = greatest(l.due_at, until)
     WHERE l.job = delegate_question.job AND l.question = delegate_question.question
       AND l.due_at IS NOT NULL;
    RETURN until;
END $$;

-- The question is delegated to another person: a message to the former delegate alone that waits,
-- for example for the hours of that person, is not sent, and notices name the new delegate.
CREATE OR REPLACE FUNCTION draftsman.replace_delegate(
    job bigint, question int, former text, delegated_by text, delegate text
) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM draftsman.deliveries d
     WHERE d.job = replace_delegate.job AND d.question = replace_delegate.question
       AND d.status = 'pending'
     ORDER BY d.seq FOR NO KEY UPDATE;
    UPDATE draftsman.deliveries d SET status = 'superseded', next_attempt_at = NULL
     WHERE d.job = replace_delegate.job AND d.question = replace_delegate.question
       AND d.kind = 'question' AND d.status = 'pending'
       AND d.thread_key = (
           SELECT f.thread_key FROM draftsman.question_notifications n
             JOIN draftsman.deliveries f ON f.seq = n.delivery
            WHERE n.job = replace_delegate.job AND n.question = replace_delegate.question
              AND n.step = 0 AND n.recipient = former)
       AND NOT EXISTS (SELECT FROM draftsman.job_targets t
                        WHERE t.job = replace_delegate.job AND t.thread_key = d.thread_key)
       AND NOT EXISTS (SELECT FROM draftsman.question_notifications n
                        WHERE n.job = replace_delegate.job
                          AND n.question = replace_delegate.question
                          AND n.step > 0 AND n.delivery = d.seq);
    UPDATE draftsman.deliveries d SET status = 'superseded', next_attempt_at = NULL
     WHERE d.job = replace_delegate.job AND d.question = replace_delegate.question
       AND d.kind = 'notice' AND d.status = 'pending'
       AND starts_with(d.dedupe_key, format('delegated:%s:', replace_delegate.question));
    INSERT INTO draftsman.deliveries
           (job, question, original, channel, target, thread, thread_key, kind, payload)
    SELECT d.job, d.question, d.seq, d.channel, d.target, d.thread, d.thread_key, 'question_closed',
           draftsman.sentence(CASE WHEN d.payload ->> 'sentence' = 'attention.delegated'
                                 THEN 'attention.delegated_again'
                                 ELSE 'attention.delegated_to_you_again' END,
               d.payload -> 'values'
               || jsonb_build_object('then_by', delegated_by, 'then_to', delegate))
      FROM draftsman.deliveries d
     WHERE d.job = replace_delegate.job AND d.question = replace_delegate.question
       AND d.kind = 'notice'
       AND EXISTS (SELECT FROM draftsman.channels c WHERE c.name = d.channel AND c.takes_answers)
       AND d.status IN ('sending', 'unconfirmed', 'sent')
       AND starts_with(d.dedupe_key, format('delegated:%s:', replace_delegate.question))
       AND NOT EXISTS (SELECT FROM draftsman.deliveries e
                        WHERE e.job = replace_delegate.job AND e.original = d.seq)
     ORDER BY d.seq;
END $$;

-- The person in whose name the session delays reminders of a question; raises an error without the
-- right. `person` counts in a session of the owner only.
CREATE OR REPLACE FUNCTION draftsman.require_responder(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8
) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := draftsman.session_kind();
    name text := CASE WHEN kind = 'owner' THEN person
                      ELSE draftsman.person_of(source::text, actor_id) END;
BEGIN
    IF kind = 'worker' OR NOT draftsman.may_act_as(source || ':' || actor_id) OR name IS NULL
       OR (kind <> 'owner' AND NOT (draftsman.may_answer(job, question, name) AND EXISTS (
           SELECT FROM draftsman.job_questions q
            WHERE q.job = require_responder.job AND q.ordinal = question
              AND q.status = 'open'))) THEN
        PERFORM draftsman.deny_access('attention.delay', jsonb_build_object(
                    'source', source, 'account', actor_id, 'job', job, 'question', question));
    END IF;
    IF seconds <= 0 OR seconds > 86400 THEN
        PERFORM draftsman.deny_access('attention.delay_time');
    END IF;
    RETURN name;
END $$;

-- Ladders -----------------------------------------------------------------------------------------

-- Takes the step of a ladder that is due, or with `later` postpones it; false if another session
-- took or delayed it, or the question closed. `notices` are the people and targets of the step,
-- `names` those who may answer from now on, if the step escalates; the next step follows after
-- `seconds`.
CREATE OR REPLACE FUNCTION draftsman.take_ladder_step(
    job bigint, question int, step int, due_at timestamptz, later timestamptz, notices jsonb,
    names text[], seconds float8
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    taken  draftsman.question_ladders;
    notice record;
    sent   bigint;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') THEN
        PERFORM draftsman.deny_access('attention.ladder_step');
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT * INTO taken FROM draftsman.question_ladders l
     WHERE l.job = take_ladder_step.job AND l.question = take_ladder_step.question
       AND l.step = take_ladder_step.step AND l.due_at = take_ladder_step.due_at
       AND l.due_at <= draftsman.now()
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF later IS NOT NULL THEN
        UPDATE draftsman.question_ladders l SET due_at = later
         WHERE l.job = take_ladder_step.job AND l.question = take_ladder_step.question;
        RETURN true;
    END IF;
    FOR notice IN SELECT * FROM jsonb_to_recordset(notices) AS n (
        recipient text, outcome text, away_until timestamptz, channel draftsman.channel,
        target text, thread text, text text)
    LOOP
        sent := NULL;
        IF notice.channel IS NOT NULL THEN
            sent := draftsman.send_question(
                job, question, step, notice.recipient,
                notice.channel, notice.target, notice.thread);
        ELSIF notice.text IS NOT NULL THEN
            PERFORM draftsman.deliver_notice(
                job, question, format('ladder:%s:%s:%s', question, step, notice.recipient),
                jsonb_build_object('text', notice.text, 'names_job', true));
        ELSIF notice.outcome = 'thread' THEN
            SELECT d.seq INTO sent FROM draftsman.deliveries d
             WHERE d.job = take_ladder_step.job AND d.question = take_ladder_step.question
               AND d.kind = 'question'
             ORDER BY d.seq
             LIMIT 1;
        END IF;
        INSERT INTO draftsman.question_notifications
               (job, question, step, recipient, outcome, away_until, delivery)
        VALUES (job, question, step, notice.recipient, notice.outcome, notice.away_until, sent);
    END LOOP;
    IF (taken.steps -> (step - 1) ->> 'escalate')::boolean THEN
        UPDATE draftsman.job_questions q
           SET approvers = q.approvers || ARRAY(
               SELECT DISTINCT n FROM unnest(names) n WHERE n <> ALL (q.approvers) ORDER BY n)
         WHERE q.job = take_ladder_step.job AND q.ordinal = question AND NOT q.approvers @> names;
    END IF;
    UPDATE draftsman.question_ladders l
       SET step = l.step + 1, due_at = draftsman.now() + make_interval(secs => seconds)
     WHERE l.job = take_ladder_step.job AND l.question = take_ladder_step.question;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT take_ladder_step.job, 'question_notified', 'system', jsonb_build_object(
               'question', take_ladder_step.question, 'step', take_ladder_step.step,
               'ladder', taken.name,
               'notified', coalesce(jsonb_agg(n.recipient ORDER BY n.recipient) FILTER (
                   WHERE n.outcome IN ('sent', 'thread', 'inbox')), '[]'),
               'skipped', coalesce(jsonb_object_agg(n.recipient, n.outcome) FILTER (
                   WHERE n.outcome NOT IN ('sent', 'thread', 'inbox')), '{}'))
      FROM draftsman.question_notifications n
     WHERE n.job = take_ladder_step.job AND n.question = take_ladder_step.question
       AND n.step = take_ladder_step.step;
    RETURN true;
END $$;

-- Whether `take_ladder_step` adds people to those who may answer.
CREATE OR REPLACE FUNCTION draftsman.escalates_by_ladder(
    before draftsman.job_questions, after draftsman.job_questions
) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT has_schema_privilege(current_user, 'draftsman', 'CREATE')
       AND after.approvers @> before.approvers AND after.approvers <> before.approvers
       AND EXISTS (SELECT FROM draftsman.question_ladders l
                    WHERE l.job = before.job AND l.question = before.ordinal
                      AND l.due_at <= draftsman.now()
                      AND (l.steps -> (l.step - 1) ->> 'escalate')::boolean)
$$;

-- A closed question has no further step.
CREATE OR REPLACE FUNCTION draftsman.end_ladder() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE draftsman.question_ladders SET due_at = NULL
     WHERE job = NEW.job AND question = NEW.ordinal AND due_at IS NOT NULL;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_questions_ladder AFTER UPDATE OF status ON draftsman.job_questions
    FOR EACH ROW
    WHEN (OLD.status = 'open' AND NEW.status <> 'open')
    EXECUTE FUNCTION draftsman.end_ladder();

-- Sends a question to a person or target outside of the targets of its job, which may have it
-- already; returns the delivery. A later step, and another delegation, sends it again.
CREATE OR REPLACE FUNCTION draftsman.send_question(
    job bigint, question int, step int, recipient text, channel draftsman.channel,
    target text, thread text
) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    place text := 'D-' || job || ' ' || channel || ':' || target || coalesce('/' || thread, '');
    key   text := 'question:' || question;
    sent  bigint;
BEGIN
    IF EXISTS (SELECT FROM draftsman.question_notifications n
                WHERE n.job = send_question.job AND n.question = send_question.question
                  AND n.recipient = send_question.recipient
                  AND n.delivery IS NOT NULL) THEN
        key := key || ':' || (SELECT count(*) FROM draftsman.deliveries d
                               WHERE d.thread_key = place AND d.question = send_question.question);
    END IF;
    INSERT INTO draftsman.deliveries AS d
           (job, question, channel, target, thread, thread_key, kind, dedupe_key)
    VALUES (send_question.job, send_question.question, send_question.channel,
            send_question.target, send_question.thread, place, 'question', key)
        ON CONFLICT DO NOTHING
    RETURNING d.seq INTO sent;
    RETURN coalesce(sent, (SELECT d.seq FROM draftsman.deliveries d
                            WHERE d.thread_key = place AND d.dedupe_key = key));
END $$;

-- Digests -----------------------------------------------------------------------------------------

-- Sets the hours of a person, or ends their digests (no hours). Operators may set those of others;
-- `person` counts for them and in a session of the owner.
CREATE OR REPLACE FUNCTION draftsman.choose_digest(
    person text, hours time[], timezone text, actor text
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT draftsman.has_right(actor, CASE WHEN draftsman.person_of_actor(actor) = person THEN NULL
                                      ELSE 'operator' END, '{bot,person}') THEN
        PERFORM draftsman.deny_access('attention.digest', jsonb_build_object(
                    'actor', actor, 'person', person));
    END IF;
    PERFORM draftsman.now() AT TIME ZONE timezone;  -- raises an error for an unknown zone
    DELETE FROM draftsman.digest_hours d WHERE d.person = choose_digest.person;
    INSERT INTO draftsman.digest_hours (person, hours, timezone)
    SELECT person, hours, timezone WHERE cardinality(hours) > 0;
END $$;

-- The time of the next digest of a person; NULL without digests.
CREATE OR REPLACE FUNCTION draftsman.next_digest(person text) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT min(s.at)
      FROM draftsman.digest_hours d
     CROSS JOIN unnest(d.hours) AS h (hour)
     CROSS JOIN generate_series(0, 2) AS days
     CROSS JOIN LATERAL (
           SELECT (((draftsman.now() AT TIME ZONE d.timezone)::date + days) + h.hour)
                  AT TIME ZONE d.timezone AS at) s
     WHERE d.person = next_digest.person AND s.at > draftsman.now()
$$;

-- Plans the digests of a new question, of each person who would be notified of it: its requester,
-- the people to whom it is addressed, or all responders if the requester is not known; and people
-- whose own target it has. An approval, a critical question, one about a budget, one with a ladder,
-- and one that expires before the digest are never planned: people are notified at once.
CREATE OR REPLACE FUNCTION draftsman.plan_digests(asked draftsman.job_questions) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO draftsman.digest_questions (job, question, person, digest_at)
    SELECT asked.job, asked.ordinal, d.person, n.at
      FROM draftsman.digest_hours d
     CROSS JOIN LATERAL (SELECT draftsman.next_digest(d.person) AS at) n
      JOIN draftsman.job_requests r ON r.number = asked.job
     WHERE asked.kind = 'input' AND asked.key <> 'agent:budget'
       AND NOT EXISTS (SELECT FROM draftsman.question_times t WHERE t.job = asked.job
                          AND t.question = asked.ordinal AND t.critical)
       AND NOT EXISTS (SELECT FROM draftsman.question_ladders l WHERE l.job = asked.job
                          AND l.question = asked.ordinal)
       AND coalesce(asked.expires_at > n.at, true)
       AND (r.invoker_id = d.person OR draftsman.list_includes(d.person, asked.approvers)
            OR (draftsman.has_role(d.person, 'responder') AND NOT EXISTS (
                SELECT FROM draftsman.people p WHERE p.name = r.invoker_id))
            OR EXISTS (SELECT FROM draftsman.job_targets t
                        WHERE t.job = asked.job
                          AND draftsman.person_of_target(t.channel, t.target) = d.person))
        ON CONFLICT DO NOTHING
$$;

-- Whether a target, or a thread in it, gets no message of a question: it shows an identical
-- question, or reaches only a person who has the question in a digest.
CREATE OR REPLACE FUNCTION draftsman.is_silent(
    job bigint, question int, channel draftsman.channel, target text,
    thread text DEFAULT NULL
) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.is_shown(is_silent.job, is_silent.question, channel, target, thread)
        OR EXISTS (
        SELECT FROM draftsman.digest_questions d
         WHERE d.job = is_silent.job AND d.question = is_silent.question
           AND d.person = draftsman.person_of_target(channel, target))
$$;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER question_views_immutable BEFORE UPDATE OR DELETE
    ON draftsman.question_views FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('attention.first_view_kept');
CREATE OR REPLACE TRIGGER question_views_no_truncate BEFORE TRUNCATE ON draftsman.question_views
    EXECUTE FUNCTION draftsman.refuse_change('attention.first_view_kept');

CREATE OR REPLACE TRIGGER question_notifications_immutable BEFORE UPDATE OR DELETE
    ON draftsman.question_notifications FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('attention.step_taken_once');
CREATE OR REPLACE TRIGGER question_notifications_no_truncate BEFORE TRUNCATE
    ON draftsman.question_notifications
    EXECUTE FUNCTION draftsman.refuse_change('attention.step_taken_once');

CREATE OR REPLACE TRIGGER digest_questions_sent_once BEFORE UPDATE ON draftsman.digest_questions
    FOR EACH ROW
    WHEN (OLD.sent_at IS NOT NULL OR NEW.sent_at IS NULL
          OR (OLD.job, OLD.question, OLD.person, OLD.digest_at)
             <> (NEW.job, NEW.question, NEW.person, NEW.digest_at))
    EXECUTE FUNCTION draftsman.refuse_change('attention.single_digest');
CREATE OR REPLACE TRIGGER digest_questions_no_delete BEFORE DELETE ON draftsman.digest_questions
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('attention.single_digest');
CREATE OR REPLACE TRIGGER digest_questions_no_truncate BEFORE TRUNCATE ON draftsman.digest_questions
    EXECUTE FUNCTION draftsman.refuse_change('attention.single_digest');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_attention() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.figures_of(),
        draftsman.escalates_by_ladder(draftsman.job_questions, draftsman.job_questions),
        draftsman.next_digest(text),
        draftsman.is_silent(bigint, int, draftsman.channel, text, text)');
    SELECT draftsman.grant_to('bot person', 'EXECUTE ON FUNCTION
        draftsman.record_views(bigint[], int[], draftsman.channel, text, text),
        draftsman.acknowledge_question(bigint, int, draftsman.channel, text, text, float8),
        draftsman.snooze_question(bigint, int, draftsman.channel, text, text, float8),
        draftsman.delegate_question(
            bigint, int, draftsman.channel, text, text, float8, text, draftsman.channel, text),
        draftsman.choose_digest(text, time[], text, text)');
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.take_ladder_step(
            bigint, int, int, timestamptz, timestamptz, jsonb, text[], float8)');
    SELECT draftsman.grant_to('worker', 'INSERT (job, question, name, steps, owners, due_at)
        ON draftsman.question_ladders');
    SELECT draftsman.grant_to('worker', 'UPDATE (sent_at) ON draftsman.digest_questions');
$$;
