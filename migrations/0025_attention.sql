-- The time of people: decisions with an undo window, and the changes of a job in lists.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0025_attention') AS applied \gset
\if :applied \echo '0025_attention is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0025_attention');

-- Lines that a patch adds and removes; NULL: not a patch, or one that is not counted.
ALTER TABLE draftsman.artifacts
    ADD COLUMN added int CHECK (added >= 0),
    ADD COLUMN removed int CHECK (removed >= 0);

-- Pending decisions -----------------------------------------------------------------------------

-- An answer or a decision of a question, or with no question the cancel of a job, which takes effect
-- at `applies_at` and can be undone until then. A row is deleted in the transaction that applies or
-- undoes it. `payload` is that of the answer; `session_role` is that of the session that decided, as
-- in `job_answers`; `taken_by` is the transaction that applies the row.
CREATE TABLE draftsman.pending_decisions (
    id                  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job                 bigint NOT NULL REFERENCES draftsman.job_requests,
    question            int,
    source              draftsman.channel NOT NULL,
    source_event_id     text NOT NULL CHECK (source_event_id <> ''),
    actor_id            text NOT NULL,
    actor_display_name  text NOT NULL,
    voter               text NOT NULL,
    is_owner            boolean NOT NULL DEFAULT false,
    decision            jsonb NOT NULL CHECK (jsonb_typeof(decision) = 'object'),
    payload             jsonb,
    created_at          timestamptz NOT NULL DEFAULT draftsman.now(),
    applies_at          timestamptz NOT NULL,
    session_role        text NOT NULL DEFAULT '',
    taken_by            xid8,
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT pending_decisions_event UNIQUE (job, source_event_id),
    CONSTRAINT pending_decisions_payload CHECK ((payload IS NULL) = (question IS NULL)),
    CONSTRAINT pending_decisions_window CHECK (
        applies_at > created_at AND applies_at <= created_at + interval '60 seconds')
);
--   pending_decisions_voter  one a person for each question, and one for the cancel of a job
--   pending_decisions_due    the sweep, and the leader's timer
CREATE UNIQUE INDEX pending_decisions_voter
    ON draftsman.pending_decisions (job, question, voter) NULLS NOT DISTINCT;
CREATE INDEX pending_decisions_due ON draftsman.pending_decisions (applies_at);

-- Stores a pending decision, once for each event of its channel. Returns it, and no row if the
-- person has another pending decision on the same question or job, or the event is of another person.
CREATE FUNCTION draftsman.hold_decision(
    job bigint, question int, source draftsman.channel, source_event_id text, actor_id text,
    actor_display_name text, voter text, is_owner boolean, decision jsonb, payload jsonb,
    seconds float8
) RETURNS SETOF draftsman.pending_decisions LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind  text := draftsman.session_kind();
    actor text := $3 || ':' || $5;
BEGIN
    IF kind = 'worker' OR NOT draftsman.may_act_as(actor) THEN
        PERFORM draftsman.deny_access(format('%s cannot decide as %s', session_user, actor));
    END IF;
    INSERT INTO draftsman.pending_decisions AS p
           (job, question, source, source_event_id, actor_id, actor_display_name, voter, is_owner,
            decision, payload, applies_at, session_role)
    VALUES ($1, $2, $3, $4, $5, $6,
            CASE WHEN kind = 'owner' THEN $7 ELSE coalesce(draftsman.person_of($3::text, $5), actor) END,
            $8 AND kind = 'owner', $9, $10, draftsman.now() + make_interval(secs => $11),
            kind || ':' || session_user)
        ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM pg_notify('draftsman_runs', $1::text);
    END IF;
    RETURN QUERY
    SELECT * FROM draftsman.pending_decisions p
     WHERE p.job = $1 AND p.source_event_id = $4 AND p.source = $3 AND p.actor_id = $5;
END $$;

-- Locks a pending decision for this transaction, which applies it; false if it is not due, was
-- applied or was undone. Its own person may apply it `early`.
CREATE FUNCTION draftsman.take_decision(id bigint, early boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_worker boolean := draftsman.session_kind() = 'worker';
BEGIN
    UPDATE draftsman.pending_decisions p SET taken_by = pg_current_xact_id()
     WHERE p.id = $1 AND (is_worker OR draftsman.may_act_as(p.source || ':' || p.actor_id))
       AND (p.applies_at <= draftsman.now() OR ($2 AND NOT is_worker));
    RETURN FOUND;
END $$;

-- Deletes the decision that this transaction has taken.
CREATE FUNCTION draftsman.finish_decision(id bigint) RETURNS boolean LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM draftsman.pending_decisions p
     WHERE p.id = $1 AND p.taken_by = pg_current_xact_id();
    RETURN FOUND;
END $$;

-- Deletes a decision that has not taken effect; false if it has, or is not that of the session.
CREATE FUNCTION draftsman.undo_decision(id bigint) RETURNS boolean LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    undone bigint;
BEGIN
    DELETE FROM draftsman.pending_decisions p
     WHERE p.id = $1 AND draftsman.session_kind() <> 'worker'
       AND draftsman.may_act_as(p.source || ':' || p.actor_id)
    RETURNING p.job INTO undone;
    PERFORM pg_notify('draftsman_runs', undone::text) WHERE undone IS NOT NULL;
    RETURN undone IS NOT NULL;
END $$;

-- Rights of the worker that applies a decision --------------------------------------------------

<<<<<<< HEAD
-- Whether this transaction applies a decision of this actor.
CREATE FUNCTION draftsman.applies_decision(actor text) RETURNS boolean LANGUAGE sql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM draftsman.pending_decisions p
                    WHERE p.taken_by = pg_current_xact_id_if_assigned()
                      AND p.source || ':' || p.actor_id = $1)
$$;

-- As before; a worker that applies a decision acts as its person, until the end of the transaction.
CREATE OR REPLACE FUNCTION draftsman.may_act_as(actor text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE draftsman.session_kind()
         WHEN 'owner' THEN true
         WHEN 'worker' THEN actor = 'system' OR actor ~ '^(worker|internal|schedule):'
                            OR draftsman.applies_decision(actor)
         WHEN 'bot' THEN actor ~ '^(slack|trello|forge):'
         WHEN 'person' THEN actor IN ('cli:' || session_user, 'tui:' || session_user,
                                      'api:' || session_user)
         ELSE false END;

-- As before; a worker that applies a decision has the rights of its person, and no others.
CREATE OR REPLACE FUNCTION draftsman.require_control(job bigint, actor text, role text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text;
BEGIN
    IF draftsman.session_kind() = 'owner'
       OR (draftsman.session_kind() = 'worker' AND draftsman.may_act_as(actor)
           AND NOT draftsman.applies_decision(actor)) THEN
        RETURN;
    END IF;
    person := draftsman.person_of_actor(actor);
    IF NOT draftsman.may_act_as(actor) OR NOT (
        draftsman.has_role(person, role) OR EXISTS (
            SELECT FROM draftsman.job_requests j
             WHERE j.number = job AND j.invoker_id IN (person, actor))) THEN
        PERFORM draftsman.deny_access(format('%s may not control D-%s', actor, job));
    END IF;
END $$;

-- As before; a worker also stores the answer of a decision that it applies, and that answer alone.
-- It is in time if the decision was due before the question expired.
CREATE OR REPLACE FUNCTION draftsman.check_answer() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind    text := draftsman.session_kind();
    asker   text;
    answers jsonb;
    person  text;
    asked   draftsman.job_questions;
    fits    boolean;
    held_at timestamptz;
    held_by text;
BEGIN
    NEW.session_role := kind || ':' || session_user;
    IF kind = 'owner' THEN
        RETURN NEW;
    END IF;
    SELECT j.invoker_id, j.overrides -> 'answers' INTO asker, answers
      FROM draftsman.job_requests j WHERE j.number = NEW.job;
    SELECT * INTO asked FROM draftsman.job_questions q
     WHERE q.job = NEW.job AND q.ordinal = NEW.question;
    SELECT p.applies_at, p.session_role INTO held_at, held_by FROM draftsman.pending_decisions p
     WHERE p.taken_by = pg_current_xact_id_if_assigned() AND p.job = NEW.job
       AND p.question = NEW.question AND p.source = NEW.source
       AND p.source_event_id = NEW.source_event_id AND p.actor_id = NEW.responder_id
       AND p.payload = NEW.payload - '{late,refusal}'::text[];
    NEW.session_role := coalesce(held_by, NEW.session_role);
    IF NOT draftsman.may_act_as(NEW.source || ':' || NEW.responder_id)
       OR (kind = 'worker' AND held_at IS NULL
           AND (NEW.source = 'internal' AND NEW.kind = 'input' AND NEW.responder_id = asker
                AND answers ? asked.key) IS NOT TRUE) THEN
        PERFORM draftsman.deny_access(format('%s cannot answer as %s:%s',
                                                session_user, NEW.source, NEW.responder_id));
    END IF;
    person := CASE WHEN kind = 'worker' AND held_at IS NULL THEN asker
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
                 OR draftsman.list_includes(person, asked.approvers));
        IF NEW.kind <> asked.kind OR asked.status <> 'open' OR fits IS NOT TRUE
           OR (asked.expires_at <= coalesce(held_at, draftsman.now())
               AND (asked.on_expire <> 'escalate' OR EXISTS (
               SELECT FROM draftsman.question_times t WHERE t.job = NEW.job
                  AND t.question = NEW.question AND t.escalated_at IS NOT NULL))) THEN
            PERFORM draftsman.deny_access(format('%s may not answer D-%s/%s',
                                                    NEW.voter, NEW.job, NEW.question));
        END IF;
    END IF;
    RETURN NEW;
END $$;

=======
>>>>>>> bc5f45169815c8230beb3f44219d42ac1fc977f5
-- A vote below the quorum that a worker applies, after its answer.
CREATE POLICY job_events_decision ON draftsman.job_events FOR INSERT WITH CHECK (
    kind = 'vote_received' AND draftsman.applies_decision(actor) AND EXISTS (
        SELECT FROM draftsman.job_answers a
          JOIN draftsman.pending_decisions p
            ON p.job = a.job AND p.question = a.question AND p.source = a.source
           AND p.source_event_id = a.source_event_id AND p.actor_id = a.responder_id
         WHERE p.taken_by = pg_current_xact_id_if_assigned() AND p.job = job_events.job
           AND p.source || ':' || p.actor_id = job_events.actor
           AND a.accepted AND a.voter = job_events.payload ->> 'voter'
           AND a.question::text = job_events.payload ->> 'question'));

ALTER FUNCTION draftsman.grant_roles() RENAME TO grant_roles_before_decisions;
CREATE FUNCTION draftsman.grant_roles() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    missing text := draftsman.grant_roles_before_decisions();
    role    text;
BEGIN
    FOREACH role IN ARRAY '{draftsman_worker,draftsman_bot,draftsman_person,draftsman_reader}'::text[]
    LOOP
        CONTINUE WHEN to_regrole(role) IS NULL;
        EXECUTE format('GRANT EXECUTE ON FUNCTION draftsman.applies_decision(text) TO %I', role);
        CONTINUE WHEN role = 'draftsman_reader';
        EXECUTE format('GRANT EXECUTE ON FUNCTION draftsman.take_decision(bigint, boolean),
            draftsman.finish_decision(bigint) TO %I', role);
        CONTINUE WHEN role = 'draftsman_worker';
        EXECUTE format('GRANT EXECUTE ON FUNCTION draftsman.undo_decision(bigint),
            draftsman.hold_decision(bigint, int, draftsman.channel, text, text, text, text,
            boolean, jsonb, jsonb, float8) TO %I', role);
    END LOOP;
    RETURN missing;
END $$;
