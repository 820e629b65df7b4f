-- Jobs that have not ended, by status, queue and type, of the first `most` of each status. Seconds are
-- since the oldest began to wait for a worker, was due, was claimed, or got its status. Only the index
-- by status can serve the comparison of rows: in the order of the numbers, a search for a rare status
-- would pass all finished jobs.
-- name: jobs
SELECT w.status::text, c.queue, c.type, c.count, c.seconds
  FROM unnest(%(statuses)s::draftsman.job_status[]) AS w (status)
 CROSS JOIN LATERAL (
       SELECT j.queue, j.type, count(*) AS count,
              greatest(0, extract(epoch FROM draftsman.now() - min(j.since)))::float8 AS seconds
         FROM (SELECT s.queue, s.type,
                      CASE WHEN w.status IN ('queued', 'resumed') THEN coalesce(s.queued_at, s.updated_at)
                           WHEN w.status IN ('scheduled', 'retrying')
                           THEN coalesce(s.next_retry_at, s.run_at, s.updated_at)
                           WHEN w.status IN ('claimed', 'running') THEN coalesce(s.claimed_at, s.updated_at)
                           ELSE s.updated_at END AS since
                 FROM draftsman.job_states s
                WHERE (s.status, s.number) >= (w.status, 0::bigint)
                  AND (s.status, s.number) <= (w.status, %(last)s::bigint) AND
-- visible job: s.number
                ORDER BY s.status, s.number
                LIMIT %(most)s) j
        GROUP BY j.queue, j.type) c

-- Open questions by kind, of the first `most` to expire.
-- name: questions
SELECT kind, count(*), extract(epoch FROM draftsman.now() - min(asked_at))::float8 AS seconds
  FROM (SELECT CASE WHEN is_permission THEN 'permission' ELSE kind::text END AS kind, asked_at
          FROM draftsman.job_questions
         WHERE status = 'open' AND
-- visible job: job
         ORDER BY expires_at, job, ordinal
         LIMIT %(most)s) q
 GROUP BY kind

-- Deliveries that are not done, by channel and status, of the first `most` of each status. Seconds are
-- since the one that has been due longest was due.
-- name: deliveries
SELECT c.channel::text, w.status::text, c.count, c.seconds
  FROM unnest(%(statuses)s::draftsman.delivery_status[]) AS w (status)
 CROSS JOIN LATERAL (
       SELECT d.channel, count(*) AS count,
              greatest(0, extract(epoch FROM draftsman.now() - min(d.next_attempt_at)))::float8 AS seconds
         FROM (SELECT s.channel, s.next_attempt_at
                 FROM draftsman.deliveries s
                WHERE (s.status, s.seq) >= (w.status, 0::bigint)
                  AND (s.status, s.seq) <= (w.status, %(last)s::bigint) AND
-- visible job: s.job
                ORDER BY s.status, s.seq
                LIMIT %(most)s) d
        GROUP BY d.channel) c

-- Workers: their number and slots by state, and the age of the oldest heartbeat.
-- name: workers
SELECT CASE WHEN age > %(lease)s THEN 'silent' WHEN draining THEN 'draining' ELSE 'serving' END AS state,
       count(*), sum(slots)::bigint AS slots, max(age) AS seconds
  FROM (SELECT draining, slots,
               extract(epoch FROM draftsman.now() - heartbeat_at)::float8 AS age
          FROM draftsman.workers) w
 GROUP BY 1

-- Whether a worker leads, and the number of leaders so far.
-- name: leader
SELECT expires_at > draftsman.now(), term FROM draftsman.leases WHERE name = 'leader'

-- Use of models today, of at most `most` rows.
-- name: model_use
SELECT agent, model, sum(calls)::bigint AS calls, sum(cost_usd)::float8 AS cost_usd,
       sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
       count(*) AS rows
  FROM (SELECT agent, model, calls, cost_usd, input_tokens, output_tokens
          FROM draftsman.daily_costs
         WHERE day = draftsman.budget_day() AND
-- visible repo: repo
         ORDER BY repo, person, agent, model
         LIMIT %(most)s) c
 GROUP BY agent, model
