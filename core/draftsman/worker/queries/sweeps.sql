-- Maintenance. Each statement proves the leader's lease (a NULL term: run by hand), is bounded, and
-- is safe when two leaders run it. The rows of a batch are locked as they are read, and those that
-- another transaction has locked are left out: it may stay open, and other rows must not wait for it.
-- Where the database refuses a batch, its candidates are read, and changed in parts (`only`), and
-- those that are refused alone are left out for a while (`without`).

-- part: escalating
SELECT j.number FROM draftsman.job_questions q
  JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal
  JOIN draftsman.job_states j ON j.number = q.job
   AND j.status IN ('waiting_for_input', 'waiting_for_approval')
 WHERE q.status = 'open' AND q.expires_at <= draftsman.now() AND q.on_expire = 'escalate'
   AND t.escalated_at IS NULL
   AND (%(only)s::bigint[] IS NULL OR q.job = ANY (%(only)s::bigint[]))
   AND q.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY q.expires_at
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF j SKIP LOCKED

-- name: escalate_candidates
-- include: escalating

-- An expired question with an escalation goes to more people, once: it stays open for the same time
-- again, and every target is asked again, unless its first copy is still waiting.
-- name: escalate
WITH locked AS MATERIALIZED (
-- include: escalating
), escalated AS (
    UPDATE draftsman.job_questions q
       SET expires_at = draftsman.now()
               + make_interval(secs => extract(epoch FROM q.expires_at - q.asked_at)::float8),
           approvers = array_append(array_remove(q.approvers, t.escalate_to), t.escalate_to)
      FROM locked l
      JOIN draftsman.question_times t ON t.job = l.number AND t.escalated_at IS NULL
     WHERE q.job = l.number AND q.ordinal = t.question AND q.status = 'open'
       AND q.expires_at <= draftsman.now() AND q.on_expire = 'escalate'
    RETURNING q.job, q.ordinal, q.key, q.expires_at, t.escalate_to
), marked AS (
    UPDATE draftsman.question_times t
       SET escalated_at = draftsman.now()
      FROM escalated e
     WHERE t.job = e.job AND t.question = e.ordinal
), recorded AS (
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT job, 'question_escalated', 'system',
           jsonb_build_object('question', ordinal, 'key', key, 'escalate_to', escalate_to,
                              'expires_at', expires_at)
      FROM escalated
), notified AS (
    INSERT INTO draftsman.deliveries
           (job, question, channel, target, thread, thread_key, kind, dedupe_key)
    SELECT t.job, e.ordinal, t.channel, t.target, t.thread, t.thread_key, 'question',
           'question:' || e.ordinal || ':escalated'
      FROM escalated e
      JOIN draftsman.job_targets t ON t.job = e.job
     WHERE 'question' = ANY (t.kinds)
       AND NOT draftsman.is_silent(e.job, e.ordinal, t.channel, t.target)
       AND NOT EXISTS (SELECT FROM draftsman.deliveries d
                        WHERE d.job = e.job AND d.question = e.ordinal AND d.kind = 'question'
                          AND d.thread_key = t.thread_key AND d.status = 'pending')
     ORDER BY t.job, t.ordinal
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
)
SELECT job FROM escalated

-- part: expiring
SELECT j.number FROM draftsman.job_questions q
  JOIN draftsman.job_states j ON j.number = q.job
   AND j.status IN ('waiting_for_input', 'waiting_for_approval')
 WHERE q.status = 'open' AND q.expires_at <= draftsman.now()
   AND (q.on_expire <> 'escalate'
        OR (SELECT t.escalated_at FROM draftsman.question_times t
             WHERE t.job = q.job AND t.question = q.ordinal) IS NOT NULL)
   AND NOT EXISTS (SELECT FROM draftsman.pending_decisions p
                    WHERE p.job = q.job AND p.question = q.ordinal
                      AND p.applies_at < q.expires_at)
   AND (%(only)s::bigint[] IS NULL OR q.job = ANY (%(only)s::bigint[]))
   AND q.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY q.expires_at
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF j SKIP LOCKED

-- name: expire_candidates
-- include: expiring

-- A question with a pending decision that is due before its expiry waits for the decision. If a question
-- ends its job, the others are canceled, and so are the alternatives of one that closes; a job with
-- other open questions waits for these. They are locked to read them as they are now: an answer may
-- have closed one after this statement began and before it locked the job.
-- name: expire
WITH locked AS MATERIALIZED (
-- include: expiring
), context AS MATERIALIZED (
    SELECT set_config('draftsman.actor', 'system', true)
), closed AS (
    UPDATE draftsman.job_questions q
       SET status = CASE WHEN q.on_expire = 'default' THEN 'answered' ELSE 'expired'
                    END::draftsman.question_status,
           answered_at = CASE WHEN q.on_expire = 'default' THEN draftsman.now() END,
           resolution = CASE q.on_expire
               WHEN 'default' THEN jsonb_build_object('outcome', 'answered', 'via', 'policy',
                                                      'value', q.default_value)
               WHEN 'continue' THEN jsonb_build_object('outcome', 'expired', 'via', 'policy')
               ELSE jsonb_build_object('outcome', 'expired', 'via', 'system') END
      FROM locked l
     CROSS JOIN context
     WHERE q.job = l.number AND q.status = 'open' AND q.expires_at <= draftsman.now()
       AND (q.on_expire <> 'escalate'
            OR (SELECT t.escalated_at FROM draftsman.question_times t
                 WHERE t.job = q.job AND t.question = q.ordinal) IS NOT NULL)
       AND NOT EXISTS (SELECT FROM draftsman.pending_decisions p
                        WHERE p.job = q.job AND p.question = q.ordinal
                          AND p.applies_at < q.expires_at)
    RETURNING q.job, q.ordinal, q.key, q.on_expire, q.resolution, q.alternative_of,
              jsonb_strip_nulls(jsonb_build_object('label',
                  draftsman.label_of(q.choices, q.resolution ->> 'value'))) AS label
), recorded AS (
    INSERT INTO draftsman.job_events (job, kind, actor, payload)
    SELECT job, 'question_expired', 'system',
           jsonb_build_object('question', ordinal, 'key', key) || resolution || label
      FROM closed
), jobs AS (
    SELECT job, bool_or(on_expire IN ('expire', 'escalate')) AS ends,
           array_agg(ordinal) AS closed,
           array_agg(alternative_of) FILTER (WHERE alternative_of IS NOT NULL) AS alternatives
      FROM closed
     GROUP BY job
), others AS MATERIALIZED (
    SELECT q.job, q.ordinal, q.kind, c.ends,
           c.ends OR coalesce(q.alternative_of = ANY (c.alternatives), false) AS is_canceled
      FROM jobs c
      JOIN draftsman.job_questions q ON q.job = c.job AND q.status = 'open'
     WHERE q.ordinal <> ALL (c.closed)
     ORDER BY q.job, q.ordinal
       FOR NO KEY UPDATE OF q
), canceled AS (
    UPDATE draftsman.job_questions q
       SET status = 'canceled', resolution = draftsman.cancellation(o.ends)
      FROM others o
     WHERE q.job = o.job AND q.ordinal = o.ordinal AND o.is_canceled
), updated AS (
    UPDATE draftsman.job_states j
       SET status = coalesce(CASE WHEN c.ends THEN 'expired'::draftsman.job_status END, w.status,
                             'resumed'),
           finished_at = CASE WHEN c.ends THEN draftsman.now() END,
           hold = CASE WHEN NOT c.ends THEN j.hold END,
           queued_at = CASE WHEN c.ends OR w.status IS NOT NULL THEN j.queued_at
                       ELSE draftsman.now() END,
           version = j.version + 1, updated_at = draftsman.now()
      FROM jobs c
     CROSS JOIN LATERAL (
           SELECT max(CASE o.kind WHEN 'approval' THEN 'waiting_for_approval'
                      ELSE 'waiting_for_input' END::draftsman.job_status) AS status
             FROM others o WHERE o.job = c.job AND NOT o.is_canceled) w
     WHERE j.number = c.job AND j.status IN ('waiting_for_input', 'waiting_for_approval')
       AND j.status IS DISTINCT FROM w.status
    RETURNING j.number, j.status, j.queue
)
SELECT c.job, CASE WHEN u.status = 'resumed' THEN pg_notify('draftsman_jobs', u.queue)::text END
  FROM closed c
  LEFT JOIN updated u ON u.number = c.job

-- Work that transactions postponed: at most so many buckets, keys and jobs.
-- name: do_postponed
SELECT draftsman.do_due_work(%(limit)s, %(only)s::bigint[], %(without)s::bigint[])
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: do_postponed_candidates
SELECT draftsman.lock_due_work(%(limit)s, NULL, %(without)s::bigint[])

-- Jobs that were canceled with a large tree or group.
-- name: do_cancels
SELECT draftsman.do_pending_cancels(%(limit)s, %(only)s::bigint[], %(without)s::bigint[])
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: do_cancels_candidates
SELECT job FROM draftsman.pending_cancels
 WHERE due_at <= draftsman.now() AND job <> ALL (%(without)s::bigint[])
 ORDER BY due_at, job
 LIMIT %(limit)s

-- part: promotable
SELECT j.number FROM draftsman.job_states j
 WHERE j.status IN ('scheduled', 'retrying')
   AND coalesce(j.next_retry_at, j.run_at) <= draftsman.now()
   AND (%(only)s::bigint[] IS NULL OR j.number = ANY (%(only)s::bigint[]))
   AND j.number <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY coalesce(j.next_retry_at, j.run_at)
 LIMIT %(limit)s
   FOR NO KEY UPDATE SKIP LOCKED

-- name: promote_candidates
-- include: promotable

-- name: promote
WITH due AS MATERIALIZED (
-- include: promotable
), context AS MATERIALIZED (
    SELECT set_config('draftsman.actor', 'system', true)
), updated AS (
    UPDATE draftsman.job_states j
       SET status = CASE WHEN j.status = 'scheduled' AND j.run_count > 0 THEN 'resumed'
                    ELSE 'queued' END::draftsman.job_status,
           next_retry_at = NULL, queued_at = draftsman.now(), version = j.version + 1,
           updated_at = draftsman.now()
      FROM due d
     CROSS JOIN context
     WHERE j.number = d.number AND j.status IN ('scheduled', 'retrying')
    RETURNING j.number, j.queue
)
SELECT number, pg_notify('draftsman_jobs', queue)::text FROM updated

-- Seconds until the earliest due job, schedule, expiring question, pending decision, reminder, step of a ladder or place
-- of a limit; NULL
-- when there is none. A waiting occurrence is due when the previous job of its schedule has finished.
-- name: next_due
SELECT extract(epoch FROM least(
           (SELECT min(coalesce(next_retry_at, run_at)) FROM draftsman.job_states
             WHERE status IN ('scheduled', 'retrying')),
           (SELECT min(fire_at) FROM draftsman.schedules
             WHERE fire_at IS NOT NULL AND paused_at IS NULL),
           (SELECT f.due_at FROM draftsman.schedule_fires f
              JOIN draftsman.schedules s ON s.id = f.schedule AND s.paused_at IS NULL
              LEFT JOIN draftsman.job_states j ON j.number = s.last_job
             WHERE f.status = 'waiting'
               AND (j.number IS NULL
                    OR j.status IN ('completed', 'failed', 'dead_letter', 'canceled', 'expired'))
             LIMIT 1),
           (SELECT min(expires_at) FROM draftsman.job_questions WHERE status = 'open'),
           (SELECT min(applies_at) FROM draftsman.pending_decisions),
           (SELECT min(expires_at) FROM draftsman.queue_reservations),
           (SELECT min(remind_at) FROM draftsman.question_times WHERE remind_at IS NOT NULL),
           (SELECT min(due_at) FROM draftsman.question_ladders WHERE due_at IS NOT NULL),
           (SELECT since FROM draftsman.unnotified_jobs ORDER BY job LIMIT 1),
           (SELECT min(due_at) FROM draftsman.postponed_work),
           (SELECT min(due_at) FROM draftsman.pending_cancels),
           (SELECT min(next_at) FROM draftsman.limit_buckets WHERE next_at IS NOT NULL))
       - draftsman.now())::float8

-- part: unnotified
SELECT j.number FROM draftsman.unnotified_jobs u
  JOIN draftsman.job_states j ON j.number = u.job
 WHERE (%(only)s::bigint[] IS NULL OR u.job = ANY (%(only)s::bigint[]))
   AND u.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY u.job
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF j SKIP LOCKED

-- name: notify_candidates
-- include: unnotified

-- Dead letters without a target are sent to the fallback, once; without a fallback they are only
-- returned.
-- name: notify
WITH due AS MATERIALIZED (
-- include: unnotified
), dequeued AS (
    DELETE FROM draftsman.unnotified_jobs u USING due WHERE u.job = due.number
    RETURNING u.job
), notified AS (
    INSERT INTO draftsman.deliveries (job, channel, target, thread, thread_key, kind, dedupe_key)
    SELECT t.job, f.channel, f.target, f.thread, 'D-' || t.job || ' ' || f.channel || ':' || f.target
           || coalesce('/' || f.thread, ''), 'result', 'result'
      FROM dequeued t
     CROSS JOIN (SELECT %(channel)s::draftsman.delivery_channel AS channel,
                        %(target)s::text AS target, %(thread)s::text AS thread) f
     WHERE f.channel IS NOT NULL
     ORDER BY t.job
        ON CONFLICT (thread_key, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
)
SELECT d.number, r.invoker_id
  FROM due d JOIN draftsman.job_requests r ON r.number = d.number
 ORDER BY d.number

-- part: lost
WITH dead AS MATERIALIZED (
    SELECT array_agg(d.id) AS ids FROM unnest(%(dead)s::uuid[]) AS d (id)
     WHERE NOT EXISTS (SELECT FROM draftsman.workers w
                        WHERE w.id = d.id AND draftsman.is_connected(w.lock_id))
), lost AS MATERIALIZED (
    SELECT j.number FROM draftsman.heartbeats b
      JOIN draftsman.job_states j ON j.number = b.job
     WHERE (b.worker_id = ANY ((SELECT ids FROM dead)::uuid[])
            OR b.heartbeat_at < draftsman.now() - make_interval(secs => %(lease)s))
       AND (%(only)s::bigint[] IS NULL OR b.job = ANY (%(only)s::bigint[]))
       AND b.job <> ALL (%(without)s::bigint[])
       AND (%(term)s::bigint IS NULL OR EXISTS (
           SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
              AND term = %(term)s AND expires_at > draftsman.now()))
     ORDER BY b.updated_at
     LIMIT %(limit)s
       FOR NO KEY UPDATE OF j SKIP LOCKED
)

-- name: rescue_candidates
-- include: lost
SELECT number FROM lost

-- Runs of dead workers, and runs without a heartbeat for too long. Before the lease has ended, a
-- worker whose session lock is held is alive, whatever its host says. A claimed job goes back and
-- spends nothing; a running job follows on_lost. It spends an attempt if it was the only run of its
-- worker, or if it is the one that ended it (`verdict`). The new jobs of a chain have
-- their own counters, so the chain is limited: by the number of consecutive new jobs since a
-- person's last request.
-- name: rescue
-- include: lost
, context AS MATERIALIZED (
    SELECT set_config('draftsman.actor', 'system', true),
           set_config('draftsman.detail', '{"lost": true}', true)
), locked AS MATERIALIZED (
    SELECT j.number, j.lease_token, j.run_count, j.status, j.claimed_from, j.on_lost,
           j.attempts, j.max_attempts, j.cancel_requested_at IS NOT NULL AS canceled, j.worker_id
      FROM draftsman.job_states j
      JOIN lost g ON g.number = j.number
     CROSS JOIN context
     WHERE j.status IN ('claimed', 'running')
     ORDER BY j.number
       FOR NO KEY UPDATE OF j SKIP LOCKED
), closed AS (
    UPDATE draftsman.job_runs r
       SET status = CASE WHEN l.canceled THEN 'canceled' ELSE 'interrupted'
                    END::draftsman.run_status,
           finished_at = draftsman.now(), error = 'the worker was lost',
           error_class = 'TRANSIENT_INFRA'
      FROM locked l
     WHERE r.job = l.number AND r.ordinal = l.run_count AND r.status = 'running'
       AND (r.worker_id = ANY ((SELECT ids FROM dead)::uuid[])
            OR r.heartbeat_at < draftsman.now() - make_interval(secs => %(lease)s))
    RETURNING r.job, extract(epoch FROM draftsman.now() - r.started_at) AS seconds
), crews AS MATERIALIZED (
    SELECT w.worker_id, w.runs + s.earlier AS lost, w.tried + s.convicted AS tried
      FROM (SELECT j.worker_id, count(*) AS runs,
                   count(*) FILTER (WHERE p.status IN ('trial', 'convicted')) AS tried
              FROM draftsman.job_states j
              LEFT JOIN draftsman.suspects p ON p.job = j.number
             WHERE j.status = 'running' AND j.worker_id IN (SELECT worker_id FROM locked)
               AND j.worker_id = ANY ((SELECT ids FROM dead)::uuid[])
             GROUP BY j.worker_id) w
     CROSS JOIN LATERAL (
           SELECT count(*) AS earlier, count(*) FILTER (WHERE p.status = 'convicted') AS convicted
             FROM draftsman.suspects p
             JOIN draftsman.job_states j ON j.number = p.job
            WHERE p.worker_id = w.worker_id AND j.worker_id IS DISTINCT FROM w.worker_id) s
), verdicts AS MATERIALIZED (
    SELECT l.number, p.losses,
           draftsman.verdict(p.status, coalesce(c.lost, 1), coalesce(c.tried, 0)) AS verdict
      FROM locked l
      LEFT JOIN crews c ON c.worker_id = l.worker_id
      LEFT JOIN draftsman.suspects p ON p.job = l.number
     WHERE l.status = 'running'
), chains AS MATERIALIZED (
    SELECT l.number, c.replacements,
           CASE WHEN c.replacements + 1 >= l.max_attempts
                THEN c.replacements + 1 || ' of ' || l.max_attempts || ' jobs of its chain were lost'
                WHEN r.chain_length >= %(longest)s
                THEN 'it was already retried ' || r.chain_length || ' times' END AS over
      FROM locked l
      JOIN draftsman.job_requests r ON r.number = l.number
     CROSS JOIN LATERAL (
           WITH RECURSIVE origins AS (
               SELECT retry_of, source FROM draftsman.job_requests WHERE number = l.number
                UNION ALL
               SELECT o.retry_of, o.source
                 FROM origins b JOIN draftsman.job_requests o ON o.number = b.retry_of
                WHERE b.source = 'internal'
           )
           SELECT count(*) AS replacements FROM origins WHERE source = 'internal' AND retry_of IS NOT NULL) c
     WHERE l.status = 'running' AND l.on_lost = 'new_job'
), updated AS (
    UPDATE draftsman.job_states j
       SET status = t.status,
           attempts = l.attempts + CASE WHEN l.status = 'running' AND NOT l.canceled
                                         AND l.attempts < l.max_attempts
                                         AND v.verdict IN ('charged', 'convicted') THEN 1 ELSE 0 END,
           last_error = CASE WHEN l.status = 'running'
                             THEN concat_ws('; ', 'the worker was lost', h.over, CASE
                                  WHEN v.verdict = 'waiting' AND t.status = 'retrying'
                                  THEN 'its jobs are tried one at a time' END)
                        ELSE j.last_error END,
           error_class = CASE WHEN l.status = 'running' THEN 'TRANSIENT_INFRA'
                         ELSE j.error_class END,
           next_retry_at = CASE WHEN t.status = 'retrying' THEN draftsman.now()
                           + CASE WHEN v.verdict = 'waiting' THEN interval '1 day'
                                  ELSE make_interval(secs => exp(least(10, l.attempts + 1))) END END,
           queued_at = CASE WHEN t.status IN ('queued', 'resumed') THEN draftsman.now()
                       ELSE j.queued_at END,
           finished_at = CASE WHEN t.status IN ('failed', 'dead_letter', 'canceled')
                         THEN draftsman.now() END,
           claimed_from = NULL, worker_id = NULL, lease_token = NULL, version = j.version + 1,
           updated_at = draftsman.now()
      FROM locked l
      LEFT JOIN closed c ON c.job = l.number
      LEFT JOIN chains h ON h.number = l.number
      LEFT JOIN verdicts v ON v.number = l.number
     CROSS JOIN LATERAL (SELECT (CASE
           WHEN l.canceled THEN 'canceled'
           WHEN l.status = 'claimed' THEN l.claimed_from::text
           WHEN h.over IS NOT NULL OR (l.attempts + 1 >= l.max_attempts
                                       AND v.verdict IN ('charged', 'convicted')) THEN 'dead_letter'
           WHEN l.on_lost IN ('retry', 'resume') AND v.verdict = 'waiting' THEN 'retrying'
           WHEN l.on_lost = 'retry' THEN 'retrying'
           WHEN l.on_lost = 'resume' THEN 'resumed'
           ELSE 'failed' END)::draftsman.job_status AS status) t
     WHERE j.number = l.number AND j.lease_token = l.lease_token
       AND (l.status = 'claimed' OR c.job IS NOT NULL)
    RETURNING j.number, j.status, j.queue, j.on_lost
), suspected AS (
    INSERT INTO draftsman.suspects (job, crash, worker_id, run, seconds, losses, status)
    SELECT l.number, l.worker_id, l.worker_id, l.run_count,
           greatest(1, least(c.seconds, 300 * 2 ^ least(20, coalesce(v.losses, 0)))),
           coalesce(v.losses, 0) + 1, v.verdict::draftsman.suspect_status
      FROM locked l
      JOIN closed c ON c.job = l.number
      JOIN verdicts v ON v.number = l.number AND v.verdict IN ('noted', 'waiting', 'convicted')
      JOIN updated u ON u.number = l.number AND u.status IN ('retrying', 'resumed')
     ORDER BY l.number
        ON CONFLICT (job) DO UPDATE
       SET crash = CASE WHEN excluded.status = 'convicted' THEN suspects.crash
                   ELSE excluded.crash END,
           worker_id = excluded.worker_id, run = excluded.run, seconds = excluded.seconds,
           losses = excluded.losses, status = excluded.status
)
SELECT number, status, on_lost,
       CASE WHEN status IN ('queued', 'resumed')
            THEN pg_notify('draftsman_jobs', queue)::text END AS notified
  FROM updated

-- The trials of jobs that were lost together.
-- name: suspects
SELECT draftsman.try_suspects(%(only)s::bigint[], %(without)s::bigint[])
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: suspects_candidates
SELECT job FROM draftsman.suspects WHERE job <> ALL (%(without)s::bigint[]) ORDER BY job

-- A lost job that could not be replaced by a new job; its rescue holds its lock.
-- name: not_followed
INSERT INTO draftsman.job_events (job, kind, actor, payload)
VALUES (%(job)s, 'retry_not_created', 'system', jsonb_build_object('reason', %(reason)s::text))

-- Workers whose session lock is free, and since when. A host that sees their process checks it too.
-- name: watch_locks
UPDATE draftsman.workers w
   SET unlocked_at = CASE WHEN s.connected THEN NULL
                     ELSE coalesce(w.unlocked_at, draftsman.now()) END
  FROM (SELECT x.id, draftsman.is_connected(x.lock_id) AS connected
          FROM draftsman.workers x
         WHERE draftsman.is_connected(x.lock_id) <> (x.unlocked_at IS NULL)
           FOR NO KEY UPDATE SKIP LOCKED) s
 WHERE s.id = w.id

-- name: unlocked
SELECT id FROM draftsman.workers
 WHERE unlocked_at < draftsman.now() - make_interval(secs => %(seconds)s)
   AND heartbeat_at < draftsman.now() - make_interval(secs => %(seconds)s)

-- part: gone
SELECT w.lock_id FROM draftsman.workers w
 WHERE ((w.id = ANY (%(dead)s::uuid[]) AND NOT draftsman.is_connected(w.lock_id))
        OR w.heartbeat_at < draftsman.now() - make_interval(secs => %(after)s))
   AND NOT EXISTS (SELECT FROM draftsman.job_states j
                    WHERE j.status IN ('claimed', 'running') AND j.worker_id = w.id)
   AND (%(only)s::bigint[] IS NULL OR w.lock_id = ANY (%(only)s::bigint[]))
   AND w.lock_id <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
   FOR UPDATE OF w SKIP LOCKED

-- name: deregister_candidates
-- include: gone

-- name: deregister
DELETE FROM draftsman.workers WHERE lock_id = ANY (ARRAY(
-- include: gone
))

-- Event partitions for this month and the following months; returns the number created.
-- name: partitions
SELECT draftsman.make_event_partitions(%(ahead)s)
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())
