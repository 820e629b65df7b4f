-- Workers, their leases and heartbeats, the agents that they keep running for an answer, and the
-- jobs that may have ended a worker.

INSERT INTO draftsman.schema_functions (name) VALUES ('workers')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Workers -----------------------------------------------------------------------------------------

-- The last sign of life of each job that a worker has: of its run, or, while it is only claimed, of
-- its worker. Both the rescue and the explanation of a job read this view, so that they cannot
-- disagree.
CREATE OR REPLACE VIEW draftsman.heartbeats AS
    SELECT j.number AS job, j.worker_id, w.host, j.updated_at,
           coalesce(CASE WHEN j.status = 'running' THEN r.heartbeat_at
                    ELSE greatest(w.heartbeat_at, j.claimed_at) END, j.updated_at) AS heartbeat_at
      FROM draftsman.job_states j
      LEFT JOIN draftsman.job_runs r ON r.job = j.number AND r.ordinal = j.run_count
       AND r.status = 'running'
      LEFT JOIN draftsman.workers w ON w.id = j.worker_id
     WHERE j.status IN ('claimed', 'running');

-- The workers that take jobs as far as their lease tells, in seconds. Sweeps that change jobs read
-- these: a worker whose connection breaks for a moment keeps what waits for it.
CREATE OR REPLACE FUNCTION draftsman.leased_workers(lease float8) RETURNS SETOF draftsman.workers
LANGUAGE sql STABLE AS $$
    SELECT w.* FROM draftsman.workers w
     WHERE NOT w.draining AND w.heartbeat_at > draftsman.now() - make_interval(secs => lease)
$$;

-- Whether a session holds the session lock with this number: its process can reach the database.
CREATE OR REPLACE FUNCTION draftsman.is_connected(lock_id int) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_locks l
         WHERE l.locktype = 'advisory' AND l.classid = 1146242644 AND l.objid = lock_id::oid
           AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d
                              WHERE d.datname = pg_catalog.current_database()))
$$;

-- The workers that are alive to all that people and programs read: those that were not silent for
-- their lease, nor for 15 s while their session lock is free.
CREATE OR REPLACE FUNCTION draftsman.live_workers(lease float8) RETURNS SETOF draftsman.workers
LANGUAGE sql STABLE AS $$
    SELECT w.* FROM draftsman.workers w
     WHERE w.heartbeat_at > draftsman.now() - make_interval(secs => lease)
       AND (w.heartbeat_at > draftsman.now() - make_interval(secs => 15)
            OR w.lock_id::oid IN (
               SELECT l.objid FROM pg_catalog.pg_locks l
                WHERE l.locktype = 'advisory' AND l.classid = 1146242644
                  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d
                                     WHERE d.datname = pg_catalog.current_database())))
$$;

-- The live workers that claim jobs now.
CREATE OR REPLACE FUNCTION draftsman.serving_workers(lease float8) RETURNS SETOF draftsman.workers
LANGUAGE sql STABLE AS $$
    SELECT w.* FROM draftsman.live_workers(lease) w WHERE NOT w.draining
$$;

-- A bot may hold the lease of a poller, which has the name of its channel, and no other.
CREATE OR REPLACE FUNCTION draftsman.check_lease() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() = 'bot' THEN
        PERFORM draftsman.deny_access('worker.lease_of_bot', jsonb_build_object('lease', l.name))
           FROM unnest(ARRAY[NEW.name, OLD.name]) AS l (name)
          WHERE l.name IS NOT NULL AND NOT EXISTS (
                SELECT FROM draftsman.channels c WHERE c.name = l.name AND c.has_bot)
          LIMIT 1;
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER leases_session BEFORE INSERT OR UPDATE ON draftsman.leases FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_lease();

-- Grace periods -----------------------------------------------------------------------------------

-- Claims a resumed job for the worker that keeps the agent of its question running, if a worker
-- could claim it now; false if not, so that any worker claims it. The worker starts the claim, or
-- releases it at the end of the grace period; if it dies, its claims are rescued. A worker whose
-- session lock is free has died. The reservations of running calls follow the agent to the new
-- lease.
CREATE OR REPLACE FUNCTION draftsman.claim_in_grace(job bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    period draftsman.grace_periods;
    token  bigint;
BEGIN
    SELECT * INTO period FROM draftsman.grace_periods g
     WHERE g.job = claim_in_grace.job AND g.ends_at > draftsman.now() FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM set_config('draftsman.actor', '', true), set_config('draftsman.detail',
        jsonb_build_object('reason', draftsman.sentence('worker.in_grace')::text)::text, true);
    UPDATE draftsman.job_states s
       SET status = 'claimed', claimed_from = 'resumed', worker_id = period.worker_id,
           lease_token = nextval('draftsman.lease_tokens'), version = s.version + 1,
           claimed_at = draftsman.now(), updated_at = draftsman.now()
     WHERE s.ctid = (SELECT c.location FROM draftsman.claimable c
                      WHERE c.number = claim_in_grace.job)
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
        UPDATE draftsman.grace_periods g SET ends_at = draftsman.now()
         WHERE g.job = claim_in_grace.job;
        RETURN false;
    END IF;
    DELETE FROM draftsman.grace_periods g WHERE g.job = claim_in_grace.job;
    UPDATE draftsman.budget_reservations r SET lease_token = token
     WHERE r.job = claim_in_grace.job AND r.lease_token = period.lease_token;
    RETURN true;
END $$;

-- Suspects ----------------------------------------------------------------------------------------

-- What the loss of a run means, given the status of its job as a suspect, the number of runs that
-- its worker lost, and of those among them that are on trial or convicted. `charged`: it was alone.
CREATE OR REPLACE FUNCTION draftsman.verdict(
    suspect draftsman.suspect_status, lost bigint, tried bigint
) RETURNS text
LANGUAGE sql IMMUTABLE RETURN CASE
    WHEN tried = 1 AND suspect IN ('trial', 'convicted') THEN 'convicted'
    WHEN tried > 0 AND coalesce(suspect IN ('trial', 'convicted'), false) THEN 'waiting'
    WHEN tried > 0 THEN 'innocent'
    WHEN lost > 1 AND suspect IS NULL THEN 'noted'
    WHEN lost > 1 THEN 'waiting'
    ELSE 'charged' END;

-- Ends the trials of suspects that survived, releases those whose worker was ended by a convicted
-- job, and begins the next trial of each crash; returns the number of changes. A suspect survives
-- if its run ends in any other way, or lives for longer than the lost run did: at most for five
-- minutes after the first loss, and for twice as long after each further loss. Only `these` jobs
-- (NULL: all), and not those `without`: another job of their crash is tried instead. A suspect
-- changes with the lock of its job; those whose jobs another transaction has locked are left for
-- the next call.
CREATE OR REPLACE FUNCTION draftsman.try_suspects(these bigint[], without bigint[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    selected bigint[] := ARRAY(
        SELECT j.number
          FROM draftsman.suspects s
          JOIN draftsman.job_states j ON j.number = s.job
         WHERE (these IS NULL OR s.job = ANY (these)) AND s.job <> ALL (without)
         ORDER BY j.number
           FOR NO KEY UPDATE OF j SKIP LOCKED);
    ended    int;
    survived int;
    freed    bigint[];
    next     bigint[];
BEGIN
    DELETE FROM draftsman.suspects s USING draftsman.job_states j
     WHERE s.job = ANY (selected) AND j.number = s.job
       AND (j.finished_at IS NOT NULL
            OR j.status IN ('waiting_for_input', 'waiting_for_approval', 'scheduled')
            OR (j.run_count > s.run AND j.status IN ('retrying', 'queued', 'resumed')));
    GET DIAGNOSTICS ended = ROW_COUNT;
    UPDATE draftsman.suspects s SET status = 'acquitted'
      FROM draftsman.job_runs r
     WHERE s.job = ANY (selected) AND s.status = 'trial'
       AND r.job = s.job AND r.ordinal > s.run AND r.status = 'running'
       AND r.started_at < draftsman.now() - make_interval(secs => s.seconds);
    GET DIAGNOSTICS survived = ROW_COUNT;
    freed := ARRAY(SELECT s.job FROM draftsman.suspects s
                    WHERE s.job = ANY (selected) AND s.status = 'waiting' AND EXISTS (
                          SELECT FROM draftsman.suspects c
                           WHERE c.crash = s.crash AND c.status = 'convicted'));
    UPDATE draftsman.suspects SET status = 'acquitted' WHERE job = ANY (freed);
    next := ARRAY(SELECT min(s.job) FROM draftsman.suspects s
                   WHERE s.job = ANY (selected) AND s.status = 'waiting' AND NOT EXISTS (
                         SELECT FROM draftsman.suspects t
                          WHERE t.crash = s.crash AND t.status = 'trial')
                   GROUP BY s.crash);
    UPDATE draftsman.suspects SET status = 'trial' WHERE job = ANY (next);
    UPDATE draftsman.job_states SET next_retry_at = draftsman.now(), updated_at = draftsman.now()
     WHERE number = ANY (freed || next) AND status = 'retrying';
    RETURN ended + survived + cardinality(freed) + cardinality(next);
END $$;

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_workers() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.leased_workers(float8), draftsman.live_workers(float8),
        draftsman.serving_workers(float8), draftsman.is_connected(int),
        draftsman.verdict(draftsman.suspect_status, bigint, bigint)');
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.try_suspects(bigint[], bigint[])');
    SELECT draftsman.grant_to('worker', 'INSERT, UPDATE, DELETE
        ON draftsman.workers, draftsman.suspects, draftsman.grace_periods');
    SELECT draftsman.grant_to('worker bot', 'INSERT, UPDATE ON draftsman.leases');
$$;
