-- Queries behind the front ends.

-- part: job
       j.number, j.id, j.type, j.idempotency_key, j.request_digest, j.queue, j.priority, j.position,
       j.subject_key, j.concurrency_key, j.hold::text, j.held_by, j.status, j.claimed_from, j.mode, j.source,
       j.source_type::text, j.external_event_id, j.invoker_id, j.invoker_display_name, j.repo_host,
       j.repo_owner, j.repo_name, j.ticket_url AS url, coalesce(j.ticket_title, j.type) AS title,
       j.ticket_text AS text, j.payload, j.overrides, j.requested_skills AS skills, j.tags, j.agent, j.retry_of, j.chain_length, j.template, j.template_version,
       j.run_at, j.run_count, j.attempts, j.max_attempts, j.retry_count, j.max_retries, j.next_retry_at,
       j.last_error, j.error_class::text, j.on_lost, j.worker_id, j.lease_token, j.cancel_requested_at,
       j.cancel_requested_by, j.cancel_reason, j.pr_url, j.result, j.version, j.created_at, j.queued_at,
       j.claimed_at, j.started_at, j.finished_at, j.updated_at

-- name: get
SELECT
-- include: job
  FROM draftsman.jobs j
 WHERE j.number = %(number)s AND
-- visible job: j.number

-- Where requests may come from; a channel stays when its package is removed.
-- name: sources
SELECT name FROM draftsman.channels ORDER BY name

-- The values of a field of the newest jobs, by which a typo in a filter is named.
-- name: newest_values
SELECT DISTINCT v.value
  FROM draftsman.job_requests
 CROSS JOIN LATERAL unnest(
       CASE %(field)s::text
            WHEN 'agent' THEN ARRAY[agent]
            WHEN 'type' THEN ARRAY[type]
            WHEN 'invoker' THEN ARRAY[invoker_id]
            WHEN 'repo' THEN ARRAY[repo_name, concat_ws('/', repo_owner, repo_name)]
            ELSE tags END) AS v (value)
 WHERE number > %(lowest)s AND v.value <> '' AND
-- visible job: number
 ORDER BY v.value

-- name: find
SELECT number FROM draftsman.job_requests
 WHERE id BETWEEN %(lowest)s AND %(highest)s AND
-- visible job: number
 ORDER BY id
 LIMIT 2

-- The filters of jobs that are about their requests.
-- part: requested
                 (%(agent)s::text IS NULL OR agent = %(agent)s)
                 AND (%(repo)s::text IS NULL
                      OR lower(%(repo)s) IN (lower(repo_name), lower(concat_ws('/', repo_owner, repo_name)),
                          lower(concat_ws('/', repo_host, repo_owner, repo_name))))
                 AND (%(invoker)s::text IS NULL OR invoker_id = %(invoker)s)
                 AND (%(type)s::text IS NULL OR type = %(type)s)
                 AND (%(source)s::text IS NULL OR job_requests.source::text = %(source)s)
                 AND (%(tags)s::text[] IS NULL OR (tags <> '{}' AND NOT EXISTS (
                      SELECT FROM unnest(%(tags)s::text[]) AS f (tag)
                       WHERE NOT EXISTS (
                             SELECT FROM unnest(tags) AS t (tag)
                              WHERE t.tag = f.tag OR starts_with(t.tag, f.tag || '=')))))
                 AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s)
                 AND (%(until)s::timestamptz IS NULL OR created_at < %(until)s) AND
-- visible job: number

-- What lists show of a job. Requests are looked up by key, never joined whole.
-- part: summary
       SELECT s.number, r.id, r.type, s.queue, s.status, r.mode, r.source, r.agent, r.repo_host,
              r.repo_owner, r.repo_name, r.title, r.invoker_id, r.tags, s.attempts, s.max_attempts,
              s.retry_count, s.max_retries, s.run_count, s.next_retry_at, s.run_at, s.last_error,
              s.error_class::text, r.created_at, s.started_at, s.finished_at, s.pr_url, r.template,
              r.template_version, o.reason IS NOT NULL AS job_paused,
              coalesce(o.reason, q.reason) AS pause_reason,
              coalesce(o.paused_by, q.paused_by) AS paused_by, coalesce(o.paused_at, q.paused_at) AS paused_at,
              coalesce(d.is_open, false) AS failure_open, d.dismissed_by, d.dismissed_at, d.reason AS dismissal_reason,
              CASE WHEN coalesce(o.reason, q.reason) IS NOT NULL THEN 'paused'
                   WHEN s.status = 'scheduled' AND s.run_count > 0 AND EXISTS (
                  SELECT FROM draftsman.job_dependencies WHERE job = s.number
                     AND met IS NOT TRUE AND met IS NULL) THEN 'children'
                   WHEN s.status IN ('queued', 'resumed') AND s.hold IS NOT NULL THEN s.hold::text
                   WHEN s.status = 'retrying' AND (
                  SELECT status = 'waiting' FROM draftsman.suspects
                   WHERE job = s.number) THEN 'trial'
                   WHEN s.status IN ('queued', 'resumed') AND EXISTS (
                  SELECT FROM draftsman.active_reservations v
                   WHERE v.queue = s.queue AND v.job <> s.number) THEN 'reserved' END AS hold, s.held_by,
              CASE WHEN s.hold = 'parents' AND s.hold IS NOT NULL THEN (
                  SELECT jsonb_agg(jsonb_build_array(d.parent, k.status))
                    FROM (SELECT parent FROM draftsman.job_dependencies
                           WHERE job = s.number AND met IS NOT TRUE AND met IS NULL AND
-- visible job: parent
                           ORDER BY ordinal LIMIT 4) d
                   CROSS JOIN LATERAL (
                         SELECT status FROM draftsman.job_states WHERE number = d.parent LIMIT 1) k) END AS parents,
              CASE WHEN s.status IN ('scheduled', 'retrying') THEN extract(
                  epoch FROM coalesce(s.next_retry_at, s.run_at) - draftsman.now())::float8 END AS due_in,
              CASE WHEN s.status = 'scheduled' AND s.run_count > 0 THEN (
                  SELECT k.result ->> 'reason' FROM draftsman.job_steps k
                   WHERE k.job = s.number AND k.key >= 'sleep:' AND k.key < 'sleep;'
                     AND (k.result ->> 'until')::timestamptz = s.run_at LIMIT 1) END AS sleep_reason
         FROM draftsman.job_states s
        CROSS JOIN LATERAL (
              SELECT id, type, mode, source::text, agent, repo_host, repo_owner, repo_name,
                     coalesce(ticket_title, type) AS title, invoker_id, tags, created_at, template, template_version
                FROM draftsman.job_requests
               WHERE number = s.number AND
-- include: requested
               LIMIT 1) r
         LEFT JOIN draftsman.job_pauses o ON o.job = s.number AND s.finished_at IS NULL
         LEFT JOIN LATERAL (
              SELECT reason, paused_by, paused_at FROM draftsman.queue_pauses
               WHERE queue = s.queue AND (type IS NULL OR type = s.type)
               ORDER BY type DESC LIMIT 1) q ON s.status IN ('queued', 'resumed')
         LEFT JOIN LATERAL (
              SELECT EXISTS (SELECT FROM draftsman.open_failures f WHERE f.job = s.number) AS is_open,
                     n.dismissed_by, n.dismissed_at, n.reason
                FROM (VALUES (s.number)) AS w (number)
                LEFT JOIN draftsman.dismissals n ON n.job = w.number LIMIT 1) d
           ON s.status IN ('failed', 'dead_letter')

-- Jobs by number, newest first, between two numbers. The status index gives each status in this
-- order, so that a page does not cost more with the history; the caller's `lowest` bounds rejected
-- rows. The bounds are written twice: as row comparisons they limit the scan, as plain comparisons
-- PostgreSQL can estimate them. There is no condition for a single status: for a rare status, the
-- index of numbers would be read to its end.
-- name: page
SELECT p.*
  FROM unnest(%(statuses)s::draftsman.job_status[]) AS w (status)
 CROSS JOIN LATERAL (
-- include: summary
        WHERE (s.status, s.number) >= (w.status, %(lowest)s::bigint)
          AND (s.status, s.number) < (w.status, %(before)s::bigint)
          AND s.number >= %(lowest)s::bigint AND s.number < %(before)s::bigint
          AND (%(queue)s::text IS NULL OR s.queue = %(queue)s)
        ORDER BY s.status DESC, s.number DESC
        LIMIT %(limit)s) p
 ORDER BY p.number DESC
 LIMIT %(limit)s

-- These jobs, in this order.
-- name: page_of
SELECT p.*
  FROM unnest(%(numbers)s::bigint[]) WITH ORDINALITY AS w (number, place)
 CROSS JOIN LATERAL (
-- include: summary
        WHERE s.number = w.number AND s.status = ANY (%(statuses)s::draftsman.job_status[])
          AND (%(queue)s::text IS NULL OR s.queue = %(queue)s)
        LIMIT 1) p
 ORDER BY w.place
 LIMIT %(limit)s

-- The jobs with open questions, after one of them: by the first expiry of their questions, those
-- without an expiry last. The place of a job that waits no more is that of its last question.
-- name: by_deadline
WITH reached AS MATERIALIZED (
    SELECT CASE WHEN %(after)s::bigint IS NULL THEN '-infinity' ELSE coalesce(
           (SELECT min(expires_at) FROM draftsman.job_questions
             WHERE job = %(after)s AND status = 'open'),
           (SELECT expires_at FROM draftsman.job_questions
             WHERE job = %(after)s AND
-- visible job: job
             ORDER BY ordinal DESC LIMIT 1), 'infinity') END AS expires_at
)
SELECT p.job
  FROM ((SELECT q.job, q.expires_at FROM draftsman.job_questions q
          WHERE q.status = 'open' AND q.expires_at IS NOT NULL
            AND (q.expires_at, q.job) > ((SELECT expires_at FROM reached), coalesce(%(after)s, 0))
            AND NOT EXISTS (SELECT FROM draftsman.job_questions f
                             WHERE f.job = q.job AND f.status = 'open'
                               AND (f.expires_at, f.ordinal) < (q.expires_at, q.ordinal)) AND
-- visible job: q.job
          ORDER BY q.expires_at, q.job
          LIMIT %(limit)s)
         UNION ALL
        (SELECT q.job, q.expires_at FROM draftsman.job_questions q
          WHERE q.status = 'open' AND q.expires_at IS NULL
            AND q.job > (SELECT CASE WHEN expires_at = 'infinity' THEN %(after)s ELSE 0 END FROM reached)
            AND NOT EXISTS (SELECT FROM draftsman.job_questions f
                             WHERE f.job = q.job AND f.status = 'open'
                               AND (f.expires_at IS NOT NULL OR f.ordinal < q.ordinal)) AND
-- visible job: q.job
          ORDER BY q.expires_at, q.job
          LIMIT %(limit)s)) p
 ORDER BY p.expires_at, p.job
 LIMIT %(limit)s

-- A page of jobs that finished with this status, by number, whether they match the filters, and what
-- became of them. All jobs of the page are returned, so that the next page starts after it.
-- name: finished
SELECT j.number, j.status, j.type, j.agent, coalesce(j.ticket_title, j.type) AS title, j.last_error, j.finished_at,
       (%(queue)s::text IS NULL OR j.queue = %(queue)s)
       AND (%(finished_since)s::float8 IS NULL
            OR j.finished_at >= draftsman.now() - make_interval(secs => %(finished_since)s)) IS TRUE
       AND (%(finished_until)s::float8 IS NULL
            OR j.finished_at < draftsman.now() - make_interval(secs => %(finished_until)s)) IS TRUE
       AND EXISTS (
           SELECT FROM draftsman.job_requests WHERE number = j.number AND
-- include: requested
           ) AS matches,
       (SELECT n.number FROM draftsman.job_requests n
         WHERE n.type = j.type AND n.retry_of = j.number
           AND n.idempotency_key = 'retry:' || CASE WHEN j.retry_of IS NULL THEN j.number::text
               ELSE split_part(j.idempotency_key, ':', 2) END || ':' || (j.chain_length + 1)
           AND NOT starts_with(n.idempotency_key, 'auto:'))
           AS followed_by,
       EXISTS (SELECT FROM draftsman.dismissals d WHERE d.job = j.number) AS dismissed,
       EXISTS (SELECT FROM draftsman.open_failures f WHERE f.job = j.number) AS failure_open
  FROM draftsman.jobs j
 WHERE (j.status, j.number) > (%(status)s::draftsman.job_status, %(after)s::bigint)
   AND (j.status, j.number) <= (%(status)s::draftsman.job_status, 9223372036854775807) AND
-- visible job: j.number
 ORDER BY j.status, j.number
 LIMIT %(limit)s

-- name: newest
SELECT coalesce(max(number), 0) FROM draftsman.job_requests

-- The number below which all jobs are older: numbers follow time, except for clocks that were set
-- back, by up to an hour. A binary search.
-- name: first_since
WITH RECURSIVE half AS (
    SELECT 0::bigint AS low, (SELECT coalesce(max(number), 0) + 1 FROM draftsman.job_requests) AS high
     UNION ALL
    SELECT CASE WHEN m.older THEN m.number ELSE h.low END,
           CASE WHEN m.older THEN h.high ELSE (h.low + h.high) / 2 END
      FROM half h
     CROSS JOIN LATERAL (
           SELECT number, number < h.high AND created_at < %(since)s::timestamptz - interval '1 hour' AS older
             FROM draftsman.job_requests
            WHERE number >= (h.low + h.high) / 2
            ORDER BY number
            LIMIT 1) m
     WHERE h.high - h.low > 1
)
SELECT min(high) FROM half

-- The runs of all jobs, newest job first: the key gives this order, so a page costs its rows.
-- name: latest_runs
SELECT u.job, u.ordinal, u.worker_id, u.lease_token, u.params_snapshot, u.status, u.heartbeat_at,
       u.started_at, u.finished_at, u.exit_code, u.error, u.error_class::text, u.usage, u.result,
       r.title, r.repo
  FROM (SELECT * FROM draftsman.job_runs WHERE (job, ordinal) < (%(job)s::bigint, %(ordinal)s::int) AND
-- visible job: job
         ORDER BY job DESC, ordinal DESC LIMIT %(limit)s) u
 CROSS JOIN LATERAL (
       SELECT coalesce(ticket_title, type) AS title, repo_name AS repo
         FROM draftsman.job_requests
        WHERE number = u.job
        LIMIT 1) r
 ORDER BY u.job DESC, u.ordinal DESC

-- The events of a job: its row lock orders the ids. Limits of rows and of events keep the reads short.
-- name: job_events
SELECT e.job, e.id, e.run, e.kind, e.from_status::text, e.to_status::text, e.actor, e.payload,
       e.created_at, e.epoch, e.txid::text::bigint AS txid
  FROM draftsman.events_of_job(%(job)s::bigint, %(after)s::bigint, %(limit)s::int, false) e
 ORDER BY e.id

-- The newest events of a job after an id.
-- name: latest_job_events
SELECT e.job, e.id, e.run, e.kind, e.from_status::text, e.to_status::text, e.actor, e.payload,
       e.created_at, e.epoch, e.txid::text::bigint AS txid
  FROM draftsman.events_of_job(%(job)s::bigint, %(after)s::bigint, %(limit)s::int, true) e
 ORDER BY e.id DESC

-- The newest events of some kinds of a job, of which only the search for them costs.
-- name: job_events_of_kinds
SELECT job, id, run, kind, from_status::text, to_status::text, actor, payload, created_at, epoch,
       txid::text::bigint AS txid
  FROM draftsman.events
 WHERE job = %(job)s AND kind = ANY (%(kinds)s::text[])
 ORDER BY id DESC
 LIMIT %(limit)s

-- The event feed of all jobs, safe to follow: never past a transaction that may still commit.
-- Ordered by the column: a bare `txid` would be the output's number, which no index has. The event at
-- the cursor may be in the middle of its row.
-- name: events
SELECT job, id, run, kind, from_status::text, to_status::text, actor, payload, created_at, epoch,
       e.txid::text::bigint AS txid
  FROM draftsman.event_stream e
 WHERE (epoch, txid, row_id) > (%(epoch)s, %(txid)s::text::xid8, draftsman.event_row_before(%(id)s))
   AND (epoch, txid, id) > (%(epoch)s, %(txid)s::text::xid8, %(id)s::bigint)
   AND (epoch, txid) < (draftsman.current_epoch(), pg_snapshot_xmin(pg_current_snapshot())) AND
-- visible job: job
 ORDER BY epoch, e.txid, row_id, id
 LIMIT %(limit)s

-- The feed of some kinds that are in the index of kinds.
-- name: events_of_kinds
SELECT p.*
  FROM unnest(%(kinds)s::text[]) AS w (kind)
 CROSS JOIN LATERAL (
       SELECT job, id, run, kind, from_status::text, to_status::text, actor, payload, created_at,
              epoch, e.txid::text::bigint AS txid
         FROM draftsman.event_stream e
        WHERE row_kind = w.kind
          AND row_kind NOT IN ('job_created', 'job_claimed', 'job_started', 'job_completed')
          AND (epoch, e.txid, row_id) > (%(epoch)s, %(txid)s::text::xid8, draftsman.event_row_before(%(id)s))
          AND (epoch, e.txid, id) > (%(epoch)s, %(txid)s::text::xid8, %(id)s::bigint)
          AND (epoch, e.txid) < (draftsman.current_epoch(), pg_snapshot_xmin(pg_current_snapshot())) AND
-- visible job: job
        ORDER BY epoch, e.txid, row_id, id
        LIMIT %(limit)s) p
 ORDER BY p.epoch, p.txid, p.id
 LIMIT %(limit)s

-- The last transaction of this epoch whose events are older than a time, by up to an hour; 0 if all
-- are newer. Transactions follow time. A binary search, as first_since.
-- name: txid_before
WITH RECURSIVE half AS (
    SELECT 0::bigint AS low, coalesce((
           SELECT e.txid::text::bigint FROM draftsman.event_stream e
            WHERE epoch = draftsman.current_epoch()
            ORDER BY epoch DESC, e.txid DESC, row_id DESC
            LIMIT 1), 0) + 1 AS high
     UNION ALL
    SELECT CASE WHEN m.older THEN m.txid ELSE h.low END,
           CASE WHEN m.older THEN h.high ELSE (h.low + h.high) / 2 END
      FROM half h
     CROSS JOIN LATERAL (
           SELECT txid::text::bigint AS txid, txid < h.high::text::xid8
                  AND created_at < %(since)s::timestamptz - interval '1 hour' AS older
             FROM draftsman.event_stream e
            WHERE (epoch, e.txid)
                  >= (draftsman.current_epoch(), ((h.low + h.high) / 2)::text::xid8)
            ORDER BY epoch, e.txid, row_id
            LIMIT 1) m
     WHERE h.high - h.low > 1
)
SELECT draftsman.current_epoch(), max(low) FROM half

-- The same feed backwards, from before a cursor, newest first. The first event of a row has the id
-- before that of the row.
-- name: latest_events
SELECT job, id, run, kind, from_status::text, to_status::text, actor, payload, created_at, epoch,
       e.txid::text::bigint AS txid
  FROM draftsman.event_stream e
 WHERE (epoch, txid, row_id) <= (%(epoch)s, %(txid)s::text::xid8, %(id)s::bigint)
   AND (epoch, txid, id) < (%(epoch)s, %(txid)s::text::xid8, %(id)s::bigint)
   AND (epoch, txid) < (draftsman.current_epoch(), pg_snapshot_xmin(pg_current_snapshot())) AND
-- visible job: job
 ORDER BY epoch DESC, e.txid DESC, row_id DESC, id DESC
 LIMIT %(limit)s

-- The planner has no joint statistics of epoch and transaction: it expects a single event after any
-- cursor, and would sort the whole feed; nor of statuses between two numbers. In this transaction
-- only an index may give the order.
-- name: in_order
SELECT set_config('enable_sort', 'off', true)

-- The current end of the feed: the cursor for new events only.
-- name: end_cursor
SELECT draftsman.current_epoch(), pg_snapshot_xmin(pg_current_snapshot())::text::bigint

-- The activity of the newest events between two cursors, in buckets of some seconds: the number of
-- finished jobs, and the wait of each answered question. `rest` is the cursor of the next call.
-- name: activity
WITH passed AS MATERIALIZED (
    SELECT e.epoch, e.txid, e.id, e.job, e.to_status,
           floor(extract(epoch FROM e.created_at) / %(seconds)s)::bigint AS span,
           CASE WHEN e.kind = 'answer_received' AND NOT starts_with(e.actor, 'worker:')
                     AND (e.payload ->> 'question') ~ '^[1-9][0-9]{0,8}$'
                THEN (e.payload ->> 'question')::int END AS question
      FROM draftsman.event_stream e
     WHERE (e.epoch, e.txid, e.row_id) > (%(epoch)s, %(txid)s::text::xid8, draftsman.event_row_before(%(id)s))
       AND (e.epoch, e.txid, e.id) > (%(epoch)s, %(txid)s::text::xid8, %(id)s::bigint)
       AND (e.epoch, e.txid, e.row_id) <= (%(end_epoch)s, %(end_txid)s::text::xid8, %(end_id)s::bigint)
       AND (e.epoch, e.txid, e.id) < (%(end_epoch)s, %(end_txid)s::text::xid8, %(end_id)s::bigint) AND
-- visible job: e.job
     ORDER BY e.epoch DESC, e.txid DESC, e.row_id DESC, e.id DESC
     LIMIT %(limit)s
), answered AS (
    SELECT p.span, array_agg(q.seconds) AS seconds
      FROM passed p
     CROSS JOIN LATERAL (
           SELECT extract(epoch FROM answered_at - asked_at)::float8 AS seconds
             FROM draftsman.job_questions
            WHERE job = p.job AND ordinal = p.question AND status = 'answered'
            LIMIT 1) q
     WHERE p.question IS NOT NULL
     GROUP BY p.span
), rest AS (
    SELECT epoch, txid, id FROM passed
     WHERE (SELECT count(*) FROM passed) = %(limit)s
     ORDER BY epoch, txid, id
     LIMIT 1
)
SELECT s.span, s.finished, coalesce(a.seconds, '{}') AS answers, r.epoch,
       r.txid::text::bigint AS txid, r.id
  FROM (SELECT span, count(*) FILTER (WHERE to_status = ANY (%(terminal)s::draftsman.job_status[]))
               AS finished
          FROM passed
         GROUP BY span) s
  LEFT JOIN answered a ON a.span = s.span
  LEFT JOIN rest r ON true

-- The newest events of the period say which jobs finished: no index has the time of their end, which
-- would be written with each job. The rows of each such job are looked up by its number. Of many
-- queues, types and repositories those with the most jobs are returned.
-- name: throughput
WITH passed AS MATERIALIZED (
    SELECT e.job, e.to_status
      FROM draftsman.event_stream e
     WHERE (e.epoch, e.txid, e.row_id) > (%(epoch)s, %(txid)s::text::xid8, draftsman.event_row_before(%(id)s))
       AND (e.epoch, e.txid, e.id) > (%(epoch)s, %(txid)s::text::xid8, %(id)s::bigint)
     ORDER BY e.epoch DESC, e.txid DESC, e.row_id DESC, e.id DESC
     LIMIT %(limit)s
), ended AS MATERIALIZED (
    SELECT s.queue, s.type, s.status IN ('failed', 'dead_letter') AS failed, s.finished_at, s.waited,
           nullif(r.repo, '') AS repo, u.ran
      FROM passed p
     CROSS JOIN LATERAL (
           SELECT queue, type, status, finished_at,
                  CASE WHEN claimed_at >= queued_at
                       THEN extract(epoch FROM claimed_at - queued_at)::float8 END AS waited
             FROM draftsman.job_states
            WHERE number = p.job
              AND finished_at > draftsman.now() - make_interval(secs => %(seconds)s::float8) AND
-- visible job: number
            LIMIT 1) s
     CROSS JOIN LATERAL (
           SELECT draftsman.repo_of(n) AS repo
             FROM draftsman.job_requests n
            WHERE n.number = p.job
            LIMIT 1) r
     CROSS JOIN LATERAL (
           SELECT sum(extract(epoch FROM finished_at - started_at))::float8 AS ran
             FROM draftsman.job_runs
            WHERE job = p.job) u
     WHERE p.to_status = ANY (%(terminal)s::draftsman.job_status[])
), covered AS MATERIALIZED (
    SELECT CASE WHEN (SELECT count(*) FROM passed) = %(limit)s
                THEN coalesce((SELECT min(finished_at) FROM ended), draftsman.now()) END AS since
), facts AS MATERIALIZED (
    SELECT queue, type, repo, failed, waited, ran,
           greatest(0, floor(extract(epoch FROM draftsman.now() - finished_at) * %(bars)s::int
                             / %(seconds)s::float8)::int) AS bar
      FROM ended
), figures AS (
    SELECT CASE WHEN grouping(queue) = 0 THEN 'queue' WHEN grouping(type) = 0 THEN 'type'
                WHEN grouping(repo) = 0 THEN 'repo' ELSE 'all' END AS by,
           coalesce(queue, type, repo) AS value, count(*) AS finished,
           count(*) FILTER (WHERE failed) AS failed,
           percentile_cont('{0.5,0.95}'::float8[]) WITHIN GROUP (ORDER BY waited) AS waited,
           percentile_cont('{0.5,0.95}'::float8[]) WITHIN GROUP (ORDER BY ran) AS ran
      FROM facts
     GROUP BY GROUPING SETS ((), (queue), (type), (repo))
), counts AS (
    SELECT CASE WHEN grouping(queue) = 0 THEN 'queue' WHEN grouping(type) = 0 THEN 'type'
                WHEN grouping(repo) = 0 THEN 'repo' ELSE 'all' END AS by,
           coalesce(queue, type, repo) AS value, bar, count(*) AS count,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY waited) AS waited,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY ran) AS ran
      FROM facts
     GROUP BY GROUPING SETS ((bar), (queue, bar), (type, bar), (repo, bar))
), bars AS (
    SELECT by, coalesce(value, '') AS value, json_agg(ARRAY[bar, count, waited, ran]) AS bars
      FROM counts
     GROUP BY by, coalesce(value, '')
), ranked AS (
    SELECT f.*, row_number() OVER (PARTITION BY by ORDER BY finished DESC, value) AS rank
      FROM figures f
     WHERE by = 'all' OR value IS NOT NULL
)
SELECT r.by, coalesce(r.value, '') AS value, r.finished, r.failed, r.waited[1] AS wait_p50,
       r.waited[2] AS wait_p95, r.ran[1] AS run_p50, r.ran[2] AS run_p95,
       extract(epoch FROM draftsman.now() - c.since)::float8 AS covered,
       coalesce(b.bars, '[]') AS bars
  FROM ranked r
  LEFT JOIN bars b ON b.by = r.by AND b.value = coalesce(r.value, '')
 CROSS JOIN covered c
 WHERE r.rank <= %(groups)s
 ORDER BY array_position('{all,queue,type,repo}'::text[], r.by), r.rank

-- name: version
SELECT status, version, EXISTS (SELECT FROM draftsman.job_pauses WHERE job = number) AS paused
  FROM draftsman.job_states WHERE number = %(job)s AND
-- visible job: number

-- name: ended
SELECT number FROM draftsman.job_states
 WHERE number = ANY (%(jobs)s::bigint[]) AND finished_at IS NOT NULL AND
-- visible job: number
 ORDER BY finished_at, number

-- The chain of a job, from the request to the newest retry: each has the next key of the first.
-- name: chain
WITH RECURSIVE first AS (
    SELECT j.number, j.type
      FROM draftsman.job_requests own
      JOIN draftsman.job_requests j ON j.number = CASE WHEN own.retry_of IS NULL THEN own.number
           ELSE split_part(own.idempotency_key, ':', 2)::bigint END
     WHERE own.number = %(job)s
), chain AS (
    SELECT j.number, j.status, j.retry_of, j.chain_length, j.last_error, j.error_class,
           f.number AS root, j.type
      FROM first f JOIN draftsman.jobs j ON j.number = f.number
     UNION ALL
    SELECT j.number, j.status, j.retry_of, j.chain_length, j.last_error, j.error_class, c.root, j.type
      FROM chain c
      JOIN draftsman.jobs j ON j.type = c.type AND j.retry_of = c.number
       AND j.idempotency_key = 'retry:' || c.root || ':' || (c.chain_length + 1)
       AND NOT starts_with(j.idempotency_key, 'auto:')
)
SELECT number, status, retry_of, chain_length, last_error, error_class::text FROM chain
 ORDER BY chain_length

-- Why a job waits: its place in the view that claims use, and the workers that could claim it.
-- part: facts
       p.queue IS NULL AND coalesce(v.job = j.number, true) AND EXISTS (
           SELECT FROM draftsman.claimable c WHERE c.number = j.number) AS claimable,
       v.job AS reserved_for, v.actor AS reserved_by, v.expires_at AS reserved_until,
       j.started_at IS NOT NULL AS started,
       EXISTS (SELECT FROM draftsman.run_log_chunks l WHERE l.job = j.number)
           OR EXISTS (SELECT FROM draftsman.run_activity v WHERE v.job = j.number) AS has_log,
       j.status = 'expired' AND EXISTS (
           SELECT FROM draftsman.job_answers a
             JOIN draftsman.job_questions q ON q.job = a.job AND q.ordinal = a.question
            WHERE a.job = j.number AND a.kind = 'input' AND a.payload -> 'late' = 'true'
              AND q.status = 'expired') AS has_late_answer,
       EXISTS (SELECT FROM draftsman.job_checkpoints k WHERE k.job = j.number) AS has_checkpoint,
       (SELECT k.number FROM draftsman.job_states k
         WHERE k.concurrency_key = j.concurrency_key AND (k.hold >= 'key') IS NOT TRUE
           AND k.finished_at IS NULL AND
-- visible job: k.number
       ) AS key_holder,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(d.parent, k.status)), '[]')
          FROM (SELECT parent FROM draftsman.job_dependencies
                 WHERE job = j.number AND met IS NOT TRUE AND met IS NULL AND
-- visible job: parent
                 ORDER BY ordinal LIMIT 5) d
         CROSS JOIN LATERAL (
               SELECT status FROM draftsman.job_states WHERE number = d.parent LIMIT 1) k)
           AS parents,
       (SELECT count(*) FROM draftsman.job_dependencies
         WHERE job = j.number AND met IS NOT TRUE AND met IS NULL AND
-- visible job: parent
       ) AS parent_count,
       p.type IS NOT NULL AS type_paused, coalesce(o.reason, p.reason) AS pause_reason,
       coalesce(o.paused_by, p.paused_by) AS paused_by,
       coalesce(o.paused_at, p.paused_at) AS paused_at, o.job IS NOT NULL AS job_paused,
       w.dismissed_by, w.dismissed_at, w.reason AS dismissal_reason,
       CASE WHEN j.finished_at IS NOT NULL THEN draftsman.retry_of_job(j.number) END AS retried_as,
       (SELECT count(*) FROM (
           (SELECT c.priority, c.position, c.number FROM draftsman.claimable c
             WHERE c.queue = j.queue AND j.status IN ('queued', 'resumed')
               AND v.queue IS NULL AND j.held_by IS NULL AND NOT c.by_type
             ORDER BY c.priority DESC, c.position, c.number LIMIT 1000)
            UNION ALL
           (SELECT c.priority, c.position, c.number FROM draftsman.claimable c
             WHERE c.by_type AND c.queue = j.queue AND c.type = j.type
               AND j.status IN ('queued', 'resumed') AND v.queue IS NULL AND j.held_by IS NULL
             ORDER BY c.priority DESC, c.position, c.number LIMIT 1000)
            UNION ALL
           (SELECT h.priority, h.position, h.number FROM draftsman.job_states h
             WHERE h.held_by = j.held_by ORDER BY h.priority DESC, h.position, h.number LIMIT 1000)) b
         WHERE (-b.priority, b.position, b.number) < (-j.priority, j.position, j.number) AND
-- visible job: b.number
       ) AS ahead,
       x.workers, x.capable_workers, x.slots,
       CASE WHEN x.capable_workers = 0 AND j.finished_at IS NULL THEN (
           SELECT t.app FROM draftsman.job_types t WHERE t.name = j.type
            ORDER BY t.served_at DESC LIMIT 1) END AS type_app,
       b.host, extract(epoch FROM draftsman.now() - b.heartbeat_at)::float8 AS heartbeat_age,
       coalesce(b.heartbeat_at < draftsman.now() - make_interval(secs => %(lease)s), false) AS lost,
       CASE WHEN j.status IN ('scheduled', 'retrying') THEN extract(
           epoch FROM coalesce(j.next_retry_at, j.run_at) - draftsman.now())::float8 END AS due_in,
       CASE WHEN j.status = 'scheduled' AND j.run_count > 0 THEN (
           SELECT k.result ->> 'reason' FROM draftsman.job_steps k
            WHERE k.job = j.number AND k.key >= 'sleep:' AND k.key < 'sleep;'
              AND (k.result ->> 'until')::timestamptz = j.run_at LIMIT 1) END AS sleep_reason,
       CASE WHEN j.error_class = 'PERMANENT' AND j.status IN ('failed', 'dead_letter') AND EXISTS (
            SELECT FROM draftsman.events e WHERE e.job = j.number AND e.kind = 'job_failed'
               AND e.payload @> '{"code": "command_not_found", "origin": "agent"}')
            THEN j.agent END AS absent_agent,
       extract(epoch FROM u.debounce_until - draftsman.now())::float8 AS debounce_left,
       s.job IS NOT NULL AS awaits_trial,
       (SELECT t.job FROM draftsman.suspects t
         WHERE t.crash = s.crash AND t.status = 'trial' AND
-- visible job: t.job
         ORDER BY t.job LIMIT 1) AS on_trial

-- part: of_facts
  FROM draftsman.jobs j
  LEFT JOIN LATERAL (
       SELECT queue, type, reason, paused_by, paused_at FROM draftsman.queue_pauses
        WHERE queue = j.queue AND (type IS NULL OR type = j.type)
        ORDER BY type NULLS FIRST LIMIT 1) p ON true
  LEFT JOIN draftsman.active_reservations v ON v.queue = j.queue
  LEFT JOIN draftsman.job_pauses o ON o.job = j.number
  LEFT JOIN draftsman.dismissals w ON w.job = j.number
  LEFT JOIN draftsman.heartbeats b ON b.job = j.number
  LEFT JOIN draftsman.unique_keys u ON u.job = j.number AND j.run_count = 0
  LEFT JOIN draftsman.suspects s
    ON s.job = j.number AND s.status = 'waiting' AND j.status = 'retrying'
 CROSS JOIN LATERAL (
       SELECT count(*) AS workers, count(*) FILTER (WHERE j.type = ANY (w.types)) AS capable_workers,
              coalesce(sum(w.slots), 0) AS slots
         FROM draftsman.serving_workers(%(lease)s) w WHERE j.queue = ANY (w.queues)) x
 WHERE j.number = %(job)s AND
-- visible job: j.number

-- name: why
SELECT j.number, j.status, j.queue, j.type, j.run_at, j.next_retry_at, j.last_error,
       j.error_class::text, j.run_count, j.attempts, j.max_attempts, j.retry_count, j.max_retries,
       j.worker_id, j.cancel_requested_at, j.cancel_requested_by, j.cancel_reason,
       j.hold::text, j.held_by, j.concurrency_key,
-- include: facts
-- include: of_facts

-- A job, why it waits, its unique key, and which parts it has: most jobs have few, and only these
-- are read.
-- name: details
SELECT
-- include: job
     ,
-- include: facts
     , draftsman.now() AS at,
       (SELECT key FROM draftsman.unique_keys WHERE job = j.number) AS key,
       (SELECT replaces FROM draftsman.unique_keys WHERE job = j.number) AS replaces,
       (SELECT n.job FROM draftsman.unique_keys n WHERE n.replaces = j.number) AS replaced_by,
       (SELECT d.job FROM draftsman.job_dependencies d
         WHERE d.parent = j.number AND d.job < j.number AND d.spawned LIMIT 1) AS spawned_by,
       EXISTS (SELECT FROM draftsman.job_dependencies d
                WHERE d.job = j.number AND NOT d.spawned) AS has_parents,
       EXISTS (SELECT FROM draftsman.job_dependencies d WHERE d.parent = j.number AND NOT d.spawned)
           OR EXISTS (SELECT FROM draftsman.job_dependencies d
                       WHERE d.job = j.number AND d.spawned) AS has_children,
       EXISTS (SELECT FROM draftsman.job_group_members m WHERE m.job = j.number) AS has_group,
       EXISTS (SELECT FROM draftsman.job_requests n
                WHERE n.type = j.type AND n.idempotency_key
                      = 'retry:' || CASE WHEN j.retry_of IS NULL THEN j.number::text
                        ELSE split_part(j.idempotency_key, ':', 2) END
                        || ':' || (j.chain_length + 1)
                  AND NOT starts_with(n.idempotency_key, 'auto:')) AS has_retry,
       EXISTS (SELECT FROM draftsman.job_questions q WHERE q.job = j.number) AS has_questions,
       EXISTS (SELECT FROM draftsman.job_steps k WHERE k.job = j.number) AS has_steps,
       EXISTS (SELECT FROM draftsman.artifacts a
                WHERE a.job = j.number AND a.kind <> 'bundle') AS has_artifacts,
       EXISTS (SELECT FROM draftsman.job_messages m WHERE m.job = j.number) AS has_messages,
       EXISTS (SELECT FROM draftsman.job_files f WHERE f.job = j.number) AS has_attachments,
       EXISTS (SELECT FROM draftsman.job_targets t WHERE t.job = j.number) AS has_targets,
       EXISTS (SELECT FROM draftsman.deliveries d WHERE d.job = j.number) AS has_deliveries,
       EXISTS (SELECT FROM draftsman.archived_jobs a WHERE a.job = j.number) AS has_archives,
       EXISTS (SELECT FROM draftsman.pull_requests p WHERE p.root = j.number)
           OR EXISTS (SELECT FROM draftsman.follow_ups f WHERE f.job = j.number) AS has_pull_request,
       ARRAY(SELECT k.name
               FROM (SELECT t.parameters -> 'properties' AS properties
                       FROM draftsman.job_types t WHERE t.name = j.type
                      ORDER BY t.served_at DESC LIMIT 1) t,
                    json_object_keys(t.properties) WITH ORDINALITY AS k (name, place)
              ORDER BY k.place) AS parameters
-- include: of_facts

-- Jobs by status from `lowest` to below `before`, at most `most` of each; the request of a job is read
-- only if a filter is about it.
-- name: counts
SELECT w.status::text, c.count
  FROM unnest(%(statuses)s::draftsman.job_status[]) AS w (status)
 CROSS JOIN LATERAL (
       SELECT count(*) AS count
         FROM (SELECT FROM draftsman.job_states s
                WHERE (s.status, s.number) >= (w.status, %(lowest)s::bigint)
                  AND (s.status, s.number) < (w.status, %(before)s::bigint)
                  AND (%(queue)s::text IS NULL OR s.queue = %(queue)s)
                  AND CASE WHEN %(requested)s::boolean THEN EXISTS (
                      SELECT FROM draftsman.job_requests WHERE number = s.number AND
-- include: requested
                      ) ELSE
-- visible job: s.number
                      END
                ORDER BY s.status, s.number
                LIMIT %(most)s) j) c
 WHERE c.count > 0

-- Open failures by status, up to a limit in all.
-- name: failure_counts
SELECT status::text, count(*)
  FROM (SELECT status FROM draftsman.open_failures WHERE
-- visible job: job
         LIMIT %(most)s) f
 GROUP BY status

-- name: pauses
SELECT count(*) FROM draftsman.queue_pauses

-- Answers of the last day, at most 10,000: their number, and median seconds from the question.
-- name: answer_times
SELECT count(*),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM q.answered_at - q.asked_at))
  FROM (SELECT job, question, accepted, created_at
          FROM draftsman.job_answers
         ORDER BY id DESC LIMIT 10000) a
 CROSS JOIN LATERAL (
       SELECT asked_at, answered_at
         FROM draftsman.job_questions
        WHERE job = a.job AND ordinal = a.question AND status = 'answered'
          AND answered_at > draftsman.now() - interval '1 day' AND
-- visible job: a.job
        LIMIT 1) q
 WHERE a.accepted AND a.created_at > draftsman.now() - interval '1 day'

-- name: health
SELECT current_setting('server_version') AS version,
       extract(epoch FROM clock_timestamp())::float8 AS clock, current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean
       AS autovacuum,
       extract(epoch FROM current_setting('autovacuum_naptime')::interval)::float8 AS naptime,
       inet_server_addr() IS NULL AS local, session_user::text AS role,
       draftsman.session_kind() AS kind
