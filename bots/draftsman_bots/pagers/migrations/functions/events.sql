-- Pagers: the events of the alerts of questions.

-- Records an event of a pager; true if it is new, and no newer event of the question is known. Two
-- events of a question are recorded one after the other. An alert that is opened again ends the
-- acknowledgment that came from its pager.
CREATE OR REPLACE FUNCTION draftsman.record_pager_event(
    pager text, id text, job bigint, question int, kind text, occurred_at timestamptz
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_newest boolean;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access('pager.record');
    END IF;
    PERFORM FROM draftsman.job_states j WHERE j.number = job FOR NO KEY UPDATE;
    INSERT INTO draftsman.pager_events (pager, id, job, question, kind, occurred_at)
    VALUES (pager, id, job, question, kind, occurred_at)
        ON CONFLICT ON CONSTRAINT pager_events_pkey DO NOTHING;
    is_newest := FOUND AND NOT EXISTS (
        SELECT FROM draftsman.pager_events e
         WHERE e.job = record_pager_event.job AND e.question = record_pager_event.question
           AND e.pager = record_pager_event.pager
           AND e.occurred_at > record_pager_event.occurred_at);
    IF is_newest AND kind = 'reopened' THEN
        PERFORM draftsman.end_acknowledgment(
            job, question, format('pager:%s:', lower(pager)), 'pager:' || pager, id);
    END IF;
    RETURN is_newest;
END $$;

-- Acknowledges the alerts of a question with the question: once for each person, and again after an
-- alert was opened again.
CREATE OR REPLACE FUNCTION draftsman.acknowledge_alerts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO draftsman.deliveries
           (job, question, channel, target, thread_key, kind, dedupe_key, payload)
    SELECT DISTINCT d.job, d.question, d.channel, d.target, d.thread_key,
           'notice'::draftsman.delivery_kind,
           format('acknowledged:%s:%s%s', NEW.question, NEW.person, (
               SELECT max(e.received_at) FROM draftsman.pager_events e
                WHERE e.job = NEW.job AND e.question = NEW.question AND e.kind = 'reopened')),
           jsonb_build_object('acknowledged_by', NEW.person)
      FROM draftsman.deliveries d
     WHERE d.job = NEW.job AND d.question = NEW.question
       AND d.channel = 'pager' AND d.kind = 'question'
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER question_acknowledgments_alerts AFTER INSERT OR UPDATE
    ON draftsman.question_acknowledgments FOR EACH ROW
    EXECUTE FUNCTION draftsman.acknowledge_alerts();

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER pager_events_immutable BEFORE UPDATE OR DELETE ON draftsman.pager_events
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('pager.event_kept');
CREATE OR REPLACE TRIGGER pager_events_no_truncate BEFORE TRUNCATE ON draftsman.pager_events
    EXECUTE FUNCTION draftsman.refuse_change('pager.event_kept');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_pager() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('bot', 'EXECUTE ON FUNCTION
        draftsman.record_pager_event(text, text, bigint, int, text, timestamptz)');
$$;
