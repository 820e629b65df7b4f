-- A denial is a decision of a person, not a crash; a question that never expires stays so; a request
-- that joins a live job leaves an event.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0019_decisions');

ALTER TYPE draftsman.error_class ADD VALUE 'DENIED';

CREATE OR REPLACE FUNCTION pg_temp.patch(name text, before text, after text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    old text := pg_get_functiondef(name::regprocedure);
BEGIN
    IF strpos(old, before) = 0 THEN
        RAISE EXCEPTION '% has no: %', name, before;
    END IF;
    EXECUTE overlay(old PLACING after FROM strpos(old, before) FOR length(before));
END $$;

-- The job says who denied it and why, whichever release hands the denial in.
SELECT pg_temp.patch('draftsman.resolve_question(bigint, int, draftsman.question_status, jsonb,
    draftsman.job_status, text, text, text, text)', '    INSERT INTO draftsman.job_events', $patch$
    IF job_status = 'failed' AND asked.resolution ->> 'outcome' = 'denied' THEN
        error := 'denied by '
            || (SELECT string_agg(name, ', ') FROM jsonb_array_elements_text(asked.resolution -> 'by') name)
            || coalesce(': ' || (asked.resolution ->> 'reason'), '');
    END IF;
    INSERT INTO draftsman.job_events$patch$);
SELECT pg_temp.patch('draftsman.resolve_question(bigint, int, draftsman.question_status, jsonb,
    draftsman.job_status, text, text, text, text)', $$ELSE 'PERMANENT' END$$,
    $$WHEN asked.resolution ->> 'outcome' = 'denied' THEN 'DENIED'
                         ELSE 'PERMANENT' END$$);

-- Compared as text: a new label cannot be used in the transaction that adds it.
ALTER TABLE draftsman.job_runs ADD CONSTRAINT job_runs_never_denied
    CHECK (error_class::text <> 'DENIED') NOT VALID;
CREATE FUNCTION draftsman.check_denied() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.status <> 'failed' OR (
        SELECT q.resolution ->> 'outcome' = 'denied' AND q.on_deny = 'fail'
          FROM draftsman.job_questions q WHERE q.job = NEW.number
         ORDER BY q.ordinal DESC LIMIT 1) IS NOT TRUE THEN
        RAISE EXCEPTION 'D-%: a job is denied by a person who denied its last question', NEW.number
            USING ERRCODE = 'DM003';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER jobs_denied BEFORE UPDATE OF error_class ON draftsman.jobs FOR EACH ROW
    WHEN (NEW.error_class::text = 'DENIED' AND OLD.error_class IS DISTINCT FROM NEW.error_class)
    EXECUTE FUNCTION draftsman.check_denied();

SELECT pg_temp.patch('draftsman.extend_question(bigint, int, float8, text)',
    'CASE WHEN $3 IS NULL THEN NULL', 'CASE WHEN $3 IS NULL OR q.expires_at IS NULL THEN NULL');

-- A request that joined a live job of its subject: kept once for each key, and once for each person
-- and digest, so that a retry or a timer leaves one event, and at most 200 for a job.
CREATE FUNCTION draftsman.join_request(job bigint, actor text, request jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.speaks_for(actor) AND (
           draftsman.session_kind() = 'bot'  -- a board asks, too
           OR (draftsman.has_role(draftsman.person_behind(actor), 'invoker')
               AND request ->> 'requester' = draftsman.person_behind(actor)))) IS NOT TRUE THEN
        PERFORM draftsman.refuse_session(format('%s may not ask for D-%s', actor, job));
    END IF;
    PERFORM FROM draftsman.jobs j WHERE j.number = $1 FOR NO KEY UPDATE;
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT $1, 'request_joined', $2, $3
     WHERE (SELECT count(*) < 200
               AND count(*) FILTER (WHERE e.payload -> 'key' = $3 -> 'key'
                   OR (e.payload -> 'digest', e.payload -> 'requester')
                      = ($3 -> 'digest', $3 -> 'requester')) = 0
              FROM draftsman.job_events e
             WHERE e.job = $1 AND e.kind = 'request_joined');
END $$;
SELECT pg_temp.patch('draftsman.grant_roles()', 'draftsman.cancel_job(bigint, text, text), ',
    'draftsman.cancel_job(bigint, text, text), draftsman.join_request(bigint, text, jsonb), ');
SELECT draftsman.grant_roles();
