-- The agent of a job whose request names none: the run that finds its repository records it.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0019_agents') AS applied \gset
\if :applied \echo '0019_agents is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0019_agents');

DROP TRIGGER job_requests_immutable ON draftsman.job_requests;
CREATE TRIGGER job_requests_immutable BEFORE UPDATE OF number, id, type, idempotency_key,
    request_digest, mode, source, source_type, external_event_id, invoker_id, invoker_display_name,
    ticket_url, ticket_title, ticket_text, payload, overrides, requested_skills, tags,
    retry_of, chain_length, template, template_version, created_at
    ON draftsman.job_requests FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('the request of a job is immutable');

-- An agent is set once, while the job runs.
CREATE FUNCTION draftsman.check_agent_assignment() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.agent IS NOT NULL OR NEW.agent IS NULL OR NOT EXISTS (
       SELECT FROM draftsman.job_states s WHERE s.number = NEW.number AND s.status = 'running') THEN
        RAISE EXCEPTION 'job_requests: update is not allowed; the request of a job is immutable'
            USING ERRCODE = 'DM002';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER job_requests_agent BEFORE UPDATE OF agent ON draftsman.job_requests
    FOR EACH ROW EXECUTE FUNCTION draftsman.check_agent_assignment();

-- Sets the agent of a running job without an agent, which counts from now on for the limits of its
-- agent; false after a lost lease.
CREATE FUNCTION draftsman.assign_agent(job bigint, token bigint, agent text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM draftsman.job_states s
      WHERE s.number = $1 AND s.lease_token = $2 AND s.status = 'running'
        AND s.cancel_requested_at IS NULL
        FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE draftsman.job_requests r SET agent = $3 WHERE r.number = $1 AND r.agent IS NULL;
    IF FOUND AND EXISTS (SELECT FROM draftsman.limits l WHERE l.scope = 'agent') THEN
        UPDATE draftsman.job_states s SET limits = l.limits
          FROM (SELECT draftsman.limits_of($1) AS limits) l
         WHERE s.number = $1 AND s.limits IS DISTINCT FROM l.limits;
    END IF;
    RETURN true;
END $$;

-- `grant_roles` is changed in place, so that the privileges of other migrations stay as they are.
DO $$
DECLARE
    before text := pg_get_functiondef('draftsman.grant_roles()'::regprocedure);
    after  text := replace(before, 'draftsman.await_jobs(bigint, bigint, bigint[])',
                           'draftsman.await_jobs(bigint, bigint, bigint[]),
            draftsman.assign_agent(bigint, bigint, text)');
BEGIN
    IF after = before THEN
        RAISE EXCEPTION 'grant_roles() does not grant await_jobs';
    END IF;
    EXECUTE after;
END $$;
SELECT draftsman.grant_roles();
