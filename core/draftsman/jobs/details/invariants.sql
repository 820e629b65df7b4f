-- Data invariants. Each query returns at most a hundred jobs that violate it, and the problem:

-- name: request_has_a_state
SELECT number, CASE WHEN s.number IS NULL THEN 'no state' WHEN r.number IS NULL THEN 'no request'
                    ELSE 'type ' || r.type || ', but ' || s.type || ' in its state' END
  FROM draftsman.job_requests r
  FULL JOIN draftsman.job_states s USING (number)
 WHERE (r.type = s.type) IS NOT TRUE
 LIMIT 100

-- name: states_follow_their_rules
SELECT number, 'status ' || status || ', against ' || draftsman.violated_rule(s)
  FROM draftsman.job_states s
 WHERE draftsman.violated_rule(s) IS NOT NULL
 UNION ALL
SELECT number, 'request against ' || draftsman.violated_request_rule(r)
  FROM draftsman.job_requests r
 WHERE draftsman.violated_request_rule(r) IS NOT NULL
 LIMIT 100

-- name: running_has_one_open_run
SELECT j.number, j.status || ' with ' || count(r.job) || ' open runs'
  FROM draftsman.job_states j
  LEFT JOIN draftsman.job_runs r ON r.job = j.number AND r.status = 'running'
 WHERE j.status IN ('scheduled', 'queued', 'claimed', 'running', 'waiting_for_input',
                    'waiting_for_approval', 'resumed', 'retrying')
 GROUP BY j.number
HAVING count(r.job) <> CASE WHEN j.status = 'running' THEN 1 ELSE 0 END
 LIMIT 100

-- name: open_run_belongs_to_running_job
SELECT r.job, 'run ' || r.ordinal || ' is open, the job is ' || j.status
  FROM draftsman.job_runs r
  JOIN draftsman.job_states j ON j.number = r.job
 WHERE r.status = 'running' AND (j.status <> 'running' OR j.lease_token <> r.lease_token
                                 OR j.run_count <> r.ordinal)
 LIMIT 100

-- name: result_is_that_of_the_completed_run
SELECT j.number, CASE WHEN j.status <> 'completed' THEN 'run ' || r.ordinal || ' completed, but the job is ' || j.status
                      WHEN r.job IS NULL THEN 'completed, but its newest run did not complete'
                      WHEN r.ordinal <> j.run_count THEN 'run ' || r.ordinal || ' of ' || j.run_count || ' completed'
                      ELSE 'its result is not that of run ' || r.ordinal || ', which completed' END
  FROM draftsman.job_states j
  LEFT JOIN draftsman.job_runs r ON r.job = j.number AND r.status = 'completed'
 WHERE (j.status = 'completed' AND r.ordinal = j.run_count AND r.lease_token = j.result_token) IS NOT TRUE
   AND (j.status = 'completed' OR r.job IS NOT NULL)
 LIMIT 100

-- name: waiting_has_open_questions
SELECT j.number, j.status || ' without an open question'
  FROM draftsman.job_states j
 WHERE j.status IN ('waiting_for_input', 'waiting_for_approval')
   AND NOT EXISTS (SELECT FROM draftsman.job_questions q
                    WHERE q.job = j.number AND q.status = 'open')
 LIMIT 100

-- A job that waits for an approval and for an answer waits for the approval.
-- name: open_question_belongs_to_waiting_job
SELECT q.job, 'question ' || min(q.ordinal) || ' is open, the job is ' || j.status
  FROM draftsman.job_questions q
  JOIN draftsman.job_states j ON j.number = q.job
 WHERE q.status = 'open'
 GROUP BY q.job, j.status
HAVING j.status <> CASE WHEN bool_or(q.kind = 'approval') THEN 'waiting_for_approval'
                   ELSE 'waiting_for_input' END::draftsman.job_status
 LIMIT 100

-- name: open_questions_are_of_the_last_run
SELECT q.job, 'question ' || q.ordinal || ' of run ' || q.run || ' is open, the last run is ' || j.run_count
  FROM draftsman.job_questions q
  JOIN draftsman.job_states j ON j.number = q.job
 WHERE q.status = 'open' AND q.run <> j.run_count
 LIMIT 100

-- The first of several alternatives that closes is the only one that counts.
-- name: alternatives_close_together
SELECT q.job, count(*) FILTER (WHERE q.status = 'open') || ' open and '
              || count(*) FILTER (WHERE q.status IN ('answered', 'expired')) || ' closed alternatives of question '
              || q.alternative_of
  FROM draftsman.job_questions q
 WHERE q.alternative_of IS NOT NULL AND q.status IN ('open', 'answered', 'expired')
 GROUP BY q.job, q.alternative_of
HAVING count(*) FILTER (WHERE q.status = 'open') > 0
   AND count(*) FILTER (WHERE q.status IN ('answered', 'expired')) > 0
 LIMIT 100

-- name: answered_has_an_accepted_answer
SELECT q.job, 'question ' || q.ordinal || ' was answered without an accepted answer'
  FROM draftsman.job_questions q
 WHERE q.status = 'answered' AND q.resolution ->> 'via' = 'person'
   AND NOT EXISTS (SELECT FROM draftsman.job_answers a
                    WHERE a.job = q.job AND a.question = q.ordinal AND a.accepted)
 LIMIT 100

-- name: accepted_answer_resolved_its_question
SELECT a.job, 'an accepted answer to question ' || a.question || ' had no effect'
  FROM draftsman.job_answers a
  JOIN draftsman.job_questions q ON q.job = a.job AND q.ordinal = a.question
 WHERE a.accepted AND a.kind = 'input' AND q.status NOT IN ('answered', 'superseded')
 LIMIT 100

-- A job that runs, waits or ran before holds its concurrency key, and a free key has no queued job.
-- name: concurrency_key_is_held_once
SELECT min(number), 'concurrency key ' || concurrency_key || ' is held by '
                    || count(*) FILTER (WHERE (hold >= 'key') IS NOT TRUE) || ' jobs, and '
                    || count(*) FILTER (WHERE hold = 'key' AND status IN ('queued', 'resumed')) || ' wait for it'
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
SELECT w.job, 'bucket ' || w.name || ' counts ' || coalesce(b.taken, 0) + p.change
                        || ' places, taken: ' || w.taken
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
SELECT s.number, 'waits for parents, but ' || CASE WHEN d.excluded > 0 THEN 'one of them excludes it'
                 ELSE 'all of them have ended' END
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
SELECT s.number, s.status || ', but D-' || d.parent || ' is ' || p.status
  FROM draftsman.job_dependencies d
  JOIN draftsman.job_states s ON s.number = d.job
  JOIN draftsman.job_states p ON p.number = d.parent
 WHERE NOT d.spawned AND (s.hold IS DISTINCT FROM 'parents' AND s.status <> 'canceled' AND d.met IS NOT TRUE
                          OR s.started_at < p.finished_at - interval '1 s')
 LIMIT 100

-- name: dependencies_agree_with_their_parents
SELECT d.job, 'the dependency on D-' || d.parent || ' is ' || coalesce(d.met::text, 'open')
              || ', but D-' || d.parent || ' is ' || p.status
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
SELECT s.number, s.status || ', but its group ' || g.name || ' stopped at D-' || coalesce(m.skipped_by, f.job)
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
SELECT b.number, b.status || ', but D-' || a.number || ' before it in its group is ' || a.status
  FROM draftsman.job_groups g JOIN draftsman.job_group_members n ON n.group_id = g.id
  JOIN draftsman.job_group_members m ON m.group_id = g.id AND m.ordinal = n.ordinal - 1
  JOIN draftsman.job_states a ON a.number = m.job JOIN draftsman.job_states b ON b.number = n.job
 WHERE g.kind = 'sequential' AND (b.started_at < a.finished_at - interval '1 s' OR a.finished_at IS NULL
                                  AND b.hold IS DISTINCT FROM 'parents' AND b.status <> 'canceled')
   AND NOT EXISTS (SELECT FROM draftsman.job_requests r WHERE r.number IN (a.number, b.number) AND r.retry_of IS NOT NULL)
 LIMIT 100

-- name: run_count_is_the_newest_run
SELECT j.number, 'run_count ' || j.run_count || ', newest run ' || coalesce(max(r.ordinal), 0)
  FROM draftsman.job_states j
  LEFT JOIN draftsman.job_runs r ON r.job = j.number
 GROUP BY j.number
HAVING j.run_count <> coalesce(max(r.ordinal), 0)
 LIMIT 100

-- Archived events count too.
-- name: version_counts_the_events
SELECT j.number, 'version ' || j.version || ', ' || count(e.job) + coalesce(max(a.transitions), 0)
               || ' status events'
  FROM draftsman.job_states j
  LEFT JOIN draftsman.events e ON e.job = j.number AND e.to_status IS NOT NULL
  LEFT JOIN (SELECT job, sum(transitions) AS transitions FROM draftsman.archived_jobs GROUP BY job) a
    ON a.job = j.number
 GROUP BY j.number
HAVING j.version <> count(e.job) + coalesce(max(a.transitions), 0)
 LIMIT 100

-- name: last_event_is_the_status
SELECT j.number, 'the job is ' || j.status || ', its last event is ' || e.to_status
  FROM draftsman.job_states j
 CROSS JOIN LATERAL (
       SELECT to_status FROM draftsman.job_events
        WHERE job = j.number AND to_status IS NOT NULL
        ORDER BY id DESC LIMIT 1) e
 WHERE e.to_status <> j.status
   AND NOT EXISTS (SELECT FROM draftsman.archived_jobs a WHERE a.job = j.number)
 LIMIT 100

-- name: status_events_are_contiguous
SELECT job, 'event ' || id || ' starts at ' || from_status || ' after ' || coalesce(before, 'none')
  FROM (SELECT job, id, from_status,
               lag(to_status::text) OVER (PARTITION BY job ORDER BY id) AS before
          FROM draftsman.events
         WHERE to_status IS NOT NULL) t
 WHERE from_status IS NOT NULL AND from_status::text IS DISTINCT FROM before
   AND NOT EXISTS (SELECT FROM draftsman.archived_jobs a WHERE a.job = t.job)
 LIMIT 100

-- name: events_belong_to_jobs
SELECT e.job, 'event ' || e.id || ' has no job'
  FROM draftsman.job_events e
 WHERE NOT EXISTS (SELECT FROM draftsman.job_states j WHERE j.number = e.job)
 LIMIT 100

-- name: archived_months_are_empty
SELECT p.job, to_char(p.month, 'YYYY-MM') || ' was archived, but has events of this job'
  FROM draftsman.archived_jobs p
 WHERE EXISTS (SELECT FROM draftsman.job_events e
                WHERE e.job = p.job
                  AND e.created_at >= p.month::timestamp AT TIME ZONE 'UTC'
                  AND e.created_at < (p.month + interval '1 month') AT TIME ZONE 'UTC')
 LIMIT 100

-- name: retries_have_one_successor
SELECT retry_of, count(*) || ' retries'
  FROM draftsman.job_requests WHERE retry_of IS NOT NULL
 GROUP BY retry_of
HAVING count(*) > 1
 LIMIT 100

-- name: has_targets_is_set
SELECT t.job, 'target ' || t.ordinal || ' exists, but has_targets is false'
  FROM draftsman.job_targets t JOIN draftsman.job_states j ON j.number = t.job
 WHERE NOT j.has_targets AND j.finished_at IS NULL
 LIMIT 100

-- name: newest_status_is_queued
SELECT t.job, t.thread_key || ' received version ' || coalesce(d.version, 0) || ' of ' || j.version
  FROM draftsman.job_targets t
  JOIN draftsman.job_states j ON j.number = t.job
 CROSS JOIN LATERAL (
       SELECT max(version) AS version FROM draftsman.deliveries
        WHERE job = t.job AND thread_key = t.thread_key AND kind = 'status') d
 WHERE 'status' = ANY (t.kinds)
   AND coalesce(d.version, 0) < j.version - CASE WHEN j.status = 'claimed' THEN 1 ELSE 0 END
 LIMIT 100

-- name: open_question_is_queued
SELECT q.job, 'question ' || q.ordinal || ' was not sent to ' || t.thread_key
  FROM draftsman.job_questions q
  JOIN draftsman.job_targets t ON t.job = q.job
 WHERE q.status = 'open' AND 'question' = ANY (t.kinds)
   AND NOT EXISTS (SELECT FROM draftsman.deliveries d
                    WHERE d.job = q.job AND d.question = q.ordinal
                      AND d.thread_key = t.thread_key AND d.kind = 'question')
 LIMIT 100

-- name: closed_question_is_not_posted
SELECT d.job, 'delivery ' || d.seq || ' is due for question ' || d.question || ', which is ' || q.status
  FROM draftsman.deliveries d JOIN draftsman.job_questions q ON q.job = d.job AND q.ordinal = d.question
 WHERE d.status = 'pending' AND d.kind IN ('question', 'reminder') AND q.status <> 'open'
 LIMIT 100

-- name: copies_of_a_closed_question_are_settled
SELECT d.job, 'delivery ' || d.seq || ' shows question ' || d.question || ', which is ' || q.status
  FROM draftsman.deliveries d
  JOIN draftsman.job_questions q ON q.job = d.job AND q.ordinal = d.question
 WHERE d.kind IN ('question', 'reminder') AND q.status <> 'open'
   AND (d.status IN ('sending', 'sent', 'unconfirmed') OR (d.status = 'dead_letter' AND d.in_doubt))
   AND NOT EXISTS (SELECT FROM draftsman.deliveries s
                    WHERE s.job = d.job AND s.original = d.seq AND s.kind = 'question_closed')
 LIMIT 100

-- name: each_thread_has_a_due_delivery
SELECT d.job, 'delivery ' || d.seq || ' waits, but nothing of ' || d.thread_key || ' is due'
  FROM draftsman.deliveries d
 WHERE d.status IN ('pending', 'sending', 'unconfirmed') AND d.next_attempt_at IS NULL
   AND NOT EXISTS (SELECT FROM draftsman.deliveries e
                    WHERE e.thread_key = d.thread_key AND e.next_attempt_at IS NOT NULL)
 LIMIT 100

-- name: sent_has_a_reference
SELECT job, 'delivery ' || seq || ' was sent without a reference'
  FROM draftsman.deliveries WHERE status = 'sent' AND external_ref IS NULL
 LIMIT 100

-- Only the leader escalates. Older versions let an agent send an event of this kind: events of runs
-- do not count, and no stored value is cast.
-- name: question_is_escalated_once
SELECT e.job, count(*) || ' escalations of question ' || coalesce(e.payload ->> 'question', 'none')
  FROM draftsman.job_events e
  LEFT JOIN draftsman.question_times t
    ON t.job = e.job AND to_jsonb(t.question) = e.payload -> 'question'
 WHERE e.kind = 'question_escalated' AND NOT starts_with(e.actor, 'worker:')
 GROUP BY e.job, e.payload ->> 'question'
HAVING count(*) > 1 OR max(t.escalated_at) IS NULL
 LIMIT 100

-- name: escalating_question_has_a_target
SELECT q.job, 'question ' || q.ordinal || ' has no escalation target'
  FROM draftsman.job_questions q
 WHERE q.on_expire = 'escalate'
   AND NOT EXISTS (SELECT FROM draftsman.question_times t
                    WHERE t.job = q.job AND t.question = q.ordinal AND t.escalate_to IS NOT NULL)
 LIMIT 100

-- name: reminders_are_limited
SELECT job, 'question ' || question || ' has ' || reminders || ' reminders'
  FROM draftsman.question_times WHERE reminders NOT BETWEEN 0 AND 3
 LIMIT 100

-- Except replacements of a dead letter.
-- name: reminders_are_counted
SELECT d.job, d.thread_key || ' has ' || count(*) || ' reminders of question ' || d.question
              || ', of ' || coalesce(max(t.reminders), 0)
  FROM draftsman.deliveries d
  LEFT JOIN draftsman.question_times t ON t.job = d.job AND t.question = d.question
 WHERE d.kind = 'reminder' AND d.original IS NULL
 GROUP BY d.job, d.question, d.thread_key
HAVING count(*) > coalesce(max(t.reminders), 0)
 LIMIT 100

-- name: closed_question_has_no_reminder
SELECT t.job, 'question ' || t.question || ' is ' || q.status || ', but a reminder is due'
  FROM draftsman.question_times t JOIN draftsman.job_questions q ON q.job = t.job AND q.ordinal = t.question
 WHERE t.remind_at IS NOT NULL AND q.status <> 'open'
 LIMIT 100

-- A trigger stores the role of the session that wrote the answer.
-- name: answers_are_attested
SELECT a.job, 'answer ' || a.id || ' of ' || a.source || ':' || a.responder_id || ' was recorded by '
              || coalesce(nullif(a.session_role, ''), 'an unknown role')
  FROM draftsman.job_answers a
 WHERE CASE split_part(a.session_role, ':', 1)
       WHEN 'owner' THEN false
       WHEN 'bot' THEN a.source NOT IN ('slack', 'trello', 'forge')
       WHEN 'person' THEN a.source NOT IN ('cli', 'tui', 'api')
            OR a.session_role <> 'person:' || a.responder_id
       WHEN 'worker' THEN a.source <> 'internal' OR a.kind <> 'input'
       ELSE true END
 LIMIT 100

-- name: approvals_have_their_votes
SELECT q.job, 'question ' || q.ordinal || ' was ' || (q.resolution ->> 'outcome') || ' by '
              || coalesce(q.resolution ->> 'by', 'an unknown person') || ', which its answers do not support'
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
       END IS NOT TRUE
 LIMIT 100

-- Each passed approval belongs to a question that was decided, or to one with an alternative that closed
-- first; asking again supersedes it.
-- name: approvals_were_decided
SELECT e.job, count(*) || ' passed approvals, ' || max(g.decided) || ' decided'
  FROM draftsman.job_events e
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
SELECT r.number, 'there is no template ' || r.template || '@' || r.template_version
  FROM draftsman.job_requests r
 WHERE r.template_version IS NOT NULL
   AND NOT draftsman.is_template(r.template, r.template_version)
 LIMIT 100

-- The job of an occurrence has its key, or was submitted by a person who ran the schedule by hand.
-- name: occurrences_have_their_job
SELECT f.job, 'is not the job of the occurrence ' || f.schedule || ' at ' || f.due_at
  FROM draftsman.schedule_fires f
  JOIN draftsman.job_requests r ON r.number = f.job
 WHERE CASE r.source WHEN 'schedule'
       THEN starts_with(r.idempotency_key, 'schedule:' || f.schedule || ':')
       ELSE f.reason IS NOT NULL END IS NOT TRUE
 LIMIT 100

-- A reservation ends with its job, and while the job waits for a person.
-- name: reservations_have_their_job
SELECT r.job, 'has the reservation of the queue ' || r.queue || ', but is ' || s.status
              || CASE WHEN s.hold IS NULL THEN '' ELSE ' and held' END || ' in the queue ' || s.queue
  FROM draftsman.queue_reservations r
  JOIN draftsman.job_states s ON s.number = r.job
 WHERE s.queue <> r.queue OR s.hold IS NOT NULL
    OR s.status NOT IN ('queued', 'claimed', 'running', 'resumed', 'retrying')
 LIMIT 100

-- Older versions let an agent send events of these kinds: a worker decides nothing, so its events
-- do not count.
-- name: decisions_were_made_by_their_actor
SELECT e.job, 'event ' || e.id || ' says ' || e.kind || ' of ' || e.actor || ', without an answer'
  FROM draftsman.job_events e
 WHERE e.kind IN ('answer_received', 'vote_received') AND NOT starts_with(e.actor, 'worker:')
   AND NOT EXISTS (SELECT FROM draftsman.job_answers a
                    WHERE a.job = e.job AND a.accepted
                      AND a.source || ':' || a.responder_id = e.actor)
 LIMIT 100
