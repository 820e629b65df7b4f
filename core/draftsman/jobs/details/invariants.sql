-- Data invariants. Each query returns at most a hundred jobs that violate it, and the values of the
-- sentence of its name, or of that in the column `sentence`.

-- name: request_has_a_state
SELECT number AS job, CASE WHEN s.number IS NULL THEN 'no_state' WHEN r.number IS NULL THEN 'no_request'
                           ELSE 'type_of_state' END AS sentence, r.type, s.type AS type_of_state
  FROM draftsman.job_requests r
  FULL JOIN draftsman.job_states s USING (number)
 WHERE (r.type = s.type) IS NOT TRUE
 LIMIT 100

-- name: states_follow_their_rules
SELECT number AS job, 'state_breaks_rule' AS sentence, status, draftsman.violated_rule(s) AS rule
  FROM draftsman.job_states s
 WHERE draftsman.violated_rule(s) IS NOT NULL
 UNION ALL
SELECT number, 'request_breaks_rule' AS sentence, NULL, draftsman.violated_request_rule(r)
  FROM draftsman.job_requests r
 WHERE draftsman.violated_request_rule(r) IS NOT NULL
 LIMIT 100

-- name: running_has_one_open_run
SELECT j.number AS job, j.status, count(r.job) AS runs
  FROM draftsman.job_states j
  LEFT JOIN draftsman.job_runs r ON r.job = j.number AND r.status = 'running'
 WHERE j.status IN ('scheduled', 'queued', 'claimed', 'running', 'waiting_for_input',
                    'waiting_for_approval', 'resumed', 'retrying')
 GROUP BY j.number
HAVING count(r.job) <> CASE WHEN j.status = 'running' THEN 1 ELSE 0 END
 LIMIT 100

-- name: open_run_belongs_to_running_job
SELECT r.job, r.ordinal AS run, j.status
  FROM draftsman.job_runs r
  JOIN draftsman.job_states j ON j.number = r.job
 WHERE r.status = 'running' AND (j.status <> 'running' OR j.lease_token <> r.lease_token
                                 OR j.run_count <> r.ordinal)
 LIMIT 100

-- name: result_is_that_of_the_completed_run
SELECT j.number AS job, CASE WHEN j.status <> 'completed' THEN 'job_did_not_complete'
                             WHEN r.job IS NULL THEN 'newest_run_did_not_complete'
                             WHEN r.ordinal <> j.run_count THEN 'earlier_run_completed'
                             ELSE 'result_of_another_run' END AS sentence,
       r.ordinal AS run, j.run_count AS newest, j.status
  FROM draftsman.job_states j
  LEFT JOIN draftsman.job_runs r ON r.job = j.number AND r.status = 'completed'
 WHERE (j.status = 'completed' AND r.ordinal = j.run_count AND r.lease_token = j.result_token) IS NOT TRUE
   AND (j.status = 'completed' OR r.job IS NOT NULL)
 LIMIT 100

-- name: waiting_has_open_questions
SELECT j.number AS job, j.status
  FROM draftsman.job_states j
 WHERE j.status IN ('waiting_for_input', 'waiting_for_approval')
   AND NOT EXISTS (SELECT FROM draftsman.job_questions q
                    WHERE q.job = j.number AND q.status = 'open')
 LIMIT 100

-- A job that waits for an approval and for an answer waits for the approval.
-- name: open_question_belongs_to_waiting_job
SELECT q.job, min(q.ordinal) AS question, j.status
  FROM draftsman.job_questions q
  JOIN draftsman.job_states j ON j.number = q.job
 WHERE q.status = 'open'
 GROUP BY q.job, j.status
HAVING j.status <> CASE WHEN bool_or(q.kind = 'approval') THEN 'waiting_for_approval'
                   ELSE 'waiting_for_input' END::draftsman.job_status
 LIMIT 100

-- name: open_questions_are_of_the_last_run
SELECT q.job, q.ordinal AS question, q.run, j.run_count AS newest
  FROM draftsman.job_questions q
  JOIN draftsman.job_states j ON j.number = q.job
 WHERE q.status = 'open' AND q.run <> j.run_count
 LIMIT 100

-- The first of several alternatives that closes is the only one that counts.
-- name: alternatives_close_together
SELECT q.job, count(*) FILTER (WHERE q.status = 'open') AS open,
       count(*) FILTER (WHERE q.status IN ('answered', 'expired')) AS closed, q.alternative_of AS question
  FROM draftsman.job_questions q
 WHERE q.alternative_of IS NOT NULL AND q.status IN ('open', 'answered', 'expired')
 GROUP BY q.job, q.alternative_of
HAVING count(*) FILTER (WHERE q.status = 'open') > 0
   AND count(*) FILTER (WHERE q.status IN ('answered', 'expired')) > 0
 LIMIT 100

-- name: answered_has_an_accepted_answer
SELECT q.job, q.ordinal AS question
  FROM draftsman.job_questions q
 WHERE q.status = 'answered' AND q.resolution ->> 'via' = 'person'
   AND NOT EXISTS (SELECT FROM draftsman.job_answers a
                    WHERE a.job = q.job AND a.question = q.ordinal AND a.accepted)
 LIMIT 100

-- name: accepted_answer_resolved_its_question
SELECT a.job, a.question
  FROM draftsman.job_answers a
  JOIN draftsman.job_questions q ON q.job = a.job AND q.ordinal = a.question
 WHERE a.accepted AND a.kind = 'input' AND q.status NOT IN ('answered', 'superseded')
 LIMIT 100

-- A job that runs, waits or ran before holds its concurrency key, and a free key has no queued job.
-- name: concurrency_key_is_held_once
SELECT min(number) AS job, concurrency_key AS key, count(*) FILTER (WHERE (hold >= 'key') IS NOT TRUE) AS holding,
       count(*) FILTER (WHERE hold = 'key' AND status IN ('queued', 'resumed')) AS waiting
  FROM draftsman.job_states
 WHERE concurrency_key IS NOT NULL AND finished_at IS NULL
 GROUP BY concurrency_key
HAVING count(*) FILTER (WHERE (hold >= 'key') IS NOT TRUE) > 1
    OR (count(*) FILTER (WHERE (hold >= 'key') IS NOT TRUE) = 0
        AND count(*) FILTER (WHERE hold = 'key' AND status IN ('queued', 'resumed')) > 0
        AND NOT EXISTS (SELECT FROM draftsman.postponed_work p WHERE p.key = concurrency_key))
 LIMIT 100

-- A bucket, with its postponed changes, counts exactly the jobs that may be claimed, are claimed or run.
-- name: bucket_counts_its_jobs
SELECT w.job, w.name AS bucket, coalesce(b.taken, 0) + p.change AS counted, w.taken
  FROM (SELECT n.name, min(s.number) AS job, count(s.number) AS taken
          FROM (SELECT name FROM draftsman.limit_buckets
                 UNION
                SELECT bucket FROM draftsman.postponed_work WHERE bucket IS NOT NULL
                 UNION
                SELECT unnest(limits) FROM draftsman.job_states WHERE finished_at IS NULL) n
          LEFT JOIN draftsman.job_states s ON n.name = ANY (s.limits)
           AND (s.status IN ('claimed', 'running')
                OR (s.status IN ('queued', 'resumed') AND s.hold IS NULL))
         GROUP BY n.name) w
  LEFT JOIN draftsman.limit_buckets b ON b.name = w.name
 CROSS JOIN LATERAL (SELECT coalesce(sum(change), 0) AS change FROM draftsman.postponed_work
                      WHERE bucket = w.name) p
 WHERE coalesce(b.taken, 0) + p.change <> w.taken
 LIMIT 100

-- A job waits for a parent that has not ended, and for none that ended against its condition.
-- name: waiting_jobs_have_a_parent
SELECT s.number AS job, CASE WHEN d.excluded > 0 THEN 'parent_excludes' ELSE 'parents_ended' END AS sentence
  FROM draftsman.job_states s
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE met IS NULL) AS pending,
              count(*) FILTER (WHERE NOT met) AS excluded
         FROM draftsman.job_dependencies WHERE job = s.number) d
 WHERE s.hold = 'parents' AND (d.pending = 0 OR d.excluded > 0)
 LIMIT 100

-- A job is released only after all its parents have ended as their conditions say.
-- Under load a claim sees an end that is later than its own time, which is that of its beginning.
-- name: jobs_start_after_their_parents
SELECT s.number AS job, s.status, d.parent, p.status AS status_of_parent
  FROM draftsman.job_dependencies d
  JOIN draftsman.job_states s ON s.number = d.job
  JOIN draftsman.job_states p ON p.number = d.parent
 WHERE NOT d.spawned AND (s.hold IS DISTINCT FROM 'parents' AND s.status <> 'canceled' AND d.met IS NOT TRUE
                          OR s.started_at < p.finished_at - interval '1 s')
 LIMIT 100

-- name: dependencies_agree_with_their_parents
SELECT d.job, d.parent, coalesce(d.met::text, 'open') AS met, p.status
  FROM draftsman.job_dependencies d
  JOIN draftsman.job_states p ON p.number = d.parent
 WHERE (d.met IS DISTINCT FROM CASE WHEN p.finished_at IS NOT NULL
                               THEN draftsman.is_met(d.condition, p.status) END AND NOT d.spawned
        OR d.met IS NULL AND (p.finished_at IS NOT NULL OR NOT p.has_children))
   AND NOT (d.met IS NULL AND p.finished_at IS NOT NULL AND EXISTS (
            SELECT FROM draftsman.postponed_work w WHERE w.ended = d.parent))
 LIMIT 100

-- After a failure in a parallel group that stops, no job starts, except retries.
-- name: stopped_groups_start_no_job
SELECT s.number AS job, s.status, g.name AS "group", coalesce(m.skipped_by, f.job) AS failed
  FROM draftsman.job_groups g CROSS JOIN LATERAL (
       SELECT max(c.job) AS job FROM draftsman.current_members(g.id) c
         JOIN draftsman.job_states e ON e.number = c.job AND e.finished_at IS NOT NULL AND e.status <> 'completed') f
  JOIN draftsman.job_group_members m ON m.group_id = g.id JOIN draftsman.job_states s ON s.number = m.job
 WHERE g.kind = 'parallel' AND g.on_failure = 'stop' AND (m.skipped_by IS NOT NULL AND s.started_at IS NOT NULL
    OR f.job IS NOT NULL AND s.finished_at IS NULL AND s.run_count = 0
       AND (SELECT r.retry_of FROM draftsman.job_requests r WHERE r.number = s.number) IS NULL
       AND NOT EXISTS (SELECT FROM draftsman.postponed_work w JOIN draftsman.job_group_members o ON o.job = w.ended
                        WHERE o.group_id = g.id))
 LIMIT 100

-- name: sequential_groups_run_one_job
SELECT b.number AS job, b.status, a.number AS previous, a.status AS status_of_previous
  FROM draftsman.job_groups g JOIN draftsman.job_group_members n ON n.group_id = g.id
  JOIN draftsman.job_group_members m ON m.group_id = g.id AND m.ordinal = n.ordinal - 1
  JOIN draftsman.job_states a ON a.number = m.job JOIN draftsman.job_states b ON b.number = n.job
 WHERE g.kind = 'sequential' AND (b.started_at < a.finished_at - interval '1 s' OR a.finished_at IS NULL
                                  AND b.hold IS DISTINCT FROM 'parents' AND b.status <> 'canceled')
   AND NOT EXISTS (SELECT FROM draftsman.job_requests r WHERE r.number IN (a.number, b.number) AND r.retry_of IS NOT NULL)
 LIMIT 100

-- name: run_count_is_the_newest_run
SELECT j.number AS job, j.run_count, coalesce(max(r.ordinal), 0) AS newest
  FROM draftsman.job_states j
  LEFT JOIN draftsman.job_runs r ON r.job = j.number
 GROUP BY j.number
HAVING j.run_count <> coalesce(max(r.ordinal), 0)
 LIMIT 100

-- Archived events count too.
-- name: version_counts_the_events
SELECT j.number AS job, j.version, count(e.job) + coalesce(max(a.transitions), 0) AS events
  FROM draftsman.job_states j
  LEFT JOIN draftsman.event_stream e ON e.job = j.number AND e.to_status IS NOT NULL
  LEFT JOIN (SELECT job, sum(transitions) AS transitions FROM draftsman.archived_jobs GROUP BY job) a
    ON a.job = j.number
 GROUP BY j.number
HAVING j.version <> count(e.job) + coalesce(max(a.transitions), 0)
 LIMIT 100

-- name: last_event_is_the_status
SELECT j.number AS job, j.status, e.to_status AS event
  FROM draftsman.job_states j
 CROSS JOIN LATERAL (
       SELECT to_status FROM draftsman.events
        WHERE job = j.number AND to_status IS NOT NULL
        ORDER BY id DESC LIMIT 1) e
 WHERE e.to_status <> j.status
   AND NOT EXISTS (SELECT FROM draftsman.archived_jobs a WHERE a.job = j.number)
 LIMIT 100

-- name: status_events_are_contiguous
SELECT job, id AS event, from_status AS status, coalesce(before, 'none') AS before
  FROM (SELECT job, id, from_status,
               lag(to_status::text) OVER (PARTITION BY job ORDER BY id) AS before
          FROM draftsman.event_stream
         WHERE to_status IS NOT NULL) t
 WHERE from_status IS NOT NULL AND from_status::text IS DISTINCT FROM before
   AND NOT EXISTS (SELECT FROM draftsman.archived_jobs a WHERE a.job = t.job)
 LIMIT 100

-- name: events_belong_to_jobs
SELECT e.job, e.id AS event
  FROM draftsman.event_stream e
 WHERE NOT EXISTS (SELECT FROM draftsman.job_states j WHERE j.number = e.job)
 LIMIT 100

-- A row of several jobs is found by the block of their numbers.
-- name: event_rows_are_of_a_block
SELECT j.job, r.id AS event
  FROM draftsman.job_events r
 CROSS JOIN LATERAL unnest(r.jobs) j (job)
 WHERE draftsman.event_block(j.job) <> r.job
 LIMIT 100

-- name: archived_months_are_empty
SELECT p.job, to_char(p.month, 'YYYY-MM') AS month
  FROM draftsman.archived_jobs p
 WHERE EXISTS (SELECT FROM draftsman.events e
                WHERE e.job = p.job
                  AND e.created_at >= p.month::timestamp AT TIME ZONE 'UTC'
                  AND e.created_at < (p.month + interval '1 month') AT TIME ZONE 'UTC')
 LIMIT 100

-- A failure is open until it is retried or dismissed, unless it was denied.
-- name: failures_are_open
SELECT s.number AS job, CASE WHEN f.job IS NULL THEN 'closed_failure' ELSE 'open_failure' END AS sentence,
       s.status
  FROM draftsman.job_states s
  LEFT JOIN draftsman.open_failures f ON f.job = s.number
 WHERE s.status IN ('failed', 'dead_letter')
   AND (f.status IS NOT DISTINCT FROM s.status) IS DISTINCT FROM (
       s.error_class IS DISTINCT FROM 'DENIED'
       AND NOT EXISTS (SELECT FROM draftsman.dismissals d WHERE d.job = s.number)
       AND draftsman.retry_of_job(s.number) IS NULL)
 LIMIT 100

-- name: only_failures_are_dismissed
SELECT s.number AS job, s.status
  FROM (SELECT job FROM draftsman.open_failures UNION ALL SELECT job FROM draftsman.dismissals) f
  JOIN draftsman.job_states s ON s.number = f.job
 WHERE s.status NOT IN ('failed', 'dead_letter')
 LIMIT 100

-- name: retries_have_one_successor
SELECT retry_of AS job, count(*) AS retries
  FROM draftsman.job_requests WHERE retry_of IS NOT NULL
 GROUP BY retry_of
HAVING count(*) > 1
 LIMIT 100

-- name: has_targets_is_set
SELECT t.job, t.ordinal AS target
  FROM draftsman.job_targets t JOIN draftsman.job_states j ON j.number = t.job
 WHERE NOT j.has_targets AND j.finished_at IS NULL
 LIMIT 100

-- name: newest_status_is_queued
SELECT t.job, t.thread_key, coalesce(d.version, 0) AS received, j.version
  FROM draftsman.job_targets t
  JOIN draftsman.job_states j ON j.number = t.job
 CROSS JOIN LATERAL (
       SELECT max(version) AS version FROM draftsman.deliveries
        WHERE job = t.job AND thread_key = t.thread_key AND kind = 'status') d
 WHERE 'status' = ANY (t.kinds)
   AND coalesce(d.version, 0) < j.version - CASE WHEN j.status = 'claimed' THEN 1 ELSE 0 END
 LIMIT 100

-- name: open_question_is_queued
SELECT q.job, q.ordinal AS question, t.thread_key
  FROM draftsman.job_questions q
  JOIN draftsman.job_targets t ON t.job = q.job
 WHERE q.status = 'open' AND 'question' = ANY (t.kinds)
   AND NOT EXISTS (SELECT FROM draftsman.deliveries d
                    WHERE d.job = q.job AND d.question = q.ordinal
                      AND d.thread_key = t.thread_key AND d.kind = 'question')
 LIMIT 100

-- name: closed_question_is_not_posted
SELECT d.job, d.seq AS delivery, d.question, q.status
  FROM draftsman.deliveries d JOIN draftsman.job_questions q ON q.job = d.job AND q.ordinal = d.question
 WHERE d.status = 'pending' AND d.kind IN ('question', 'reminder') AND q.status <> 'open'
 LIMIT 100

-- name: copies_of_a_closed_question_are_settled
SELECT d.job, d.seq AS delivery, d.question, q.status
  FROM draftsman.deliveries d
  JOIN draftsman.job_questions q ON q.job = d.job AND q.ordinal = d.question
 WHERE d.kind IN ('question', 'reminder') AND q.status <> 'open'
   AND (d.status IN ('sending', 'sent', 'unconfirmed') OR (d.status = 'dead_letter' AND d.in_doubt))
   AND NOT EXISTS (SELECT FROM draftsman.deliveries s
                    WHERE s.job = d.job AND s.original = d.seq AND s.kind = 'question_closed')
 LIMIT 100

-- name: each_thread_has_a_due_delivery
SELECT d.job, d.seq AS delivery, d.thread_key
  FROM draftsman.deliveries d
 WHERE d.status IN ('pending', 'sending', 'unconfirmed') AND d.next_attempt_at IS NULL
   AND NOT EXISTS (SELECT FROM draftsman.deliveries e
                    WHERE e.thread_key = d.thread_key AND e.next_attempt_at IS NOT NULL)
 LIMIT 100

-- name: sent_has_a_reference
SELECT job, seq AS delivery
  FROM draftsman.deliveries WHERE status = 'sent' AND external_ref IS NULL
 LIMIT 100

-- Only the leader escalates. Older versions let an agent send an event of this kind: events of runs
-- do not count, and no stored value is cast.
-- name: question_is_escalated_once
SELECT e.job, count(*) AS escalations, coalesce(e.payload ->> 'question', 'none') AS question
  FROM draftsman.event_stream e
  LEFT JOIN draftsman.question_times t
    ON t.job = e.job AND to_jsonb(t.question) = e.payload -> 'question'
 WHERE e.kind = 'question_escalated' AND NOT starts_with(e.actor, 'worker:')
 GROUP BY e.job, e.payload ->> 'question'
HAVING count(*) > 1 OR max(t.escalated_at) IS NULL
 LIMIT 100

-- name: escalating_question_has_a_target
SELECT q.job, q.ordinal AS question
  FROM draftsman.job_questions q
 WHERE q.on_expire = 'escalate'
   AND NOT EXISTS (SELECT FROM draftsman.question_times t
                    WHERE t.job = q.job AND t.question = q.ordinal AND t.escalate_to IS NOT NULL)
 LIMIT 100

-- name: reminders_are_limited
SELECT job, question, reminders
  FROM draftsman.question_times WHERE reminders NOT BETWEEN 0 AND 3
 LIMIT 100

-- Except replacements of a dead letter.
-- name: reminders_are_counted
SELECT d.job, d.thread_key, count(*) AS sent, d.question, coalesce(max(t.reminders), 0) AS reminders
  FROM draftsman.deliveries d
  LEFT JOIN draftsman.question_times t ON t.job = d.job AND t.question = d.question
 WHERE d.kind = 'reminder' AND d.original IS NULL
 GROUP BY d.job, d.question, d.thread_key
HAVING count(*) > coalesce(max(t.reminders), 0)
 LIMIT 100

-- name: closed_question_has_no_reminder
SELECT t.job, t.question, q.status
  FROM draftsman.question_times t JOIN draftsman.job_questions q ON q.job = t.job AND q.ordinal = t.question
 WHERE t.remind_at IS NOT NULL AND q.status <> 'open'
 LIMIT 100

-- A trigger stores the role of the session that wrote the answer.
-- name: answers_are_attested
SELECT a.job, CASE WHEN a.session_role <> '' THEN 'answer_of_role' ELSE 'answer_of_unknown_role' END AS sentence,
       a.id AS answer, a.source, a.responder_id AS account, a.session_role AS role
  FROM draftsman.job_answers a
 WHERE CASE split_part(a.session_role, ':', 1)
       WHEN 'owner' THEN false
       WHEN 'bot' THEN NOT EXISTS (SELECT FROM draftsman.channels c WHERE c.name = a.source AND c.has_bot)
       WHEN 'person' THEN a.source NOT IN ('cli', 'tui', 'api')
            OR a.session_role <> 'person:' || a.responder_id
       WHEN 'worker' THEN a.source <> 'internal' OR a.kind <> 'input'
       ELSE true END
 LIMIT 100

-- name: approvals_have_their_votes
SELECT q.job, CASE WHEN q.resolution ->> 'by' IS NULL THEN 'decision_of_unknown_person'
              ELSE 'decision_of_person' END AS sentence,
       q.ordinal AS question, q.resolution ->> 'outcome' AS outcome, q.resolution ->> 'by' AS "by"
  FROM draftsman.job_questions q
 WHERE q.status = 'answered' AND q.kind = 'approval'
   AND CASE q.resolution ->> 'outcome'
       WHEN 'approved' THEN (
            SELECT count(DISTINCT a.voter) >= q.quorum
                   AND coalesce(q.resolution -> 'by' <@ jsonb_agg(a.voter), false)
              FROM draftsman.job_answers a
             WHERE a.job = q.job AND a.question = q.ordinal AND a.accepted
               AND a.payload ->> 'decision' = 'approve')
       WHEN 'denied' THEN EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = q.job AND a.question = q.ordinal AND a.accepted
               AND a.payload ->> 'decision' = 'deny'
               AND q.resolution -> 'by' = jsonb_build_array(a.voter))
       WHEN 'changes_requested' THEN q.on_changes <> 'refuse' AND EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = q.job AND a.question = q.ordinal AND a.accepted
               AND a.payload ->> 'decision' = 'request_changes'
               AND q.resolution -> 'by' = jsonb_build_array(a.voter))
       END IS NOT TRUE
 LIMIT 100

-- Each passed approval belongs to a question that was decided, or to one with an alternative that closed
-- first; asking again supersedes it.
-- name: approvals_were_decided
SELECT e.job, count(*) AS passed, max(g.decided) AS decided
  FROM draftsman.event_stream e
 CROSS JOIN LATERAL (
       SELECT count(DISTINCT q.run) AS decided FROM draftsman.job_questions q
        WHERE q.job = e.job AND q.kind = 'approval'
          AND (q.alternative_of IS NOT NULL OR EXISTS (
               SELECT FROM draftsman.job_answers a
                WHERE a.job = q.job AND a.question = q.ordinal AND a.accepted))) g
 WHERE e.from_status = 'waiting_for_approval' AND e.to_status IN ('waiting_for_input', 'resumed')
 GROUP BY e.job
HAVING count(*) > max(g.decided)
 LIMIT 100

-- A job keeps the version of the template that it was made from.
-- name: jobs_have_their_template
SELECT r.number AS job, r.template, r.template_version AS version
  FROM draftsman.job_requests r
 WHERE r.template_version IS NOT NULL
   AND NOT draftsman.is_template(r.template, r.template_version)
 LIMIT 100

-- The job of an occurrence has its key, or was submitted by a person who ran the schedule by hand.
-- name: occurrences_have_their_job
SELECT f.job, f.schedule, f.due_at::text
  FROM draftsman.schedule_fires f
  JOIN draftsman.job_requests r ON r.number = f.job
 WHERE CASE r.source WHEN 'schedule'
       THEN starts_with(r.idempotency_key, 'schedule:' || f.schedule || ':')
       ELSE f.reason IS NOT NULL END IS NOT TRUE
 LIMIT 100

-- A reservation ends with its job, and while the job waits for a person.
-- name: reservations_have_their_job
SELECT r.job, CASE WHEN s.hold IS NULL THEN 'reserving_job' ELSE 'held_reserving_job' END AS sentence,
       r.queue, s.status, s.queue AS queue_of_job
  FROM draftsman.queue_reservations r
  JOIN draftsman.job_states s ON s.number = r.job
 WHERE s.queue <> r.queue OR s.hold IS NOT NULL
    OR s.status NOT IN ('queued', 'claimed', 'running', 'resumed', 'retrying')
 LIMIT 100

-- Older versions let an agent send events of these kinds: a worker decides nothing, so its events
-- do not count.
-- name: decisions_were_made_by_their_actor
SELECT e.job, e.id AS event, e.kind, e.actor
  FROM draftsman.event_stream e
 WHERE e.kind IN ('answer_received', 'vote_received') AND NOT starts_with(e.actor, 'worker:')
   AND NOT EXISTS (SELECT FROM draftsman.job_answers a
                    WHERE a.job = e.job AND a.accepted
                      AND a.source || ':' || a.responder_id = e.actor)
 LIMIT 100
