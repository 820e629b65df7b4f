-- Questions: their changes, answers, approval tokens, decisions that can be undone, and identical
-- questions of several jobs.

INSERT INTO draftsman.schema_functions (name) VALUES ('questions')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Questions as they are read ----------------------------------------------------------------------

CREATE OR REPLACE VIEW draftsman.questions AS
    SELECT q.job, q.ordinal, q.run, q.key, q.kind, q.status, q.text, q.choices, q.freeform_allowed,
           q.context_snippet, q.approvers, q.quorum, q.on_expire, q.default_value, q.on_deny,
           q.on_changes, q.digest, q.action, q.resolution, q.asked_at, q.expires_at, q.answered_at,
           t.escalate_to, t.escalated_at, coalesce(t.reminders, 0) AS reminders, t.patch_sha256,
           coalesce(t.critical, false) AS critical,
           q.alternative_of, q.answer_kind
      FROM draftsman.job_questions q
      LEFT JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal;

-- Changes -----------------------------------------------------------------------------------------

-- Checks every change of a question that is not made by the owner: people and bots change
-- questions through functions only, workers as their sweeps and runs do.
CREATE OR REPLACE FUNCTION draftsman.check_question_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind  text := draftsman.session_kind();
    to_be text;
BEGIN
    IF kind = 'owner' THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'open' THEN
            PERFORM draftsman.deny_access('questions.new_is_open');
        END IF;
        RETURN NEW;
    END IF;
    IF kind <> 'worker' AND NOT has_schema_privilege(current_user, 'draftsman', 'CREATE') THEN
        PERFORM draftsman.deny_access('questions.direct_change');
    END IF;
    IF OLD.status = 'open' AND NEW.status <> 'open' THEN
        IF (CASE WHEN NEW.resolution ->> 'via' = 'rule' AND NEW.status = 'answered'
            THEN draftsman.is_allowed_by_rule(OLD.job, OLD.ordinal, NEW.resolution)
            ELSE draftsman.is_resolution_valid(OLD, NEW.status, NEW.resolution)
            END) IS NOT TRUE THEN
            PERFORM draftsman.deny_access('questions.unsupported_resolution', jsonb_build_object(
                        'job', NEW.job, 'question', NEW.ordinal,
                        'resolution', NEW.resolution::text));
        END IF;
    ELSIF kind = 'worker' AND OLD.status = 'open' THEN
        SELECT t.escalate_to INTO to_be FROM draftsman.question_times t
         WHERE t.job = OLD.job AND t.question = OLD.ordinal AND t.escalated_at IS NULL;
        IF (OLD.on_expire = 'escalate' AND OLD.expires_at <= draftsman.now()
            AND NEW.approvers = array_append(array_remove(OLD.approvers, to_be), to_be)) IS NOT TRUE
           AND NOT draftsman.escalates_by_ladder(OLD, NEW) THEN
            PERFORM draftsman.deny_access('questions.early_escalation');
        END IF;
    ELSIF OLD.status <> 'open' AND (NEW.approvers, NEW.expires_at, NEW.answered_at, NEW.resolution)
          IS DISTINCT FROM (OLD.approvers, OLD.expires_at, OLD.answered_at,
                            '{"outcome": "superseded", "via": "system"}'::jsonb) THEN
        PERFORM draftsman.deny_access('questions.closed');
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER job_questions_session BEFORE INSERT OR UPDATE ON draftsman.job_questions
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_question_change();

-- Whether the stored answers justify this resolution of a question.
CREATE OR REPLACE FUNCTION draftsman.is_resolution_valid(
    asked draftsman.job_questions, after draftsman.question_status, how jsonb
) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN after = 'canceled' THEN true
        WHEN after = 'expired' OR how ->> 'via' = 'policy' THEN
            asked.expires_at <= draftsman.now()
            AND (asked.on_expire = 'default') = (after = 'answered')
            AND (asked.on_expire <> 'default' OR how ->> 'value' = asked.default_value)
            AND how - '{outcome,via,value}'::text[] = '{}'
            AND (asked.on_expire <> 'escalate' OR EXISTS (
                SELECT FROM draftsman.question_times t WHERE t.job = asked.job
                   AND t.question = asked.ordinal AND t.escalated_at IS NOT NULL))
        WHEN after <> 'answered' OR how ->> 'via' IS DISTINCT FROM 'person' THEN false
        WHEN asked.kind = 'input' THEN how ->> 'outcome' = 'answered' AND EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = asked.job AND a.question = asked.ordinal AND a.accepted
               AND a.payload ->> 'value' IS NOT DISTINCT FROM how ->> 'value'
               AND a.payload ->> 'text' IS NOT DISTINCT FROM how ->> 'text'
               AND how -> 'by' = jsonb_build_array(a.voter))
        WHEN how ->> 'outcome' = 'denied'
             OR (how ->> 'outcome' = 'changes_requested' AND asked.on_changes <> 'refuse')
        THEN EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = asked.job AND a.question = asked.ordinal AND a.accepted
               AND a.payload ->> 'decision' = CASE how ->> 'outcome' WHEN 'denied' THEN 'deny'
                                              ELSE 'request_changes' END
               AND how -> 'by' = jsonb_build_array(a.voter)
               AND coalesce(how ->> 'reason', '') = coalesce(a.payload ->> 'reason', '')
               AND how -> 'comments' IS NOT DISTINCT FROM a.payload -> 'comments')
        WHEN how ->> 'outcome' = 'approved' THEN (
            SELECT count(DISTINCT a.voter) >= asked.quorum
                   AND how -> 'by' <@ jsonb_agg(a.voter) AND jsonb_agg(a.voter) <@ (how -> 'by')
                   AND (coalesce(how ->> 'reason', '') = ''
                        OR how -> 'reason' <@ jsonb_agg(a.payload -> 'reason'))
              FROM draftsman.job_answers a
             WHERE a.job = asked.job AND a.question = asked.ordinal AND a.accepted
               AND a.payload ->> 'decision' = 'approve')
        ELSE false END
$$;

-- Schedules the reminder of a question that was asked or extended, unless it has a ladder; clears
-- it when it closes.
CREATE OR REPLACE FUNCTION draftsman.schedule_reminder() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.status <> 'open' THEN
        UPDATE draftsman.question_times SET remind_at = NULL
         WHERE job = NEW.job AND question = NEW.ordinal AND remind_at IS NOT NULL;
    ELSE
        INSERT INTO draftsman.question_times AS t (job, question, remind_at)
        SELECT NEW.job, NEW.ordinal, draftsman.next_reminder(draftsman.now(), CASE WHEN NOT EXISTS (
               SELECT FROM draftsman.question_ladders l
                WHERE l.job = NEW.job AND l.question = NEW.ordinal) THEN NEW.expires_at END)
            ON CONFLICT (job, question) DO UPDATE
               SET since = excluded.since,
                   remind_at = CASE WHEN t.reminders < 3 THEN excluded.remind_at END;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_questions_first_reminder AFTER INSERT ON draftsman.job_questions
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.schedule_reminder();
CREATE OR REPLACE TRIGGER job_questions_reminder AFTER UPDATE OF status, expires_at
    ON draftsman.job_questions FOR EACH ROW
    WHEN (OLD.status = 'open'
          AND (NEW.status <> 'open' OR NEW.expires_at IS DISTINCT FROM OLD.expires_at))
    EXECUTE FUNCTION draftsman.schedule_reminder();

-- At 50 % and at 90 % of the time to answer, whichever comes next; NULL after both, and without an
-- expiry. Computed in seconds: a day may be longer or shorter in the time zone of the session.
CREATE OR REPLACE FUNCTION draftsman.next_reminder(
    began timestamptz, ends timestamptz
) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT min(p.at)
      FROM unnest(ARRAY[0.5, 0.9]) AS part
     CROSS JOIN LATERAL (
           SELECT began + make_interval(secs => (extract(epoch FROM ends - began) * part)::float8)
                  AS at) p
     WHERE p.at > draftsman.now()
$$;

-- Extends the expiry of an open question; without seconds, removes it. An expiry that was removed is
-- extended from where it was, by operators only: a requester could shorten what another person
-- allowed. A question that was asked without an expiry gets none.
CREATE OR REPLACE FUNCTION draftsman.extend_question(
    job bigint, ordinal int, seconds float8, actor text
) RETURNS TABLE (expires_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    until   timestamptz;
    former  timestamptz;
    removed timestamptz;
BEGIN
    PERFORM draftsman.require_control(job, actor, 'operator');
    IF draftsman.session_kind() = 'worker' THEN
        PERFORM draftsman.deny_access('questions.workers_extend');
    END IF;
    IF seconds <= 0 OR seconds > 366 * 86400 THEN
        PERFORM draftsman.deny_access('questions.extension_time');
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE;
    SELECT q.expires_at, t.removed_expiry INTO former, removed
      FROM draftsman.job_questions q
      JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal
     WHERE q.job = extend_question.job AND q.ordinal = extend_question.ordinal;
    IF former IS NULL AND removed IS NOT NULL AND seconds IS NOT NULL
       AND draftsman.session_kind() <> 'owner'
       AND NOT draftsman.has_role(draftsman.person_of_actor(actor), 'operator') THEN
        PERFORM draftsman.deny_access('questions.restore_expiry', jsonb_build_object(
                    'actor', actor));
    END IF;
    UPDATE draftsman.job_questions q
       SET expires_at = CASE WHEN seconds IS NOT NULL AND coalesce(former, removed) IS NOT NULL THEN
           greatest(coalesce(former, removed), draftsman.now()) + make_interval(secs => seconds) END
     WHERE q.job = extend_question.job AND q.ordinal = extend_question.ordinal AND q.status = 'open'
       AND (coalesce(q.expires_at > draftsman.now(), true)
            OR (q.on_expire = 'escalate' AND NOT EXISTS (
                SELECT FROM draftsman.question_times t
                 WHERE t.job = q.job AND t.question = q.ordinal AND t.escalated_at IS NOT NULL)))
    RETURNING q.expires_at INTO until;
    IF FOUND THEN
        UPDATE draftsman.question_times t
           SET removed_expiry = CASE WHEN until IS NULL THEN coalesce(former, removed) END
         WHERE t.job = extend_question.job AND t.question = extend_question.ordinal;
        PERFORM draftsman.edit_question(job, ordinal);
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES (job, 'question_extended', actor,
                jsonb_build_object('question', ordinal, 'expires_at', until));
        RETURN QUERY SELECT until;
    END IF;
END $$;

-- Records that an accepted answer was edited or deleted in its chat, once for each change; the
-- decision stays. The caller holds the lock of the job. Returns whether it is a change of an answer
-- of this actor.
CREATE OR REPLACE FUNCTION draftsman.record_answer_change(
    job bigint, question int, event text, kind text, actor text, detail jsonb
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answered draftsman.job_answers;
    changed  jsonb;
BEGIN
    IF NOT draftsman.has_right(actor, NULL, '{bot}')
       OR record_answer_change.kind NOT IN ('answer_edited', 'answer_deleted')
       OR pg_column_size(detail) > 16384 THEN
        PERFORM draftsman.deny_access('questions.record_answer_change');
    END IF;
    SELECT a.* INTO answered FROM draftsman.job_answers a
     WHERE a.job = record_answer_change.job AND a.question = record_answer_change.question
       AND a.source_event_id = event AND a.accepted
       AND (draftsman.session_kind() = 'owner' OR a.source || ':' || a.responder_id = actor);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    changed := detail
        || jsonb_build_object('question', record_answer_change.question, 'answer', answered.id,
                              'event', event);
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT record_answer_change.job, record_answer_change.kind, actor, changed
     WHERE NOT EXISTS (SELECT FROM draftsman.events e
                        WHERE e.job = record_answer_change.job
                          AND e.kind = record_answer_change.kind
                          AND e.payload @> changed);
    RETURN FOUND;
END $$;

-- Answers -----------------------------------------------------------------------------------------

-- Whether a person may answer a question: an approval as one of its approvers, and its requester
-- only if the policy allows it; another question as its requester, as a responder, or as one of the
-- people that it is addressed to. `identity` is the account of a requester who may be no person.
CREATE OR REPLACE FUNCTION draftsman.may_answer(
    job bigint, question int, person text, identity text DEFAULT NULL
) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((
        SELECT CASE WHEN q.kind = 'approval' THEN
                   draftsman.has_role(person, 'approver')
                   AND draftsman.list_includes(person, q.approvers)
                   AND (person <> r.invoker_id
                        OR (SELECT p.self_approval FROM draftsman.approval_policy p)) IS TRUE
               ELSE r.invoker_id IN (person, identity) OR draftsman.has_role(person, 'responder')
                    OR draftsman.list_includes(person, q.approvers) END
          FROM draftsman.job_questions q
          JOIN draftsman.job_requests r ON r.number = q.job
         WHERE q.job = may_answer.job AND q.ordinal = question), false)
$$;

-- Whether a text is a free answer of a kind, as `normalize_answer` returns it.
CREATE OR REPLACE FUNCTION draftsman.is_answer(
    kind draftsman.answer_kind, answer text
) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE kind WHEN 'integer' THEN answer ~ '^-?[0-9]{1,30}$'
                     WHEN 'number' THEN answer ~ '^-?[0-9]{1,30}([.][0-9]{1,30})?$'
                     WHEN 'date' THEN answer ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'
                     WHEN 'person' THEN false
                     ELSE true END
$$;

-- An accepted answer comes from a session that may act for its channel, in the name of the person
-- of its identity, and that person may answer the question. A worker stores the answer that came
-- with the request, and that of a decision that it applies, in time if due before the expiry.
CREATE OR REPLACE FUNCTION draftsman.check_answer() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind    text := draftsman.session_kind();
    asked   draftsman.job_questions;
    held    record;
    asker   text;
    answers jsonb;
    person  text;
    fits    boolean;
BEGIN
    NEW.session_role := kind || ':' || session_user;
    IF kind = 'owner' THEN
        RETURN NEW;
    END IF;
    SELECT j.invoker_id, j.overrides -> 'answers' INTO asker, answers
      FROM draftsman.job_requests j WHERE j.number = NEW.job;
    SELECT * INTO asked FROM draftsman.job_questions q
     WHERE q.job = NEW.job AND q.ordinal = NEW.question;
    SELECT * INTO held FROM draftsman.applied_decision(NEW);
    NEW.session_role := coalesce(held.session_role, NEW.session_role);
    IF NOT draftsman.may_act_as(NEW.source || ':' || NEW.responder_id)
       OR (kind = 'worker' AND held.id IS NULL
           AND (NEW.source = 'internal' AND NEW.kind = 'input' AND NEW.responder_id = asker
                AND answers ? asked.key) IS NOT TRUE) THEN
        PERFORM draftsman.deny_access('questions.answer_as', jsonb_build_object(
                    'source', NEW.source, 'account', NEW.responder_id));
    END IF;
    person := CASE WHEN kind = 'worker' AND held.id IS NULL THEN asker
              ELSE draftsman.person_of(NEW.source::text, NEW.responder_id) END;
    NEW.voter := coalesce(person, NEW.source || ':' || NEW.responder_id);
    IF NEW.accepted THEN
        fits := CASE WHEN asked.kind = 'approval'
                THEN NEW.payload ->> 'decision' IN ('approve', 'deny')
                     OR (NEW.payload ->> 'decision' = 'request_changes'
                         AND asked.on_changes <> 'refuse')
                WHEN NEW.payload ? 'value'
                THEN EXISTS (SELECT FROM jsonb_array_elements(asked.choices) c
                              WHERE c -> 'value' = NEW.payload -> 'value')
                ELSE asked.freeform_allowed AND jsonb_typeof(NEW.payload -> 'text') = 'string'
                     AND draftsman.is_answer(asked.answer_kind, NEW.payload ->> 'text') END;
        IF NEW.kind <> asked.kind OR asked.status <> 'open' OR fits IS NOT TRUE
           OR NOT draftsman.may_answer(NEW.job, NEW.question, person,
                                       NEW.source || ':' || NEW.responder_id)
           OR (asked.expires_at <= coalesce(held.applies_at, draftsman.now())
               AND (asked.on_expire <> 'escalate' OR EXISTS (
               SELECT FROM draftsman.question_times t WHERE t.job = NEW.job
                  AND t.question = NEW.question AND t.escalated_at IS NOT NULL))) THEN
            PERFORM draftsman.deny_access('questions.answer', jsonb_build_object(
                        'voter', NEW.voter, 'job', NEW.job, 'question', NEW.question));
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER job_answers_session BEFORE INSERT ON draftsman.job_answers FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_answer();

-- An accepted answer and its effect are committed together: an answer, a denial, a request for
-- changes or the last vote of a quorum closes its question. No other answer could close it any more.
CREATE OR REPLACE FUNCTION draftsman.check_answer_effect() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (
        SELECT FROM draftsman.job_questions q
         WHERE q.job = NEW.job AND q.ordinal = NEW.question AND q.status = 'open'
           AND (q.kind = 'input' OR NEW.payload ->> 'decision' <> 'approve' OR q.quorum <= (
               SELECT count(DISTINCT a.voter) FROM draftsman.job_answers a
                WHERE a.job = q.job AND a.question = q.ordinal AND a.accepted))) THEN
        PERFORM draftsman.refuse('DM003', 'questions.answer_without_effect', jsonb_build_object(
                    'job', NEW.job, 'question', NEW.question));
    END IF;
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS job_answers_effect ON draftsman.job_answers;
CREATE CONSTRAINT TRIGGER job_answers_effect AFTER INSERT ON draftsman.job_answers
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.accepted)
    EXECUTE FUNCTION draftsman.check_answer_effect();

-- Writes the event of a refused answer, or of a vote below the quorum. That of an answer that
-- resolves its question is written with the resolution.
CREATE OR REPLACE FUNCTION draftsman.record_answer() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    votes  bigint;
    quorum int;
BEGIN
    IF NOT NEW.accepted THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES (NEW.job, 'answer_refused', NEW.source || ':' || NEW.responder_id,
                jsonb_build_object('question', NEW.question, 'reason', left(NEW.reason, 1000),
                                   'voter', left(NEW.voter, 1000)));
    ELSIF NEW.payload ->> 'decision' = 'approve' THEN
        SELECT count(DISTINCT a.voter), max(q.quorum) INTO votes, quorum
          FROM draftsman.job_questions q
          JOIN draftsman.job_answers a ON a.job = q.job AND a.question = q.ordinal
         WHERE q.job = NEW.job AND q.ordinal = NEW.question AND a.accepted;
        IF votes < quorum THEN
            INSERT INTO draftsman.job_events (job, kind, actor, payload)
            VALUES (NEW.job, 'vote_received', NEW.source || ':' || NEW.responder_id,
                    jsonb_build_object('question', NEW.question, 'voter', NEW.voter,
                                       'votes', votes));
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_answers_recorded AFTER INSERT ON draftsman.job_answers FOR EACH ROW
    WHEN (NOT NEW.accepted OR NEW.kind = 'approval')
    EXECUTE FUNCTION draftsman.record_answer();

-- The pending decision that this transaction applies, and that an answer belongs to: to its
-- question, or to one that is identical.
CREATE OR REPLACE FUNCTION draftsman.applied_decision(
    answer draftsman.job_answers
) RETURNS SETOF draftsman.pending_decisions
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.* FROM draftsman.pending_decisions p
     WHERE p.taken_by = pg_current_xact_id_if_assigned() AND p.source = answer.source
       AND p.source_event_id = answer.source_event_id AND p.actor_id = answer.responder_id
       AND p.payload = answer.payload - '{late,refusal}'::text[]
       AND ((p.job, p.question) = (answer.job, answer.question) OR EXISTS (
            SELECT FROM draftsman.job_questions a
              JOIN draftsman.job_questions b ON b.job = answer.job AND b.ordinal = answer.question
             WHERE a.job = p.job AND a.ordinal = p.question
               AND draftsman.digest_of(a) = draftsman.digest_of(b)))
$$;

-- Counts a refused answer that is not stored, under the name of the person or channel identity;
-- returns the number of all.
CREATE OR REPLACE FUNCTION draftsman.count_refused(
    job bigint, question int, voter text, reason text
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    counted bigint;
BEGIN
    IF draftsman.session_kind() = 'person' THEN
        voter := coalesce(draftsman.person_of('cli', session_user::text), 'cli:' || session_user);
    END IF;
    INSERT INTO draftsman.refused_answers AS r (job, question, answers, last_voter, last_reason)
    VALUES (count_refused.job, count_refused.question, 1, left(voter, 1000), left(reason, 3000))
        ON CONFLICT ON CONSTRAINT refused_answers_pkey DO UPDATE
           SET answers = r.answers + 1, last_voter = excluded.last_voter,
               last_reason = excluded.last_reason, last_at = draftsman.now()
    RETURNING answers INTO counted;
    RETURN counted;
END $$;

-- Closes a question, and resumes or ends its job; a job with other open questions waits for these.
-- The caller holds the locks of both. For a denial the error of the job contains the person who
-- denied and the reason. A request for changes is told to the agent of an approval that says so.
CREATE OR REPLACE FUNCTION draftsman.resolve_question(
    job bigint, ordinal int, status draftsman.question_status, resolution jsonb,
    job_status draftsman.job_status, actor text, detail text, kind text, error text
) RETURNS TABLE (new_status draftsman.job_status, notified text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked   draftsman.job_questions;
    is_rule boolean;
    waits   draftsman.job_status;
BEGIN
    IF NOT draftsman.may_act_as(actor) THEN
        PERFORM draftsman.deny_access('database.actor', jsonb_build_object('actor', actor));
    END IF;
    PERFORM set_config('draftsman.actor', actor, true),
            set_config('draftsman.detail', detail, true);
    UPDATE draftsman.job_questions q
       SET status = resolve_question.status, resolution = resolve_question.resolution,
           answered_at = CASE WHEN resolve_question.status = 'answered' THEN draftsman.now() END
     WHERE q.job = resolve_question.job AND q.ordinal = resolve_question.ordinal
       AND q.status = 'open'
    RETURNING q.* INTO asked;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    is_rule := resolution ->> 'via' = 'rule';
    IF draftsman.session_kind() <> 'owner' AND NOT is_rule AND NOT EXISTS (
        SELECT FROM draftsman.job_answers a
         WHERE a.job = resolve_question.job AND a.question = ordinal AND a.accepted
           AND a.source || ':' || a.responder_id = actor) THEN
        PERFORM draftsman.deny_access('questions.not_answered', jsonb_build_object(
                    'actor', actor, 'job', job, 'question', ordinal));
    END IF;
    IF draftsman.session_kind() <> 'owner'
       AND (kind <> CASE WHEN is_rule THEN 'rule_applied' ELSE 'answer_received' END
       OR status <> 'answered'
       OR job_status <> CASE WHEN resolution ->> 'outcome' = 'denied' AND asked.on_deny = 'fail'
                        THEN 'failed' ELSE 'resumed' END::draftsman.job_status) THEN
        PERFORM draftsman.deny_access('questions.answer_effect');
    END IF;
    IF draftsman.session_kind() <> 'owner' THEN
        error := CASE WHEN job_status = 'failed' THEN error END;
        detail := (jsonb_build_object('question', ordinal, 'key', asked.key)
                   || asked.resolution)::text;
        PERFORM set_config('draftsman.detail', detail, true);
    END IF;
    detail := (detail::jsonb
        || jsonb_strip_nulls(jsonb_build_object('checkpoint', (
               SELECT max(c.id) FROM draftsman.job_checkpoints c
                WHERE c.job = resolve_question.job),
               'label', draftsman.label_of(asked.choices, asked.resolution ->> 'value'),
               'waited', round(extract(epoch FROM asked.answered_at - asked.asked_at), 3)))
        || coalesce((SELECT jsonb_build_object('answer', a.id, 'source', a.source,
                                               'responder', a.responder_id)
                       FROM draftsman.job_answers a
                      WHERE a.job = resolve_question.job AND a.question = ordinal AND a.accepted
                      ORDER BY a.id DESC LIMIT 1), '{}'))::text;
    PERFORM set_config('draftsman.detail', detail, true);
    IF job_status = 'failed' AND asked.resolution ->> 'outcome' = 'denied' THEN
        error := draftsman.sentence(
            CASE WHEN asked.resolution ->> 'reason' IS NULL THEN 'questions.denied'
            ELSE 'questions.denied_because' END,
            jsonb_build_object('reason', asked.resolution ->> 'reason', 'by', (
                SELECT string_agg(name, ', ')
                  FROM jsonb_array_elements_text(asked.resolution -> 'by') name)))::text;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (job, kind, actor, detail::jsonb);
    IF asked.resolution ->> 'outcome' = 'changes_requested' AND asked.on_changes = 'tell' THEN
        PERFORM draftsman.tell_changes(job, ordinal);
    END IF;
    waits := draftsman.close_others(resolve_question.job, job_status <> 'resumed',
                                    asked.alternative_of);
    IF waits IS NOT NULL THEN
        PERFORM set_config('draftsman.detail', jsonb_build_object('question', min(q.ordinal))::text,
                           true)
           FROM draftsman.job_questions q WHERE q.job = resolve_question.job AND q.status = 'open';
        UPDATE draftsman.job_states j
           SET status = waits, version = j.version + 1, updated_at = draftsman.now()
         WHERE j.number = resolve_question.job AND j.status <> waits;
        RETURN QUERY SELECT waits, NULL::text;
        RETURN;
    END IF;
    RETURN QUERY
    UPDATE draftsman.job_states j
       SET status = job_status, version = j.version + 1, updated_at = draftsman.now(),
           last_error = coalesce(error, j.last_error),
           error_class = CASE WHEN error IS NULL THEN j.error_class
                         WHEN asked.resolution ->> 'outcome' = 'denied' THEN 'DENIED'
                         ELSE 'PERMANENT' END::draftsman.error_class,
           queued_at = CASE WHEN job_status = 'resumed' THEN draftsman.now() ELSE j.queued_at END,
           hold = CASE WHEN job_status = 'resumed' THEN j.hold END,
           finished_at = CASE WHEN job_status <> 'resumed' THEN draftsman.now() END
     WHERE j.number = job AND j.status IN ('waiting_for_input', 'waiting_for_approval')
    RETURNING j.status,
              CASE WHEN j.status = 'resumed' THEN pg_notify('draftsman_jobs', j.queue)::text END;
    PERFORM draftsman.claim_in_grace(job);
END $$;

-- Sends the request for changes of a question to the agent of its job, as a message of the person
-- who made it. The caller holds the lock of the job.
CREATE OR REPLACE FUNCTION draftsman.tell_changes(job bigint, question int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asks draftsman.job_answers;
    next int;
BEGIN
    SELECT a.* INTO asks FROM draftsman.job_answers a
     WHERE a.job = tell_changes.job AND a.question = tell_changes.question AND a.accepted
       AND a.payload ->> 'decision' = 'request_changes';
    SELECT coalesce(max(m.ordinal), 0) + 1 INTO next FROM draftsman.job_messages m
     WHERE m.job = tell_changes.job;
    IF next > 200 THEN
        PERFORM draftsman.refuse('DM004', 'questions.most_messages', jsonb_build_object(
                    'job', job));
    END IF;
    PERFORM draftsman.add_message(job, next, asks.source, format('review:%s:%s', job, question),
        asks.responder_id, asks.responder_display_name, asks.voter,
        draftsman.change_request_text(asks.payload));
END $$;

-- A request for changes as its agent gets it: `request_text` of Python is the same.
CREATE OR REPLACE FUNCTION draftsman.change_request_text(payload jsonb) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat_ws(E'\n\n', nullif(payload ->> 'reason', ''), (
           SELECT string_agg(concat(c.value ->> 'path', ':' || (c.value ->> 'line'), ': ',
                                    c.value ->> 'text'), E'\n' ORDER BY c.ordinality)
             FROM jsonb_array_elements(payload -> 'comments') WITH ORDINALITY AS c))
$$;

-- Closes the other open questions of a job: all of them if the job ends, else those of which
-- `alternative_of` lists the first. Returns the status in which the job waits for the rest, that of
-- an approval if one is open; NULL if nothing is open. The caller holds the job's lock.
CREATE OR REPLACE FUNCTION draftsman.close_others(
    job bigint, ends boolean, alternative_of int
) RETURNS draftsman.job_status
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE draftsman.job_questions q
       SET status = 'canceled', resolution = draftsman.cancellation(ends)
     WHERE q.job = close_others.job AND q.status = 'open'
       AND (ends OR q.alternative_of = close_others.alternative_of);
    SELECT max(CASE q.kind WHEN 'approval' THEN 'waiting_for_approval'
               ELSE 'waiting_for_input' END::draftsman.job_status)
      FROM draftsman.job_questions q
     WHERE q.job = close_others.job AND q.status = 'open';
$$;

-- The resolution of a question that closes with its job, or with another question.
CREATE OR REPLACE FUNCTION draftsman.cancellation(ends boolean) RETURNS jsonb
LANGUAGE sql STABLE RETURN jsonb_build_object('outcome', 'canceled', 'via', 'system', 'reason',
    draftsman.sentence(CASE WHEN ends THEN 'questions.job_ended'
                       ELSE 'questions.other_closed' END)::text);

-- The label of the choice with a value, for events; NULL if the label begins the value.
CREATE OR REPLACE FUNCTION draftsman.label_of(choices jsonb, value text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c ->> 'label' FROM jsonb_array_elements(choices) c
     WHERE c ->> 'value' = label_of.value AND NOT starts_with(label_of.value, c ->> 'label')
     LIMIT 1
$$;

-- Approval tokens ---------------------------------------------------------------------------------

-- A new token replaces the unused token of the same approver.
CREATE OR REPLACE FUNCTION draftsman.mint_token(
    token_hash text, job bigint, question int, approver text, minted_by text, actor text
) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text := draftsman.person_of('cli', session_user::text);
    minted text;
BEGIN
    IF draftsman.session_kind() <> 'owner' AND NOT (
        draftsman.session_kind() = 'person' AND draftsman.may_act_as(actor)
        AND person = approver AND minted_by = approver
        AND draftsman.may_answer(job, question, person)) IS TRUE THEN
        PERFORM draftsman.deny_access('questions.mint_token', jsonb_build_object(
                    'approver', approver));
    END IF;
    INSERT INTO draftsman.approval_tokens AS t (token_hash, job, question, approver, minted_by)
    SELECT mint_token.token_hash, q.job, q.ordinal, mint_token.approver, mint_token.minted_by
      FROM draftsman.job_questions q
     WHERE q.job = mint_token.job AND q.ordinal = mint_token.question AND q.status = 'open'
       AND q.kind = 'approval'
        ON CONFLICT ON CONSTRAINT approval_tokens_job_question_approver_key DO UPDATE
           SET token_hash = excluded.token_hash, minted_by = excluded.minted_by
         WHERE t.used_at IS NULL
    RETURNING t.approver INTO minted;
    IF FOUND THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES (job, 'token_minted', actor,
                jsonb_build_object('question', question, 'approver', approver, 'by', minted_by));
        RETURN NEXT minted;
    END IF;
END $$;

-- Records that a token was refused: always in the count of the question's refusals, and as an event
-- while they are few. The event of a person's session names an approver only if it is a known
-- person.
CREATE OR REPLACE FUNCTION draftsman.refuse_token(
    job bigint, question int, approver text, voter text, reason text, actor text, most int
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT draftsman.has_right(actor, NULL, '{person}') THEN
        PERFORM draftsman.deny_access('database.actor', jsonb_build_object('actor', actor));
    END IF;
    IF draftsman.count_refused(job, question, voter, reason) <= least(most, 100) THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES (job, 'token_refused', actor, jsonb_strip_nulls(jsonb_build_object(
            'question', question, 'reason', left(reason, 1000), 'approver',
            CASE WHEN draftsman.session_kind() = 'owner' OR EXISTS (
                      SELECT FROM draftsman.people p WHERE p.name = approver)
                 THEN left(approver, 1000) END)));
    END IF;
END $$;

-- Redeems a token together with the answer that its approver has just given.
CREATE OR REPLACE FUNCTION draftsman.use_token(token_hash text, actor text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    used draftsman.approval_tokens;
BEGIN
    UPDATE draftsman.approval_tokens t SET used_at = draftsman.now()
     WHERE t.token_hash = use_token.token_hash AND t.used_at IS NULL
       AND (draftsman.session_kind() = 'owner' OR EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = t.job AND a.question = t.question AND a.accepted AND a.voter = t.approver
               AND a.source || ':' || a.responder_id = actor AND draftsman.may_act_as(actor)))
    RETURNING t.* INTO used;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    VALUES (used.job, 'token_redeemed', actor,
            jsonb_build_object('question', used.question, 'approver', used.approver));
    RETURN true;
END $$;

-- Decisions with an undo window -------------------------------------------------------------------

-- Stores a pending decision, once for each event of its channel. Returns it, and no row if the
-- person has another pending decision on the same question or job, or the event is of another
-- person.
CREATE OR REPLACE FUNCTION draftsman.hold_decision(
    job bigint, question int, source draftsman.channel, source_event_id text, actor_id text,
    actor_display_name text, voter text, is_owner boolean, decision jsonb, payload jsonb,
    seconds float8
) RETURNS SETOF draftsman.pending_decisions
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind  text := draftsman.session_kind();
    actor text := source || ':' || actor_id;
BEGIN
    IF kind = 'worker' OR NOT draftsman.may_act_as(actor) THEN
        PERFORM draftsman.deny_access('questions.decide_as', jsonb_build_object('actor', actor));
    END IF;
    INSERT INTO draftsman.pending_decisions AS p
           (job, question, source, source_event_id, actor_id, actor_display_name, voter, is_owner,
            decision, payload, applies_at, session_role)
    VALUES (hold_decision.job, hold_decision.question, hold_decision.source,
            hold_decision.source_event_id, hold_decision.actor_id, hold_decision.actor_display_name,
            CASE WHEN kind = 'owner' THEN hold_decision.voter
                 ELSE coalesce(draftsman.person_of(hold_decision.source::text,
                                                   hold_decision.actor_id), actor) END,
            hold_decision.is_owner AND kind = 'owner', hold_decision.decision,
            hold_decision.payload, draftsman.now() + make_interval(secs => seconds),
            kind || ':' || session_user)
        ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM pg_notify('draftsman_runs', job::text);
    END IF;
    RETURN QUERY
    SELECT * FROM draftsman.pending_decisions p
     WHERE p.job = hold_decision.job AND p.source_event_id = hold_decision.source_event_id
       AND p.source = hold_decision.source AND p.actor_id = hold_decision.actor_id;
END $$;

-- Locks a pending decision for this transaction, which applies it; false if it is not due, was
-- applied or was undone. Its own person may apply it `early`.
CREATE OR REPLACE FUNCTION draftsman.take_decision(id bigint, early boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_worker boolean := draftsman.session_kind() = 'worker';
BEGIN
    UPDATE draftsman.pending_decisions p SET taken_by = pg_current_xact_id()
     WHERE p.id = take_decision.id
       AND (is_worker OR draftsman.may_act_as(p.source || ':' || p.actor_id))
       AND (p.applies_at <= draftsman.now() OR (early AND NOT is_worker));
    RETURN FOUND;
END $$;

-- Deletes the decision that this transaction has taken.
CREATE OR REPLACE FUNCTION draftsman.finish_decision(id bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM draftsman.pending_decisions p
     WHERE p.id = finish_decision.id AND p.taken_by = pg_current_xact_id();
    RETURN FOUND;
END $$;

-- Deletes a decision that has not taken effect; false if it has, or is not that of the session.
CREATE OR REPLACE FUNCTION draftsman.undo_decision(id bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    undone bigint;
BEGIN
    DELETE FROM draftsman.pending_decisions p
     WHERE p.id = undo_decision.id AND draftsman.session_kind() <> 'worker'
       AND draftsman.may_act_as(p.source || ':' || p.actor_id)
    RETURNING p.job INTO undone;
    PERFORM pg_notify('draftsman_runs', undone::text) WHERE undone IS NOT NULL;
    RETURN undone IS NOT NULL;
END $$;

-- Identical questions -----------------------------------------------------------------------------

-- The questions of a run are registered in the order of their digests, so that two runs never wait
-- for each other.
CREATE OR REPLACE FUNCTION draftsman.register_questions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.register_identical(d.asked, d.digest)
       FROM (SELECT n::draftsman.job_questions AS asked,
                    draftsman.digest_of(n::draftsman.job_questions) AS digest
               FROM new_questions n
              ORDER BY digest
             OFFSET 0) d;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_questions_register AFTER INSERT ON draftsman.job_questions
    REFERENCING NEW TABLE AS new_questions
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.register_questions();

CREATE OR REPLACE FUNCTION draftsman.unregister_question() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM draftsman.identical_questions WHERE job = NEW.job AND question = NEW.ordinal;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_questions_unregister AFTER UPDATE OF status ON draftsman.job_questions
    FOR EACH ROW
    WHEN (OLD.status = 'open' AND NEW.status <> 'open')
    EXECUTE FUNCTION draftsman.unregister_question();

-- Marks an open question that has a message.
CREATE OR REPLACE FUNCTION draftsman.mark_shown() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE draftsman.identical_questions i SET shown = true
     WHERE i.job = NEW.job AND i.question = NEW.question AND NOT i.shown;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER deliveries_shown AFTER INSERT
    OR UPDATE OF status ON draftsman.deliveries FOR EACH ROW
    WHEN (NEW.kind IN ('question', 'reminder') AND NEW.status = 'pending')
    EXECUTE FUNCTION draftsman.mark_shown();

-- Registers a question. Two identical questions are registered one after the other, so that the
-- second finds the first: a caller waits until the first is committed.
CREATE OR REPLACE FUNCTION draftsman.register_identical(
    asked draftsman.job_questions, digest text
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF digest IS NOT NULL AND NOT EXISTS (
        SELECT FROM draftsman.identical_questions i
         WHERE i.job = asked.job AND i.question = asked.ordinal) THEN
        PERFORM pg_advisory_xact_lock(
            hashtextextended('draftsman.identical_questions ' || digest, 0));
        INSERT INTO draftsman.identical_questions (digest, job, question)
        VALUES (digest, asked.job, asked.ordinal);
    END IF;
END $$;

-- The digest of all that people see of a question, and of its repository; NULL for a question that
-- is never answered together with others: an approval, whose decision is bound to the changes of
-- its job, a permission request, under whatever key, a question of the worker about this job, and
-- the second of two questions of a job that look the same. A question that shows a command, or has
-- the choices of a permission request, is one even if the agent does not declare it.
CREATE OR REPLACE FUNCTION draftsman.digest_of(asked draftsman.job_questions) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT encode(sha256(convert_to(jsonb_build_array(
               r.repo_host, r.repo_owner, r.repo_name, asked.text, asked.choices,
               asked.freeform_allowed, asked.answer_kind, asked.context_snippet, asked.action,
               asked.on_expire,
               asked.default_value, asked.approvers,
               (SELECT jsonb_build_array(t.patch_sha256, t.critical) FROM draftsman.question_times t
                 WHERE t.job = asked.job AND t.question = asked.ordinal))::text, 'UTF8')), 'hex')
      FROM draftsman.job_requests r
     WHERE r.number = asked.job AND r.repo_name <> '' AND asked.kind = 'input'
       AND asked.key !~ '^(agent|permission):' AND NOT asked.is_permission
       AND asked.text !~ E'(^|[\n\r\u000B\u000C\u001C-\u001E\u0085\u2028\u2029])\\s*\\$\\s'
       AND NOT EXISTS (SELECT FROM jsonb_array_elements(asked.choices) c
                        WHERE c ->> 'value' IN ('allow once', 'allow for this job'))
       AND NOT EXISTS (
           SELECT FROM draftsman.job_questions q
            WHERE q.job = asked.job AND q.run = asked.run AND q.ordinal < asked.ordinal
              AND (q.text, q.choices, q.freeform_allowed, q.answer_kind, q.context_snippet, q.action,
                   q.on_expire,
                   q.default_value, q.approvers) IS NOT DISTINCT FROM
                  (asked.text, asked.choices, asked.freeform_allowed, asked.answer_kind,
                   asked.context_snippet, asked.action,
                   asked.on_expire, asked.default_value, asked.approvers))
$$;

-- The other open questions that are identical to a question, in the order asked.
CREATE OR REPLACE FUNCTION draftsman.identical_to(
    job bigint, question int
) RETURNS SETOF draftsman.identical_questions
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT i.* FROM draftsman.identical_questions me
      JOIN draftsman.identical_questions i ON i.digest = me.digest AND i.id <> me.id
     WHERE me.job = identical_to.job AND me.question = identical_to.question
     ORDER BY i.id
$$;

-- The messages that show an identical question of the same requester: one for each target and
-- thread.
CREATE OR REPLACE FUNCTION draftsman.messages_of(
    digest text, requester text
) RETURNS SETOF draftsman.deliveries
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT ON (d.channel, d.target, d.thread) d.*
      FROM draftsman.identical_questions i
     CROSS JOIN LATERAL (
           SELECT invoker_id FROM draftsman.job_requests WHERE number = i.job LIMIT 1) r
     CROSS JOIN LATERAL (
           SELECT * FROM draftsman.deliveries
            WHERE job = i.job AND question = i.question OFFSET 0) d
     WHERE i.digest = messages_of.digest AND i.shown AND r.invoker_id = requester
       AND d.kind = 'question'
       AND d.status IN ('pending', 'sending', 'unconfirmed', 'sent')
     ORDER BY d.channel, d.target, d.thread, d.seq
$$;

-- Whether a target shows an identical question of the same requester that was asked before; with a
-- thread, whether this thread does.
CREATE OR REPLACE FUNCTION draftsman.is_shown(
    job bigint, question int, channel draftsman.channel, target text, thread text
) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM draftsman.identical_questions me
          JOIN draftsman.job_requests r ON r.number = me.job
         CROSS JOIN LATERAL draftsman.messages_of(me.digest, r.invoker_id) d
          JOIN draftsman.identical_questions i ON i.job = d.job AND i.question = d.question
         WHERE me.job = is_shown.job AND me.question = is_shown.question AND i.id < me.id
           AND d.channel = is_shown.channel AND d.target = is_shown.target
           AND (is_shown.thread IS NULL OR d.thread = is_shown.thread))
$$;

-- The name of the identical question that a target shows instead of the first open question of a
-- job that its thread does not show; NULL if the thread of the job shows its own.
CREATE OR REPLACE FUNCTION draftsman.shown_instead(
    job bigint, channel draftsman.channel, target text, thread_key text
) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('D-%s/%s', i.job, i.question)
      FROM draftsman.job_questions q
      JOIN draftsman.identical_questions me ON me.job = q.job AND me.question = q.ordinal
      JOIN draftsman.identical_questions i ON i.digest = me.digest AND i.shown AND i.id <> me.id
     WHERE q.job = shown_instead.job AND q.status = 'open'
       AND NOT EXISTS (
           SELECT FROM draftsman.deliveries d
            WHERE d.job = q.job AND d.question = q.ordinal
              AND d.thread_key = shown_instead.thread_key
              AND d.kind = 'question' AND d.status <> 'superseded')
       AND EXISTS (
           SELECT FROM draftsman.deliveries d
            WHERE d.job = i.job AND d.question = i.question AND d.channel = shown_instead.channel
              AND d.target = shown_instead.target
              AND d.kind = 'question' AND d.status <> 'superseded')
     ORDER BY q.ordinal, i.id
     LIMIT 1
$$;

-- A question closed alone, for example because its job was canceled: those that are left have a
-- message in each of their targets. Runs at the end of the transaction, which may have answered
-- all.
CREATE OR REPLACE FUNCTION draftsman.post_left() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    remaining record;
BEGIN
    IF OLD.shown THEN
        FOR remaining IN  -- the first question of each requester and target that no message shows
            SELECT f.job, f.question, f.invoker_id
              FROM (SELECT DISTINCT ON (r.invoker_id, t.channel, t.target, t.thread)
                           i.id, i.job, i.question, r.invoker_id
                      FROM draftsman.identical_questions i
                      JOIN draftsman.job_requests r ON r.number = i.job
                      JOIN draftsman.job_targets t ON t.job = i.job AND 'question' = ANY (t.kinds)
                     WHERE i.digest = OLD.digest AND NOT i.shown
                     ORDER BY r.invoker_id, t.channel, t.target, t.thread, i.id) f
             ORDER BY f.id
        LOOP
            PERFORM FROM draftsman.job_states j WHERE j.number = remaining.job FOR NO KEY UPDATE;
            INSERT INTO draftsman.deliveries
                   (job, question, channel, target, thread, thread_key, kind, dedupe_key)
            SELECT t.job, remaining.question, t.channel, t.target, t.thread, t.thread_key,
                   'question', 'question:' || remaining.question || ':left'
              FROM draftsman.job_targets t
              JOIN draftsman.identical_questions i
                ON i.job = t.job AND i.question = remaining.question
             WHERE t.job = remaining.job AND 'question' = ANY (t.kinds) AND NOT EXISTS (
                   SELECT FROM draftsman.messages_of(OLD.digest, remaining.invoker_id) d
                    WHERE d.channel = t.channel AND d.target = t.target
                      AND (t.thread IS NULL OR d.thread = t.thread))
             ORDER BY t.ordinal
                ON CONFLICT DO NOTHING;
        END LOOP;
    END IF;
    PERFORM draftsman.edit_messages(OLD.digest);
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS identical_questions_left ON draftsman.identical_questions;
CREATE CONSTRAINT TRIGGER identical_questions_left AFTER DELETE ON draftsman.identical_questions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION draftsman.post_left();

-- Edits the messages that show identical questions, which say how many jobs ask.
CREATE OR REPLACE FUNCTION draftsman.edit_messages(digest text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.edit_question(i.job, i.question)
      FROM draftsman.identical_questions i
     WHERE i.digest = edit_messages.digest AND i.shown
     ORDER BY i.id
$$;

-- Guards ------------------------------------------------------------------------------------------

-- A resolved question stays so; only an answered or expired question may be superseded.
CREATE OR REPLACE TRIGGER job_questions_immutable BEFORE UPDATE ON draftsman.job_questions
    FOR EACH ROW
    WHEN (OLD.status <> 'open' AND NOT (OLD.status IN ('answered', 'expired')
          AND NEW.status = 'superseded'))
    EXECUTE FUNCTION draftsman.refuse_change('questions.closed_immutable');
CREATE OR REPLACE TRIGGER job_questions_no_delete BEFORE DELETE ON draftsman.job_questions
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions.questions_kept');
CREATE OR REPLACE TRIGGER job_questions_no_truncate BEFORE TRUNCATE ON draftsman.job_questions
    EXECUTE FUNCTION draftsman.refuse_change('questions.questions_kept');

CREATE OR REPLACE TRIGGER question_times_escalated_once BEFORE UPDATE OF escalated_at
    ON draftsman.question_times FOR EACH ROW
    WHEN (OLD.escalated_at IS NOT NULL
                       AND NEW.escalated_at IS DISTINCT FROM OLD.escalated_at)
    EXECUTE FUNCTION draftsman.refuse_change('questions.escalated_once');
CREATE OR REPLACE TRIGGER question_times_no_delete BEFORE DELETE ON draftsman.question_times
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions.questions_kept');
CREATE OR REPLACE TRIGGER question_times_no_truncate BEFORE TRUNCATE ON draftsman.question_times
    EXECUTE FUNCTION draftsman.refuse_change('questions.questions_kept');

CREATE OR REPLACE TRIGGER job_answers_immutable BEFORE UPDATE OR DELETE ON draftsman.job_answers
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions.answers_immutable');
CREATE OR REPLACE TRIGGER job_answers_no_truncate BEFORE TRUNCATE ON draftsman.job_answers
    EXECUTE FUNCTION draftsman.refuse_change('questions.answers_immutable');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_questions() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person', 'EXECUTE ON FUNCTION
        draftsman.is_resolution_valid(draftsman.job_questions, draftsman.question_status, jsonb),
        draftsman.extend_question(bigint, int, float8, text),
        draftsman.resolve_question(
            bigint, int, draftsman.question_status, jsonb, draftsman.job_status,
            text, text, text, text),
        draftsman.count_refused(bigint, int, text, text), draftsman.use_token(text, text),
        draftsman.take_decision(bigint, boolean), draftsman.finish_decision(bigint)');
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.next_reminder(timestamptz, timestamptz), draftsman.label_of(jsonb, text),
        draftsman.cancellation(boolean),
        draftsman.identical_to(bigint, int),
        draftsman.shown_instead(bigint, draftsman.channel, text, text)');
    SELECT draftsman.grant_to('person', 'EXECUTE ON FUNCTION
        draftsman.mint_token(text, bigint, int, text, text, text),
        draftsman.refuse_token(bigint, int, text, text, text, text, int)');
    SELECT draftsman.grant_to('bot', 'EXECUTE ON FUNCTION
        draftsman.record_answer_change(bigint, int, text, text, text, jsonb)');
    SELECT draftsman.grant_to('bot person', 'EXECUTE ON FUNCTION
        draftsman.hold_decision(
            bigint, int, draftsman.channel, text, text, text, text, boolean, jsonb, jsonb, float8),
        draftsman.undo_decision(bigint)');
    SELECT draftsman.grant_to('worker', 'INSERT, UPDATE (status, approvers, resolution, expires_at,
        answered_at) ON draftsman.job_questions');
    -- a column allows SELECT ... FOR UPDATE; no update passes the triggers
    SELECT draftsman.grant_to('bot person', 'UPDATE (run) ON draftsman.job_questions');
    SELECT draftsman.grant_to('worker', 'INSERT (job, question, escalate_to, patch_sha256,
        critical), UPDATE (remind_at, reminders, escalated_at) ON draftsman.question_times');
    SELECT draftsman.grant_to('worker bot person', 'INSERT (job, question, kind, source,
        source_event_id, responder_id, responder_display_name, voter, payload, accepted, reason)
        ON draftsman.job_answers');
$$;
