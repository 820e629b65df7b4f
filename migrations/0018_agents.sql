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

-- Claims a resumed job for the worker that keeps the agent of its question running, if a worker
-- could claim it now; false if not, so that any worker claims it. The worker starts the claim, or
-- releases it at the end of the grace period; if it dies, its claims are rescued. A worker whose
-- session lock is free has died. The reservations of running calls follow the agent to the new lease.
CREATE FUNCTION draftsman.claim_in_grace(job bigint) RETURNS boolean LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    period draftsman.grace_periods;
    token  bigint;
BEGIN
    SELECT * INTO period FROM draftsman.grace_periods g
     WHERE g.job = $1 AND g.ends_at > draftsman.now() FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM set_config('draftsman.actor', '', true), set_config('draftsman.detail',
        '{"reason": "its agent waited for this answer"}', true);
    UPDATE draftsman.job_states s
       SET status = 'claimed', claimed_from = 'resumed', worker_id = period.worker_id,
           lease_token = nextval('draftsman.lease_tokens'), version = s.version + 1,
           claimed_at = draftsman.now(), updated_at = draftsman.now()
     WHERE s.ctid = (SELECT c.location FROM draftsman.claimable c WHERE c.number = $1)
       AND s.status = 'resumed'
       AND NOT EXISTS (SELECT FROM draftsman.queue_pauses p
                        WHERE p.queue = s.queue AND p.type IS NULL)
       AND NOT EXISTS (SELECT FROM draftsman.active_reservations r
                        WHERE r.queue = s.queue AND r.job <> s.number)
       AND EXISTS (SELECT FROM draftsman.workers w
                    WHERE w.id = period.worker_id AND NOT w.draining
                      AND draftsman.is_connected(w.lock_id))
    RETURNING s.lease_token INTO token;
    IF NOT FOUND THEN
        UPDATE draftsman.grace_periods g SET ends_at = draftsman.now() WHERE g.job = $1;
        RETURN false;
    END IF;
    DELETE FROM draftsman.grace_periods g WHERE g.job = $1;
    UPDATE draftsman.budget_reservations r SET lease_token = token
     WHERE r.job = $1 AND r.lease_token = period.lease_token;
    RETURN true;
END $$;
