-- The agent of a job whose request names none: the run that finds its repository records it.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0018_agents') AS applied \gset
\if :applied \echo '0018_agents is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0018_agents');

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
