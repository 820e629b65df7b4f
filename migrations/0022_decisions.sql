-- Decisions with an undo window: answers, approvals, denials and cancels that take effect later.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0022_decisions') AS applied \gset
\if :applied \echo '0022_decisions is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0022_decisions');

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
