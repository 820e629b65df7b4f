-- The rules of the life cycle, kept by the database whoever writes.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0002_guards');

-- By how much `version` grows from one status to the next; NULL where the step does not exist.
-- Rendered from TRANSITIONS and FUSED in draftsman.domain.job.
CREATE FUNCTION draftsman.transition_steps(
    before draftsman.job_status, after draftsman.job_status
) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE before
        WHEN 'scheduled' THEN CASE WHEN after IN ('queued', 'resumed', 'canceled') THEN 1 END
        WHEN 'queued' THEN CASE WHEN after IN ('claimed', 'canceled') THEN 1 WHEN after = 'running' THEN 2 END
        WHEN 'claimed' THEN CASE WHEN after IN ('running', 'queued', 'resumed', 'canceled') THEN 1 END
        WHEN 'running' THEN CASE WHEN after IN ('waiting_for_input', 'waiting_for_approval', 'scheduled', 'completed', 'failed', 'dead_letter', 'retrying', 'canceled', 'resumed') THEN 1 END
        WHEN 'waiting_for_input' THEN CASE WHEN after IN ('resumed', 'expired', 'canceled') THEN 1 END
        WHEN 'waiting_for_approval' THEN CASE WHEN after IN ('resumed', 'failed', 'expired', 'canceled') THEN 1 END
        WHEN 'resumed' THEN CASE WHEN after IN ('claimed', 'canceled') THEN 1 WHEN after = 'running' THEN 2 END
        WHEN 'retrying' THEN CASE WHEN after IN ('queued', 'canceled') THEN 1 END
    END
$$;

-- The kind of the event that a step leaves. Rendered from TRANSITIONS.
CREATE FUNCTION draftsman.transition_kind(
    before draftsman.job_status, after draftsman.job_status
) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE before
        WHEN 'scheduled' THEN CASE after
            WHEN 'queued' THEN 'job_promoted'
            WHEN 'resumed' THEN 'job_woken'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'queued' THEN CASE after
            WHEN 'claimed' THEN 'job_claimed'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'claimed' THEN CASE after
            WHEN 'running' THEN 'job_started'
            WHEN 'queued' THEN 'job_returned'
            WHEN 'resumed' THEN 'job_returned'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'running' THEN CASE after
            WHEN 'waiting_for_input' THEN 'needs_input'
            WHEN 'waiting_for_approval' THEN 'needs_approval'
            WHEN 'scheduled' THEN 'job_paused'
            WHEN 'completed' THEN 'job_completed'
            WHEN 'failed' THEN 'job_failed'
            WHEN 'dead_letter' THEN 'queue_job_dead'
            WHEN 'retrying' THEN 'job_retrying'
            WHEN 'canceled' THEN 'job_canceled'
            WHEN 'resumed' THEN 'job_handed_back' END
        WHEN 'waiting_for_input' THEN CASE after
            WHEN 'resumed' THEN 'job_resumed'
            WHEN 'expired' THEN 'job_expired'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'waiting_for_approval' THEN CASE after
            WHEN 'resumed' THEN 'job_resumed'
            WHEN 'failed' THEN 'job_failed'
            WHEN 'expired' THEN 'job_expired'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'resumed' THEN CASE after
            WHEN 'claimed' THEN 'job_claimed'
            WHEN 'canceled' THEN 'job_canceled' END
        WHEN 'retrying' THEN CASE after
            WHEN 'queued' THEN 'job_retried'
            WHEN 'canceled' THEN 'job_canceled' END
    END
$$;

CREATE FUNCTION draftsman.refuse_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a job is created queued or scheduled, unstarted, with version 1; not %',
        NEW.status USING ERRCODE = 'DM001';
END $$;
CREATE TRIGGER jobs_guard_insert BEFORE INSERT ON draftsman.jobs FOR EACH ROW
    WHEN (NOT (NEW.status IN ('scheduled', 'queued') AND NEW.version = 1 AND NEW.run_count = 0
          AND NEW.attempts = 0 AND NEW.retry_count = 0 AND NEW.cancel_requested_at IS NULL))
    EXECUTE FUNCTION draftsman.refuse_insert();

CREATE FUNCTION draftsman.refuse_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'D-%: % to % is not allowed (version % to %)',
        OLD.number, OLD.status, NEW.status, OLD.version, NEW.version USING ERRCODE = 'DM001';
END $$;
-- A claimed job goes back to where it came from, a woken one is `resumed` if it ran before; a lease
-- is new with each claim and changes with a status only.
CREATE TRIGGER jobs_guard_update BEFORE UPDATE OF status, lease_token, version
    ON draftsman.jobs FOR EACH ROW
    WHEN (NOT coalesce(CASE
        WHEN OLD.status = NEW.status THEN
            NEW.version = OLD.version AND NEW.lease_token IS NOT DISTINCT FROM OLD.lease_token
        ELSE
            NEW.version = OLD.version + draftsman.transition_steps(OLD.status, NEW.status)
            AND (OLD.status <> 'claimed' OR NEW.status IN ('running', 'canceled', OLD.claimed_from))
            AND (OLD.status <> 'claimed' OR NEW.status <> 'running'
                 OR NEW.lease_token = OLD.lease_token)
            AND (OLD.status <> 'scheduled' OR NEW.status <> 'queued' OR OLD.run_count = 0)
            AND (OLD.status <> 'scheduled' OR NEW.status <> 'resumed' OR OLD.run_count > 0)
        END, false))
    EXECUTE FUNCTION draftsman.refuse_transition();

CREATE FUNCTION draftsman.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: % is not allowed; %', TG_TABLE_NAME, lower(TG_OP), TG_ARGV[0]
        USING ERRCODE = 'DM002';
END $$;
CREATE TRIGGER jobs_immutable BEFORE UPDATE OF number, id, type, idempotency_key, request_digest,
    payload, overrides, ticket_url, ticket_title, ticket_text, invoker_id, invoker_display_name,
    mode, source, source_type, external_event_id, retry_of, chain_length, max_attempts, max_retries,
    created_at ON draftsman.jobs FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('what was asked stays as it was asked');
CREATE TRIGGER jobs_terminal BEFORE UPDATE ON draftsman.jobs FOR EACH ROW
    WHEN (OLD.finished_at IS NOT NULL)
    EXECUTE FUNCTION draftsman.refuse_change('a finished job stays as it ended');
CREATE TRIGGER jobs_kept BEFORE DELETE ON draftsman.jobs FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('jobs are kept for ever');
CREATE TRIGGER jobs_kept_all BEFORE TRUNCATE ON draftsman.jobs
    EXECUTE FUNCTION draftsman.refuse_change('jobs are kept for ever');

CREATE TRIGGER job_runs_terminal BEFORE UPDATE ON draftsman.job_runs FOR EACH ROW
    WHEN (OLD.status <> 'running')
    EXECUTE FUNCTION draftsman.refuse_change('a finished run stays as it ended');
CREATE TRIGGER job_runs_kept BEFORE DELETE ON draftsman.job_runs FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('runs are kept for ever');

CREATE TRIGGER job_runs_kept_all BEFORE TRUNCATE ON draftsman.job_runs
    EXECUTE FUNCTION draftsman.refuse_change('runs are kept for ever');

-- A resolved question stays resolved; only an answered one may still be superseded by a new asking.
CREATE TRIGGER job_questions_closed BEFORE UPDATE ON draftsman.job_questions FOR EACH ROW
    WHEN (OLD.status <> 'open' AND NOT (OLD.status IN ('answered', 'expired')
          AND NEW.status = 'superseded'))
    EXECUTE FUNCTION draftsman.refuse_change('a resolved question stays resolved');
CREATE TRIGGER job_questions_kept BEFORE DELETE ON draftsman.job_questions FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions are kept for ever');
CREATE TRIGGER job_questions_kept_all BEFORE TRUNCATE ON draftsman.job_questions
    EXECUTE FUNCTION draftsman.refuse_change('questions are kept for ever');
CREATE TRIGGER job_answers_kept BEFORE UPDATE OR DELETE ON draftsman.job_answers FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('answers are kept as they were given');

CREATE TRIGGER job_answers_kept_all BEFORE TRUNCATE ON draftsman.job_answers
    EXECUTE FUNCTION draftsman.refuse_change('answers are kept as they were given');

-- Row triggers reach the partitions too; a TRUNCATE of a partition does not pass its parent.
CREATE TRIGGER job_events_kept BEFORE UPDATE OR DELETE ON draftsman.job_events FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('the trail is append-only');
CREATE TRIGGER job_events_kept_all BEFORE TRUNCATE ON draftsman.job_events
    EXECUTE FUNCTION draftsman.refuse_change('the trail is append-only');
CREATE TRIGGER job_events_kept_all BEFORE TRUNCATE ON draftsman.job_events_default
    EXECUTE FUNCTION draftsman.refuse_change('the trail is append-only');

-- The trail: one statement-level trigger, so that no code path can forget an event.
CREATE FUNCTION draftsman.record_creation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO draftsman.job_events (job, kind, to_status, actor, payload)
    SELECT n.number, 'job_created', n.status,
           coalesce(nullif(current_setting('draftsman.actor', true), ''), session_user),
           jsonb_strip_nulls(jsonb_build_object('type', n.type, 'source', n.source, 'mode', n.mode,
               'agent', n.agent, 'repo_name', n.repo_name, 'retry_of', n.retry_of))
           || coalesce(nullif(current_setting('draftsman.detail', true), '')::jsonb, '{}')
      FROM new_jobs n
     ORDER BY n.number;
    RETURN NULL;
END $$;
CREATE TRIGGER jobs_created AFTER INSERT ON draftsman.jobs
    REFERENCING NEW TABLE AS new_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.record_creation();

CREATE FUNCTION draftsman.record_transitions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wrong bigint;
BEGIN
    INSERT INTO draftsman.job_events (job, run, kind, from_status, to_status, actor, payload)
    SELECT n.number,
           CASE WHEN 'running' IN (s.before, s.after) THEN n.run_count END,
           draftsman.transition_kind(s.before, s.after), s.before, s.after,
           coalesce(nullif(current_setting('draftsman.actor', true), ''),
                    'worker:' || coalesce(n.worker_id, o.worker_id), session_user),
           CASE s.after
               WHEN 'failed' THEN jsonb_build_object('error', left(n.last_error, 2000),
                                                     'error_class', n.error_class)
               WHEN 'dead_letter' THEN jsonb_build_object('error', left(n.last_error, 2000),
                    'error_class', n.error_class, 'attempts', n.attempts, 'retries', n.retry_count)
               WHEN 'retrying' THEN jsonb_build_object('error', left(n.last_error, 2000),
                    'error_class', n.error_class, 'next_retry_at', n.next_retry_at)
               WHEN 'canceled' THEN jsonb_strip_nulls(jsonb_build_object(
                    'reason', left(n.cancel_reason, 2000), 'by', n.cancel_requested_by))
               WHEN 'scheduled' THEN jsonb_build_object('run_at', n.run_at)
               ELSE '{}'
           END || coalesce(nullif(current_setting('draftsman.detail', true), '')::jsonb, '{}')
      FROM new_jobs n
      JOIN old_jobs o ON o.number = n.number AND o.status <> n.status
     CROSS JOIN LATERAL (
         SELECT 1 AS step, o.status AS before,
                CASE WHEN n.version = o.version + 2 THEN 'claimed' ELSE n.status END AS after
         UNION ALL
         SELECT 2, 'claimed', n.status WHERE n.version = o.version + 2) s
     ORDER BY n.number, s.step;

    SELECT n.number INTO wrong
      FROM new_jobs n
     WHERE (n.status = 'running') <> EXISTS (
           SELECT FROM draftsman.job_runs r WHERE r.job = n.number AND r.status = 'running')
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'D-%: a running job has exactly one open run, any other none', wrong
            USING ERRCODE = 'DM003';
    END IF;
    SELECT n.number INTO wrong
      FROM new_jobs n
     WHERE (n.status IN ('waiting_for_input', 'waiting_for_approval')) <> EXISTS (
           SELECT FROM draftsman.job_questions q WHERE q.job = n.number AND q.status = 'open')
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'D-%: a waiting job has exactly one open question, any other none', wrong
            USING ERRCODE = 'DM003';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER jobs_changed AFTER UPDATE ON draftsman.jobs
    REFERENCING OLD TABLE AS old_jobs NEW TABLE AS new_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.record_transitions();

-- Partitions for this month and so many after it, each with its own guard. A month that already
-- has rows in the default partition stays there.
CREATE FUNCTION draftsman.make_event_partitions(ahead int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    this  timestamp := date_trunc('month', draftsman.now() AT TIME ZONE 'UTC');
    month timestamp;
    first timestamptz;
    after timestamptz;
    name  text;
    made  int := 0;
BEGIN
    FOR month IN SELECT generate_series(this, this + make_interval(months => ahead),
                                        interval '1 month')
    LOOP
        first := month AT TIME ZONE 'UTC';
        after := (month + interval '1 month') AT TIME ZONE 'UTC';
        name := 'job_events_' || to_char(month, 'YYYY_MM');
        CONTINUE WHEN to_regclass('draftsman.' || name) IS NOT NULL OR EXISTS (
            SELECT FROM draftsman.job_events_default
             WHERE created_at >= first AND created_at < after);
        EXECUTE format('CREATE TABLE draftsman.%I PARTITION OF draftsman.job_events
            FOR VALUES FROM (%L) TO (%L)', name, first, after);
        EXECUTE format('CREATE TRIGGER job_events_kept_all BEFORE TRUNCATE ON draftsman.%I
            EXECUTE FUNCTION draftsman.refuse_change(%L)', name, 'the trail is append-only');
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;
SELECT draftsman.make_event_partitions(3);
