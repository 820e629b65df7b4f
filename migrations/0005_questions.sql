-- Questions, answers, approval tokens, reminders and escalation.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0005_questions') AS applied \gset
\if :applied \echo '0005_questions is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0005_questions');

CREATE TYPE draftsman.question_kind AS ENUM ('input', 'approval');
CREATE TYPE draftsman.question_status AS ENUM (
    'open', 'answered', 'expired', 'canceled', 'superseded');
CREATE TYPE draftsman.on_expire AS ENUM ('expire', 'default', 'continue', 'escalate');
CREATE TYPE draftsman.on_deny AS ENUM ('fail', 'continue');

-- Tables --------------------------------------------------------------------------------------

-- An approval takes a decision only, and either expires or escalates. A permission request is about a
-- command, under whatever key the agent asks. A run may ask several questions at once.
-- `alternative_of` is the first of questions of which the first that closes counts: it closes the
-- others. NULL: the job waits for this question.
CREATE TABLE draftsman.job_questions (
    job               bigint NOT NULL REFERENCES draftsman.job_requests,
    ordinal           int NOT NULL CHECK (ordinal > 0),
    run               int NOT NULL,
    key               text NOT NULL CHECK (key <> ''),
    kind              draftsman.question_kind NOT NULL,
    status            draftsman.question_status NOT NULL DEFAULT 'open',
    text              text NOT NULL CHECK (text <> ''),
    choices           jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(choices) = 'array'),
    freeform_allowed  boolean NOT NULL DEFAULT false,
    context_snippet   text,
    approvers         text[] NOT NULL DEFAULT '{}',
    quorum            int NOT NULL DEFAULT 1 CHECK (quorum >= 1),
    on_expire         draftsman.on_expire NOT NULL DEFAULT 'expire',
    default_value     text,
    on_deny           draftsman.on_deny NOT NULL DEFAULT 'fail',
    digest            text NOT NULL,
    action            jsonb,
    resolution        jsonb,
    asked_at          timestamptz NOT NULL DEFAULT draftsman.now(),
    expires_at        timestamptz,
    answered_at       timestamptz,
    is_permission     boolean NOT NULL DEFAULT false,
    alternative_of    int CHECK (alternative_of BETWEEN 1 AND ordinal),
    PRIMARY KEY (job, ordinal),
    CONSTRAINT job_questions_approval CHECK (kind = 'input'
        OR (choices = '[]' AND NOT freeform_allowed AND on_expire IN ('expire', 'escalate'))),
    CONSTRAINT job_questions_answerable CHECK (kind = 'approval'
        OR choices <> '[]' OR freeform_allowed),
    CONSTRAINT job_questions_default CHECK ((default_value IS NOT NULL) = (on_expire = 'default')),
    CONSTRAINT job_questions_resolved CHECK ((resolution IS NOT NULL) = (status <> 'open')),
    CONSTRAINT job_questions_answered CHECK (status <> 'answered' OR answered_at IS NOT NULL)
);
--   job_questions_open    the open questions of a job, one for each key
--   job_questions_expiry  the sweep of expired questions; the inbox, page by page
--   job_questions_budget  the jobs that ask about a budget: draftsman budgets
CREATE UNIQUE INDEX job_questions_open ON draftsman.job_questions (job, key)
    WHERE status = 'open';
CREATE INDEX job_questions_budget ON draftsman.job_questions (job)
    WHERE status = 'open' AND key = 'agent:budget';
CREATE INDEX job_questions_expiry ON draftsman.job_questions (expires_at, job, ordinal)
    WHERE status = 'open';

-- Reminders and escalation of a question, and the patch of the saved tree at that time (NULL: none).
CREATE TABLE draftsman.question_times (
    job           bigint NOT NULL,
    question      int NOT NULL,
    since         timestamptz NOT NULL DEFAULT draftsman.now(),
    remind_at     timestamptz,
    reminders     int NOT NULL DEFAULT 0,
    escalate_to   text CHECK (escalate_to <> ''),
    escalated_at  timestamptz,
    patch_sha256  text CONSTRAINT question_times_patch CHECK (patch_sha256 ~ '^[0-9a-f]{64}$'),
    critical      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT question_times_reminders CHECK (reminders BETWEEN 0 AND 3
        AND (reminders < 3 OR remind_at IS NULL)),
    CONSTRAINT question_times_escalated CHECK (escalated_at IS NULL OR escalate_to IS NOT NULL)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
--   question_times_due   the sweep of reminders and the leader's timer: holds open questions only
CREATE INDEX question_times_due ON draftsman.question_times (remind_at)
    WHERE remind_at IS NOT NULL;

-- Workers that keep the agent of a question running, to continue it at once if the answer comes
-- before `ends_at`. `lease_token` is that of the parked run, whose calls of a model may still run.
CREATE TABLE draftsman.grace_periods (
    job          bigint PRIMARY KEY,
    question     int NOT NULL,
    worker_id    uuid NOT NULL,
    lease_token  bigint NOT NULL,
    ends_at      timestamptz NOT NULL,
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- `session_role` is the kind and the name of the session's role, whatever the session sends.
CREATE TABLE draftsman.job_answers (
    id                      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job                     bigint NOT NULL,
    question                int NOT NULL,
    kind                    draftsman.question_kind NOT NULL,
    source                  draftsman.channel NOT NULL,
    source_event_id         text NOT NULL,
    responder_id            text NOT NULL,
    responder_display_name  text,
    voter                   text NOT NULL,
    payload                 jsonb NOT NULL,
    accepted                boolean NOT NULL,
    reason                  text,
    session_role            text NOT NULL DEFAULT '',
    created_at              timestamptz NOT NULL DEFAULT draftsman.now(),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT job_answers_event UNIQUE (job, question, source_event_id),
    CONSTRAINT job_answers_refused CHECK (accepted OR reason IS NOT NULL)
);
--   job_answers_input  a single accepted answer of an input
--   job_answers_vote   an accepted vote of each kind a person, who may deny after an approval
CREATE UNIQUE INDEX job_answers_input ON draftsman.job_answers (job, question)
    WHERE accepted AND kind = 'input';
CREATE UNIQUE INDEX job_answers_vote
    ON draftsman.job_answers (job, question, voter, (payload ->> 'decision'))
    NULLS NOT DISTINCT WHERE accepted AND kind = 'approval';

-- Number of refused answers that are not stored, so that a flood of them does not grow the tables.
CREATE TABLE draftsman.refused_answers (
    job          bigint NOT NULL,
    question     int NOT NULL,
    answers      bigint NOT NULL CHECK (answers > 0),
    last_voter   text NOT NULL,
    last_reason  text NOT NULL,
    last_at      timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
) WITH (fillfactor = 50);

-- Only the approver, or a delivery that is addressed to the approver, mints a token.
CREATE TABLE draftsman.approval_tokens (
    token_hash  text PRIMARY KEY,
    job         bigint NOT NULL,
    question    int NOT NULL,
    approver    text NOT NULL,
    minted_by   text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    used_at     timestamptz,
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    UNIQUE (job, question, approver)
);

CREATE VIEW draftsman.questions AS
    SELECT q.job, q.ordinal, q.run, q.key, q.kind, q.status, q.text, q.choices, q.freeform_allowed,
           q.context_snippet, q.approvers, q.quorum, q.on_expire, q.default_value, q.on_deny, q.digest,
           q.action, q.resolution, q.asked_at, q.expires_at, q.answered_at, t.escalate_to, t.escalated_at,
           coalesce(t.reminders, 0) AS reminders, t.patch_sha256, coalesce(t.critical, false) AS critical,
           q.alternative_of
      FROM draftsman.job_questions q
      LEFT JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal;

-- Immutability --------------------------------------------------------------------------------

-- A resolved question stays so; only an answered or expired question may be superseded.
CREATE TRIGGER job_questions_immutable BEFORE UPDATE ON draftsman.job_questions FOR EACH ROW
    WHEN (OLD.status <> 'open' AND NOT (OLD.status IN ('answered', 'expired')
          AND NEW.status = 'superseded'))
    EXECUTE FUNCTION draftsman.refuse_change('a closed question is immutable');
CREATE TRIGGER job_questions_no_delete BEFORE DELETE ON draftsman.job_questions FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions are never deleted');
CREATE TRIGGER job_questions_no_truncate BEFORE TRUNCATE ON draftsman.job_questions
    EXECUTE FUNCTION draftsman.refuse_change('questions are never deleted');
CREATE TRIGGER job_answers_immutable BEFORE UPDATE OR DELETE ON draftsman.job_answers FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('answers are immutable');
CREATE TRIGGER job_answers_no_truncate BEFORE TRUNCATE ON draftsman.job_answers
    EXECUTE FUNCTION draftsman.refuse_change('answers are immutable');
CREATE TRIGGER question_times_escalated_once
    BEFORE UPDATE OF escalated_at ON draftsman.question_times
    FOR EACH ROW WHEN (OLD.escalated_at IS NOT NULL
                       AND NEW.escalated_at IS DISTINCT FROM OLD.escalated_at)
    EXECUTE FUNCTION draftsman.refuse_change('a question is escalated once');
CREATE TRIGGER question_times_no_delete BEFORE DELETE ON draftsman.question_times FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions are never deleted');
CREATE TRIGGER question_times_no_truncate BEFORE TRUNCATE ON draftsman.question_times
    EXECUTE FUNCTION draftsman.refuse_change('questions are never deleted');

-- Reminders -----------------------------------------------------------------------------------

-- At 50 % and at 90 % of the time to answer, whichever comes next; NULL after both, and without an
-- expiry. Computed in seconds: a day may be longer or shorter in the time zone of the session.
CREATE FUNCTION draftsman.next_reminder(began timestamptz, ends timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT min(p.at)
      FROM unnest(ARRAY[0.5, 0.9]) AS part
     CROSS JOIN LATERAL (
           SELECT began + make_interval(secs => (extract(epoch FROM ends - began) * part)::float8)
                  AS at) p
     WHERE p.at > draftsman.now()
$$;

-- Schedules the reminder of a question that was asked or extended, unless it has a ladder; clears it
-- when it closes.
CREATE FUNCTION draftsman.schedule_reminder() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
CREATE TRIGGER job_questions_first_reminder AFTER INSERT ON draftsman.job_questions FOR EACH ROW
    EXECUTE FUNCTION draftsman.schedule_reminder();
CREATE TRIGGER job_questions_reminder AFTER UPDATE OF status, expires_at ON draftsman.job_questions
    FOR EACH ROW
    WHEN (OLD.status = 'open'
          AND (NEW.status <> 'open' OR NEW.expires_at IS DISTINCT FROM OLD.expires_at))
    EXECUTE FUNCTION draftsman.schedule_reminder();

-- Permission to answer ------------------------------------------------------------------------

-- An accepted answer comes from a session that may act for its channel, in the name of the person
-- of its identity, and that person may answer the question. A worker stores the answer that came
-- with the request, and that of a decision that it applies, in time if due before the expiry.
CREATE FUNCTION draftsman.check_answer() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
        PERFORM draftsman.deny_access(
            format('%s cannot answer as %s:%s', session_user, NEW.source, NEW.responder_id));
    END IF;
    person := CASE WHEN kind = 'worker' AND held.id IS NULL THEN asker
              ELSE draftsman.person_of(NEW.source::text, NEW.responder_id) END;
    NEW.voter := coalesce(person, NEW.source || ':' || NEW.responder_id);
    IF NEW.accepted THEN
        fits := asked.kind = 'approval' AND NEW.payload ->> 'decision' IN ('approve', 'deny')
            AND draftsman.has_role(person, 'approver')
            AND draftsman.list_includes(person, asked.approvers)
            AND (person <> asker
                 OR (SELECT p.self_approval FROM draftsman.approval_policy p)) IS TRUE
             OR asked.kind = 'input'
            AND (asker IN (NEW.voter, NEW.source || ':' || NEW.responder_id)
                 OR draftsman.has_role(person, 'responder')
                 OR draftsman.list_includes(person, asked.approvers))
            AND CASE WHEN NEW.payload ? 'value'
                THEN EXISTS (SELECT FROM jsonb_array_elements(asked.choices) c
                              WHERE c -> 'value' = NEW.payload -> 'value')
                ELSE asked.freeform_allowed AND jsonb_typeof(NEW.payload -> 'text') = 'string' END;
        IF NEW.kind <> asked.kind OR asked.status <> 'open' OR fits IS NOT TRUE
           OR (asked.expires_at <= coalesce(held.applies_at, draftsman.now())
               AND (asked.on_expire <> 'escalate' OR EXISTS (
               SELECT FROM draftsman.question_times t WHERE t.job = NEW.job
                  AND t.question = NEW.question AND t.escalated_at IS NOT NULL))) THEN
            PERFORM draftsman.deny_access(
                format('%s may not answer D-%s/%s', NEW.voter, NEW.job, NEW.question));
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER job_answers_session BEFORE INSERT ON draftsman.job_answers FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_answer();

-- An accepted answer and its effect are committed together: an answer, a denial or the last vote of a
-- quorum closes its question. No other answer could close it any more.
CREATE FUNCTION draftsman.check_answer_effect() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (
        SELECT FROM draftsman.job_questions q
         WHERE q.job = NEW.job AND q.ordinal = NEW.question AND q.status = 'open'
           AND (q.kind = 'input' OR NEW.payload ->> 'decision' = 'deny' OR q.quorum <= (
               SELECT count(DISTINCT a.voter) FROM draftsman.job_answers a
                WHERE a.job = q.job AND a.question = q.ordinal AND a.accepted))) THEN
        RAISE EXCEPTION 'D-%/%: an accepted answer closes its question in the same transaction',
            NEW.job, NEW.question USING ERRCODE = 'DM003';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER job_answers_effect AFTER INSERT ON draftsman.job_answers
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.accepted)
    EXECUTE FUNCTION draftsman.check_answer_effect();

-- Writes the event of a refused answer, or of a vote below the quorum. That of an answer that resolves
-- its question is written with the resolution.
CREATE FUNCTION draftsman.record_answer() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
CREATE TRIGGER job_answers_recorded AFTER INSERT ON draftsman.job_answers FOR EACH ROW
    WHEN (NOT NEW.accepted OR NEW.kind = 'approval')
    EXECUTE FUNCTION draftsman.record_answer();

-- Counts a refused answer that is not stored, under the name of the person or channel identity;
-- returns the number of all.
CREATE FUNCTION draftsman.count_refused(job bigint, question int, voter text, reason text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    counted bigint;
BEGIN
    IF draftsman.session_kind() = 'person' THEN
        voter := coalesce(draftsman.person_of('cli', session_user::text), 'cli:' || session_user);
    END IF;
    INSERT INTO draftsman.refused_answers AS r (job, question, answers, last_voter, last_reason)
    VALUES ($1, $2, 1, left(voter, 1000), left($4, 3000))
        ON CONFLICT ON CONSTRAINT refused_answers_pkey DO UPDATE
           SET answers = r.answers + 1, last_voter = excluded.last_voter,
               last_reason = excluded.last_reason, last_at = draftsman.now()
    RETURNING answers INTO counted;
    RETURN counted;
END $$;

-- The label of the choice with a value, for events; NULL if the label begins the value.
CREATE FUNCTION draftsman.label_of(choices jsonb, value text) RETURNS text LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT c ->> 'label' FROM jsonb_array_elements($1) c
     WHERE c ->> 'value' = $2 AND NOT starts_with($2, c ->> 'label')
     LIMIT 1
$$;

-- Whether the stored answers justify this resolution of a question.
CREATE FUNCTION draftsman.is_resolution_valid(
    asked draftsman.job_questions, after draftsman.question_status, how jsonb
) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN $2 = 'canceled' THEN true
        WHEN $2 = 'expired' OR $3 ->> 'via' = 'policy' THEN
            ($1).expires_at <= draftsman.now()
            AND (($1).on_expire = 'default') = ($2 = 'answered')
            AND (($1).on_expire <> 'default' OR $3 ->> 'value' = ($1).default_value)
            AND $3 - '{outcome,via,value}'::text[] = '{}'
            AND (($1).on_expire <> 'escalate' OR EXISTS (
                SELECT FROM draftsman.question_times t WHERE t.job = ($1).job
                   AND t.question = ($1).ordinal AND t.escalated_at IS NOT NULL))
        WHEN $2 <> 'answered' OR $3 ->> 'via' IS DISTINCT FROM 'person' THEN false
        WHEN ($1).kind = 'input' THEN $3 ->> 'outcome' = 'answered' AND EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = ($1).job AND a.question = ($1).ordinal AND a.accepted
               AND a.payload ->> 'value' IS NOT DISTINCT FROM $3 ->> 'value'
               AND a.payload ->> 'text' IS NOT DISTINCT FROM $3 ->> 'text'
               AND $3 -> 'by' = jsonb_build_array(a.voter))
        WHEN $3 ->> 'outcome' = 'denied' THEN EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = ($1).job AND a.question = ($1).ordinal AND a.accepted
               AND a.payload ->> 'decision' = 'deny' AND $3 -> 'by' = jsonb_build_array(a.voter)
               AND coalesce($3 ->> 'reason', '') = coalesce(a.payload ->> 'reason', ''))
        WHEN $3 ->> 'outcome' = 'approved' THEN (
            SELECT count(DISTINCT a.voter) >= ($1).quorum
                   AND $3 -> 'by' <@ jsonb_agg(a.voter) AND jsonb_agg(a.voter) <@ ($3 -> 'by')
                   AND (coalesce($3 ->> 'reason', '') = ''
                        OR $3 -> 'reason' <@ jsonb_agg(a.payload -> 'reason'))
              FROM draftsman.job_answers a
             WHERE a.job = ($1).job AND a.question = ($1).ordinal AND a.accepted
               AND a.payload ->> 'decision' = 'approve')
        ELSE false END
$$;

-- Checks every change of a question that is not made by the owner: people and bots change
-- questions through functions only, workers as their sweeps and runs do.
CREATE FUNCTION draftsman.check_question_change() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind  text := draftsman.session_kind();
    to_be text;
BEGIN
    IF kind = 'owner' THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'open' THEN
            PERFORM draftsman.deny_access('a new question must be open');
        END IF;
        RETURN NEW;
    END IF;
    IF kind <> 'worker' AND NOT has_schema_privilege(current_user, 'draftsman', 'CREATE') THEN
        PERFORM draftsman.deny_access('questions can be changed only through functions');
    END IF;
    IF OLD.status = 'open' AND NEW.status <> 'open' THEN
        IF (CASE WHEN NEW.resolution ->> 'via' = 'rule' AND NEW.status = 'answered'
            THEN draftsman.is_allowed_by_rule(OLD.job, OLD.ordinal, NEW.resolution)
            ELSE draftsman.is_resolution_valid(OLD, NEW.status, NEW.resolution) END) IS NOT TRUE THEN
            PERFORM draftsman.deny_access(format(
                'the answers to D-%s/%s do not support the resolution %s',
                NEW.job, NEW.ordinal, NEW.resolution));
        END IF;
    ELSIF kind = 'worker' AND OLD.status = 'open' THEN
        SELECT t.escalate_to INTO to_be FROM draftsman.question_times t
         WHERE t.job = OLD.job AND t.question = OLD.ordinal AND t.escalated_at IS NULL;
        IF (OLD.on_expire = 'escalate' AND OLD.expires_at <= draftsman.now()
            AND NEW.approvers = array_append(array_remove(OLD.approvers, to_be), to_be)) IS NOT TRUE
           AND NOT draftsman.escalates_by_ladder(OLD, NEW) THEN
            PERFORM draftsman.deny_access('an open question can be escalated only after it expired');
        END IF;
    ELSIF OLD.status <> 'open' AND (NEW.approvers, NEW.expires_at, NEW.answered_at, NEW.resolution)
          IS DISTINCT FROM (OLD.approvers, OLD.expires_at, OLD.answered_at,
                            '{"outcome": "superseded", "via": "system"}'::jsonb) THEN
        PERFORM draftsman.deny_access('a closed question can only be superseded');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER job_questions_session BEFORE INSERT OR UPDATE ON draftsman.job_questions FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_question_change();

-- Error class DENIED means that an approver denied a question of the last run of the job; no run has
-- it.
CREATE FUNCTION draftsman.check_denial() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.status <> 'failed' OR NOT EXISTS (
        SELECT FROM draftsman.job_questions q
         WHERE q.job = NEW.number AND q.run = NEW.run_count AND q.on_deny = 'fail'
           AND q.resolution ->> 'outcome' = 'denied') THEN
        RAISE EXCEPTION 'D-%: error class DENIED requires that a question of the last run was denied',
            NEW.number USING ERRCODE = 'DM003';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER job_states_denied BEFORE UPDATE OF error_class ON draftsman.job_states FOR EACH ROW
    WHEN (NEW.error_class = 'DENIED' AND OLD.error_class IS DISTINCT FROM NEW.error_class)
    EXECUTE FUNCTION draftsman.check_denial();
