-- Plans that fit every batch with no node disabled, and no compilation.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0014_plans');

-- Until PostgreSQL 17 a disabled node costs 1e10, so that a server with default settings compiled the
-- plan of each change (`jit`): 0.5 to 1.6 s for what takes 1 ms.
--
-- A session plans a trigger once, by the first batch that it sees. A full join is a hash or a merge
-- join, never a nested loop; `number` is immutable, so each new row has its old one and a full join
-- is an inner one. The condition is a CASE, which lets the planner not turn it into one. A nested
-- loop remains for the one or two steps of a row, in their order: nothing has to be sorted, which
-- the sessions of workers do not allow either. Runs and questions are looked up by index
-- (`enable_seqscan`, which disables no node here: each of them has its index).
CREATE OR REPLACE FUNCTION draftsman.record_transitions() RETURNS trigger LANGUAGE plpgsql
    SET jit = off SET enable_seqscan = off AS $$
DECLARE
    wrong  bigint;
    who    text := nullif(current_setting('draftsman.actor', true), '');
    detail jsonb := coalesce(nullif(current_setting('draftsman.detail', true), ''), '{}');
BEGIN
    INSERT INTO draftsman.job_events (job, run, kind, from_status, to_status, actor, payload)
    SELECT n.number,
           CASE WHEN 'running' IN (s.before, s.after) THEN n.run_count END,
           draftsman.transition_kind(s.before, s.after), s.before, s.after,
           coalesce(who, 'worker:' || coalesce(n.worker_id, o.worker_id), session_user),
           CASE s.after
               WHEN 'failed' THEN jsonb_build_object('error', left(n.last_error, 2000),
                    'error_class', n.error_class) || detail
               WHEN 'dead_letter' THEN jsonb_build_object('error', left(n.last_error, 2000),
                    'error_class', n.error_class, 'attempts', n.attempts, 'retries', n.retry_count)
                    || detail
               WHEN 'retrying' THEN jsonb_build_object('error', left(n.last_error, 2000),
                    'error_class', n.error_class, 'next_retry_at', n.next_retry_at) || detail
               WHEN 'canceled' THEN jsonb_strip_nulls(jsonb_build_object(
                    'reason', left(n.cancel_reason, 2000), 'by', n.cancel_requested_by)) || detail
               WHEN 'scheduled' THEN jsonb_build_object('run_at', n.run_at) || detail
               ELSE detail
           END
      FROM new_jobs n
      FULL JOIN old_jobs o ON o.number = n.number
     CROSS JOIN LATERAL (
         SELECT o.status AS before,
                CASE WHEN n.version = o.version + 2 THEN 'claimed' ELSE n.status END AS after
         UNION ALL
         SELECT 'claimed', n.status WHERE n.version = o.version + 2) s
     WHERE CASE
           WHEN o.status = n.status AND n.version = o.version
                AND n.lease_token IS NOT DISTINCT FROM o.lease_token THEN
               o.finished_at IS NOT NULL AND draftsman.refuse_change(n.number)
           WHEN o.status <> n.status AND n.version = o.version + CASE o.status
                WHEN 'scheduled' THEN CASE WHEN n.status IN ('queued', 'resumed', 'canceled') THEN 1 END
                WHEN 'queued' THEN CASE WHEN n.status IN ('claimed', 'canceled') THEN 1 WHEN n.status = 'running' THEN 2 END
                WHEN 'claimed' THEN CASE WHEN n.status IN ('running', 'queued', 'resumed', 'canceled') THEN 1 END
                WHEN 'running' THEN CASE WHEN n.status IN ('waiting_for_input', 'waiting_for_approval', 'scheduled', 'completed', 'failed', 'dead_letter', 'retrying', 'canceled', 'resumed') THEN 1 END
                WHEN 'waiting_for_input' THEN CASE WHEN n.status IN ('resumed', 'expired', 'canceled') THEN 1 END
                WHEN 'waiting_for_approval' THEN CASE WHEN n.status IN ('resumed', 'failed', 'expired', 'canceled') THEN 1 END
                WHEN 'resumed' THEN CASE WHEN n.status IN ('claimed', 'canceled') THEN 1 WHEN n.status = 'running' THEN 2 END
                WHEN 'retrying' THEN CASE WHEN n.status IN ('queued', 'canceled') THEN 1 END
            END
               AND (o.status <> 'claimed' OR n.status IN ('running', 'canceled', o.claimed_from))
               AND (o.status <> 'claimed' OR n.status <> 'running'
                    OR n.lease_token = o.lease_token)
               AND (o.status <> 'scheduled' OR n.status <> 'queued' OR o.run_count = 0)
               AND (o.status <> 'scheduled' OR n.status <> 'resumed' OR o.run_count > 0) THEN true
           ELSE draftsman.refuse_transition(n.number, o.status, n.status, o.version, n.version)
           END;

    SELECT n.number INTO wrong
      FROM new_jobs n
     WHERE (n.status = 'running')::int <> (
           SELECT count(*) FROM draftsman.job_runs r WHERE r.job = n.number AND r.status = 'running')
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'D-%: a running job has exactly one open run, any other none', wrong
            USING ERRCODE = 'DM003';
    END IF;
    SELECT n.number INTO wrong
      FROM new_jobs n
     WHERE (n.status IN ('waiting_for_input', 'waiting_for_approval')) <> ((
           SELECT q.job FROM draftsman.job_questions q WHERE q.job = n.number AND q.status = 'open')
           IS NOT NULL)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'D-%: a waiting job has exactly one open question, any other none', wrong
            USING ERRCODE = 'DM003';
    END IF;
    RETURN NULL;
END $$;

ALTER FUNCTION draftsman.check_runs() SET jit = off;

-- As before, with nothing to sort: from PostgreSQL 16 on the rows of `array_agg(DISTINCT ...)` are
-- sorted, which is a disabled node in the session of a worker.
CREATE OR REPLACE FUNCTION draftsman.release_threads(threads text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    told draftsman.delivery_channel[];
BEGIN
    WITH due AS (
        UPDATE draftsman.deliveries d
           SET next_attempt_at = draftsman.now()
          FROM unnest(threads) AS t (thread_key)
         CROSS JOIN LATERAL (
               SELECT seq FROM draftsman.deliveries
                WHERE thread_key = t.thread_key AND status IN ('pending', 'sending', 'unknown')
                ORDER BY seq
                LIMIT 1) h
         WHERE d.seq = h.seq AND d.next_attempt_at IS NULL
           AND NOT EXISTS (SELECT FROM draftsman.deliveries e
                            WHERE e.thread_key = t.thread_key AND e.next_attempt_at IS NOT NULL)
        RETURNING d.channel
    )
    SELECT array_agg(channel) INTO told FROM (SELECT DISTINCT channel FROM due) d;
    PERFORM pg_notify('draftsman_deliveries', channel::text) FROM unnest(told) AS c (channel);
END $$;
CREATE OR REPLACE FUNCTION draftsman.order_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    threads text[];
BEGIN
    SELECT array_agg(thread_key) INTO threads
      FROM (SELECT DISTINCT thread_key FROM new_deliveries WHERE next_attempt_at IS NULL) n;
    IF threads IS NOT NULL THEN
        PERFORM draftsman.release_threads(threads);
    END IF;
    RETURN NULL;
END $$;
