-- Events of forges, and the pull requests of jobs.

-- Events that are known are left out; returns the ids of the others. A review counts as it was submitted:
-- no forge tells the time of an edit, or who edited it.
-- name: receive
INSERT INTO draftsman.forge_events (forge, project, number, key, kind, source, author, author_name,
       author_id, is_bot, association, verdict, title, text, label, path, line, commit, thread, url, at)
SELECT %(forge)s, e.project, e.number, e.key, e.kind, %(channel)s, lower(e.author), e.author, e.author_id,
       e.is_bot,
       e.association, e.verdict, e.title, e.text, e.label, e.path, e.line, e.commit, e.thread, e.url,
       e.at
  FROM jsonb_to_recordset(%(events)s) AS e (project text, number int, key text, kind text,
       author text, author_id text, is_bot boolean, association text, verdict text, title text, text text,
       label text, path text, line int, commit text, thread text, url text, at timestamptz)
 WHERE e.kind <> 'review' OR 0 = (
       SELECT count(*) FROM draftsman.forge_events o
        WHERE o.forge = %(forge)s AND o.project = e.project AND o.number = e.number
          AND o.kind = 'review' AND split_part(o.key, ':', 2) = split_part(e.key, ':', 2))
 ORDER BY e.project, e.number, e.key
    ON CONFLICT (forge, project, number, key) DO NOTHING
RETURNING id

-- name: open_pulls
SELECT root, forge, project, number, url, branch, base, head, coalesce(tip, head) AS tip FROM draftsman.pull_requests
 WHERE forge = %(forge)s AND state = 'open'
 ORDER BY root DESC
 LIMIT %(limit)s

-- The pull requests that were closed lately, and that people may open again.
-- name: closed_pulls
SELECT root, forge, project, number, url, branch, base, head, coalesce(tip, head) AS tip, state, ended_at
  FROM draftsman.pull_requests
 WHERE forge = %(forge)s AND state = 'closed' AND ended_at > draftsman.now() - %(age)s::interval
 ORDER BY ended_at DESC
 LIMIT %(limit)s

-- The commit of the branch as it was read; not if a job has published another one meanwhile.
-- name: note_tip
UPDATE draftsman.pull_requests SET tip = nullif(%(tip)s, head)
 WHERE root = %(root)s AND head = %(head)s AND coalesce(tip, head) <> %(tip)s

-- Events of people on forges: requests and answers.

-- name: unprocessed
SELECT id, forge, project, number, key, kind, author_name AS author, author_id, is_bot,
       association, verdict,
       title, text, label, path, line, commit, thread, url, at
  FROM draftsman.forge_events
 WHERE processed_at IS NULL AND kind IN ('labeled_issue', 'issue_comment', 'answer')
   AND forge = ANY (%(forges)s::text[]) AND id <> ALL (%(paused)s::bigint[])
 ORDER BY id
 LIMIT %(limit)s

-- name: finish
SELECT draftsman.finish_forge_event(%(id)s::bigint, %(outcome)s::text)

-- Issues on which questions are open, of the newest jobs.
-- name: asked_targets
SELECT DISTINCT t.target
  FROM (SELECT job FROM draftsman.job_questions
         WHERE status = 'open'
         ORDER BY job DESC
         LIMIT %(limit)s) q
 CROSS JOIN LATERAL (
       SELECT target FROM draftsman.job_targets
        WHERE job = q.job AND channel = %(channel)s
       OFFSET 0) t  -- by the index of each job, however many jobs have targets

-- Follow-ups on pull requests of jobs.

-- The pull requests with new events.
-- name: due_follow_ups
SELECT p.root FROM draftsman.pull_requests p
 WHERE (p.forge, p.project, p.number) IN (
       SELECT e.forge, e.project, e.number FROM draftsman.forge_events e
        WHERE e.processed_at IS NULL AND e.kind NOT IN ('labeled_issue', 'issue_comment', 'answer'))
   AND p.root <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY p.root
 LIMIT %(limit)s

-- name: lock_pull
SELECT root, forge, project, number, url, branch, base, head, coalesce(tip, head) AS tip, state FROM draftsman.pull_requests
 WHERE root = %(root)s
   FOR NO KEY UPDATE

-- name: new_events
SELECT id, forge, kind, source::text, author, author_name, is_bot, verdict, title, text, path, line, commit,
       url, key, extract(epoch FROM draftsman.now() - received_at)::float8 AS age
  FROM draftsman.forge_events
 WHERE forge = %(forge)s AND project = %(project)s AND number = %(number)s AND processed_at IS NULL
   AND kind NOT IN ('labeled_issue', 'issue_comment', 'answer')
 ORDER BY id
 LIMIT %(limit)s

-- The first job of a pull request and its follow-ups, in order.
-- name: members
SELECT m.job, m.ordinal, s.status, r.invoker_id, s.cancel_requested_at IS NOT NULL AS canceling,
       coalesce(s.result ->> 'handed_over' = 'true', false) AS handed_over,
       ARRAY(SELECT DISTINCT e.commit FROM draftsman.forge_events e
              WHERE e.job = m.job AND e.kind = ANY (%(about_commits)s::text[])) AS commits
  FROM (SELECT %(root)s::bigint AS job, 0 AS ordinal
         UNION ALL
        SELECT f.job, f.ordinal FROM draftsman.follow_ups f WHERE f.root = %(root)s) m
  JOIN draftsman.job_states s ON s.number = m.job
  JOIN draftsman.job_requests r ON r.number = m.job
 ORDER BY m.job
 LIMIT %(limit)s

-- name: ignore
UPDATE draftsman.forge_events
   SET outcome = 'ignored', reason = %(reason)s, processed_at = draftsman.now()
 WHERE id = ANY (ARRAY(
       SELECT id FROM draftsman.forge_events
        WHERE id = ANY (%(ids)s::bigint[]) AND processed_at IS NULL
        ORDER BY id FOR NO KEY UPDATE))

-- Events of pull requests that no job opened; the job of a new pull request may not be recorded yet.
-- name: ignore_others
UPDATE draftsman.forge_events e
   SET outcome = 'ignored', reason = %(reason)s, processed_at = draftsman.now()
 WHERE e.id = ANY (ARRAY(
       SELECT n.id FROM draftsman.forge_events n
        WHERE n.processed_at IS NULL AND n.kind NOT IN ('labeled_issue', 'issue_comment', 'answer')
          AND n.received_at < draftsman.now() - interval '1 hour'
          AND NOT EXISTS (SELECT FROM draftsman.pull_requests p
                           WHERE (p.forge, p.project, p.number) = (n.forge, n.project, n.number))
        ORDER BY n.id
        LIMIT %(limit)s FOR NO KEY UPDATE))

-- name: send
SELECT draftsman.send_forge_event(
    %(event)s::bigint, %(job)s::bigint, %(sender)s::text, %(text)s::text)

-- Events whose job completed its work before it got them.
-- name: reopen
UPDATE draftsman.forge_events e
   SET outcome = NULL, job = NULL, message = NULL, processed_at = NULL
 WHERE e.id = ANY (ARRAY(
       SELECT s.id FROM draftsman.forge_events s
         JOIN draftsman.job_messages m ON m.job = s.job AND m.ordinal = s.message
         JOIN draftsman.job_states j ON j.number = s.job
        WHERE s.outcome = 'sent' AND s.answered_at IS NULL AND m.delivered_at IS NULL
          AND j.status = 'completed'
        ORDER BY s.id
        LIMIT %(limit)s FOR NO KEY UPDATE OF s))

-- name: add
INSERT INTO draftsman.follow_ups (job, root, ordinal, parent)
VALUES (%(job)s, %(root)s, %(ordinal)s, %(parent)s)

-- name: end
WITH ended AS (
    UPDATE draftsman.pull_requests
       SET state = %(state)s, ended_at = draftsman.now()
     WHERE root = %(root)s AND state = 'open'
    RETURNING root
)
UPDATE draftsman.forge_events
   SET outcome = 'ended', processed_at = draftsman.now()
 WHERE id = %(event)s AND processed_at IS NULL AND EXISTS (SELECT FROM ended)

-- name: reopen_pull
WITH opened AS (
    UPDATE draftsman.pull_requests
       SET state = 'open', ended_at = NULL
     WHERE root = %(root)s AND state = 'closed'
    RETURNING root
)
UPDATE draftsman.forge_events
   SET outcome = 'reopened', processed_at = draftsman.now()
 WHERE id = %(event)s AND processed_at IS NULL AND EXISTS (SELECT FROM opened)

-- The unfinished jobs that ask for the merge of the work of these jobs.
-- name: merges
SELECT s.number FROM draftsman.job_requests r
  JOIN draftsman.job_states s ON s.number = r.number AND s.finished_at IS NULL
 WHERE r.type = 'merge_pull_request'
   AND r.idempotency_key = ANY (ARRAY(
       SELECT format('spawn:%%s:merge', j) FROM unnest(%(jobs)s::bigint[]) j))
   AND NOT starts_with(r.idempotency_key, 'auto:')
 ORDER BY s.number

-- The job is locked first: its events are written under its lock, so that their order is that of their
-- commits.
-- name: event
WITH locked AS MATERIALIZED (
    SELECT number FROM draftsman.job_states WHERE number = %(job)s FOR NO KEY UPDATE
)
INSERT INTO draftsman.job_events (job, kind, actor, payload)
SELECT number, %(kind)s, 'system', %(payload)s FROM locked

-- The pull request that a job follows up on; the last follow-up before it that people allowed to go
-- on is that of `allowed`.
-- name: of_job
SELECT f.root, r.id AS root_id, f.ordinal, f.parent, p.number, p.branch, p.base, p.url,
       r.ticket_title AS title, r.source::text,
       coalesce((SELECT max(o.ordinal) FROM draftsman.follow_ups o
                   JOIN draftsman.job_steps t ON t.job = o.job AND t.key = 'agent:follow_ups'
                    AND t.status = 'done'
                  WHERE o.root = f.root), 0) AS allowed
  FROM draftsman.follow_ups f
  JOIN draftsman.pull_requests p ON p.root = f.root
  JOIN draftsman.job_requests r ON r.number = f.root
 WHERE f.job = %(job)s

-- The first job of a pull request and its follow-ups, the newest first.
-- name: jobs_of_pull
SELECT m.job
  FROM draftsman.pull_requests p
 CROSS JOIN LATERAL (
       SELECT p.root AS job
        UNION ALL
       SELECT f.job FROM draftsman.follow_ups f WHERE f.root = p.root) m
 WHERE p.forge = %(forge)s AND p.project = %(project)s AND p.number = %(number)s
 ORDER BY m.job DESC
 LIMIT %(limit)s

-- name: request
SELECT draftsman.request_follow_up(%(job)s::bigint, %(source)s::draftsman.channel,
    %(sender_id)s::text, %(display_name)s::text, %(event)s::text, %(text)s::text)

-- name: unanswered
SELECT e.id, e.forge, e.project, e.number, e.kind, e.thread, e.source::text, e.author_name,
       e.job, s.status, s.result ->> 'commit' AS commit, s.result ->> 'summary' AS summary,
       s.last_error AS error, f.job IS NOT NULL AS follows
  FROM draftsman.forge_events e
  JOIN draftsman.job_messages m ON m.job = e.job AND m.ordinal = e.message
  JOIN draftsman.job_states s ON s.number = e.job AND s.finished_at IS NOT NULL
  LEFT JOIN draftsman.follow_ups f ON f.job = e.job
 WHERE e.outcome = 'sent' AND e.answered_at IS NULL AND e.forge = %(forge)s
   AND (m.delivered_at IS NOT NULL OR s.status <> 'completed')
 ORDER BY e.id
 LIMIT %(limit)s

-- name: answered
UPDATE draftsman.forge_events SET answered_at = draftsman.now()
 WHERE id = ANY (ARRAY(
       SELECT id FROM draftsman.forge_events
        WHERE id = ANY (%(ids)s::bigint[]) AND outcome = 'sent' AND answered_at IS NULL
        ORDER BY id FOR NO KEY UPDATE))

-- name: ended_branches
SELECT root, forge, project, number, url, branch, base, head, coalesce(tip, head) AS tip FROM draftsman.pull_requests
 WHERE forge = %(forge)s AND state <> 'open' AND branch_deleted_at IS NULL
   AND ended_at > draftsman.now() - interval '1 day'
 ORDER BY root DESC
 LIMIT %(limit)s

-- name: branch_deleted
UPDATE draftsman.pull_requests SET branch_deleted_at = draftsman.now()
 WHERE root = %(root)s AND state <> 'open' AND branch_deleted_at IS NULL

-- name: family
SELECT p.root, p.forge, p.project, p.number, p.url, p.branch, p.base, p.head, coalesce(p.tip, p.head), p.state, m.job
  FROM draftsman.pull_requests p
 CROSS JOIN LATERAL (
       SELECT p.root AS job
        UNION ALL
       SELECT f.job FROM draftsman.follow_ups f WHERE f.root = p.root) m
 WHERE p.root = coalesce((SELECT f.root FROM draftsman.follow_ups f WHERE f.job = %(job)s),
                         %(job)s)
 ORDER BY m.job
