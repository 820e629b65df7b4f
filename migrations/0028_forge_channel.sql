-- Requests and answers of people in the comments of forges.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0028_forge_channel') AS applied \gset
\if :applied \echo '0028_forge_channel is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0028_forge_channel');

-- `answer` is a comment of a pull request that answers a question by a command. The bots process the
-- events of people: a request is submitted, an answer is accepted or refused.
ALTER TABLE draftsman.forge_events
    DROP CONSTRAINT forge_events_kind_check,
    DROP CONSTRAINT forge_events_outcome_check,
    ADD CONSTRAINT forge_events_kind_check CHECK (kind IN (
        'comment', 'review', 'review_thread', 'check_failed', 'conflict', 'merged', 'closed',
        'labeled_issue', 'issue_comment', 'answer')),
    ADD CONSTRAINT forge_events_outcome_check CHECK (
        outcome IN ('ignored', 'sent', 'ended')
        OR (outcome IN ('submitted', 'answered', 'refused')
            AND kind IN ('labeled_issue', 'issue_comment', 'answer')));

--   forge_events_people  events of people that had no effect yet
CREATE INDEX forge_events_people ON draftsman.forge_events (id)
    WHERE processed_at IS NULL AND kind IN ('labeled_issue', 'issue_comment', 'answer');

-- A bot records the outcome of events of people, once.
CREATE FUNCTION draftsman.finish_forge_event(event bigint, outcome text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access(format('%s processes no events of forges', session_user));
    END IF;
    UPDATE draftsman.forge_events e
       SET outcome = $2, processed_at = draftsman.now()
     WHERE e.id = $1 AND e.processed_at IS NULL
       AND e.kind IN ('labeled_issue', 'issue_comment', 'answer');
    RETURN FOUND;
END $$;

ALTER FUNCTION draftsman.grant_roles() RENAME TO grant_roles_before_forge_channel;
CREATE FUNCTION draftsman.grant_roles() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    missing text := draftsman.grant_roles_before_forge_channel();
BEGIN
    IF to_regrole('draftsman_bot') IS NOT NULL THEN
        GRANT EXECUTE ON FUNCTION draftsman.finish_forge_event(bigint, text) TO draftsman_bot;
    END IF;
    RETURN missing;
END $$;
