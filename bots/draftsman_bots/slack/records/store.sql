-- Threads of Slack and the jobs and questions that they are about.

-- Jobs submitted in a Slack thread, or with messages in it; `question` where the thread's root is a
-- question's message. Newest first.
-- name: topics
SELECT job, max(question) AS question, max(thread) AS thread
  FROM (SELECT t.job, NULL::int AS question, NULL::text AS thread
          FROM draftsman.job_targets t
         WHERE t.target = %(target)s AND t.thread = %(thread)s AND t.channel = 'slack'
         UNION ALL
        SELECT d.job, d.question, coalesce(d.thread, (
               SELECT coalesce(nullif(split_part(r.external_ref, '/', 3), ''),
                               split_part(r.external_ref, '/', 2))
                 FROM draftsman.deliveries r
                WHERE r.job = d.job AND r.thread_key = d.thread_key
                  AND r.kind = 'status' AND r.status = 'sent'
                ORDER BY r.seq DESC
                LIMIT 1))
          FROM draftsman.deliveries d
         WHERE d.channel = 'slack' AND d.external_ref = %(ref)s) f
 GROUP BY job
 ORDER BY job DESC
 LIMIT %(limit)s

-- The question that a message asks, or reminds of; a notice about a question does not ask it.
-- name: question_of_message
SELECT d.job, d.question
  FROM draftsman.deliveries d
 WHERE d.channel = 'slack' AND d.external_ref = %(ref)s AND d.kind IN ('question', 'reminder')
   AND d.question IS NOT NULL
 ORDER BY d.seq DESC
 LIMIT 1

-- Whether a message that may be the thread's root is being sent to any of these conversations: it
-- may be posted, but its reference is not recorded yet. Messages below a status message start no
-- thread. Clocks may differ by five minutes.
-- name: has_pending_message
SELECT EXISTS (
       SELECT FROM draftsman.deliveries d
        WHERE d.channel = 'slack' AND d.target = ANY (%(targets)s::text[])
          AND d.next_attempt_at IS NOT NULL AND d.status IN ('sending', 'unconfirmed')
          AND d.thread IS NULL AND d.kind NOT IN ('question_closed', 'file')
          AND d.created_at < to_timestamp(%(thread)s::float8) + interval '5 minutes'
          AND (d.kind = 'status' OR NOT EXISTS (
              SELECT FROM draftsman.deliveries r
               WHERE r.job = d.job AND r.thread_key = d.thread_key AND r.kind = 'status'
                 AND r.status = 'sent')))

-- Questions of the newest waiting jobs, asked in a channel less than so many seconds ago.
-- name: open_questions_in
SELECT q.job, q.ordinal
  FROM (SELECT job, ordinal, asked_at
          FROM draftsman.job_questions
         WHERE status = 'open'
         ORDER BY job DESC
         LIMIT %(limit)s) q
 CROSS JOIN LATERAL (
       SELECT FROM draftsman.job_targets t
        WHERE t.job = q.job AND t.channel = 'slack' AND t.target = %(target)s
        LIMIT 1) t
 WHERE q.asked_at > draftsman.now() - make_interval(secs => %(seconds)s)
 ORDER BY q.job DESC

-- Messages of open questions of the newest waiting jobs. The thread of such a message is that of
-- its target, or that of the job's status message there.
-- name: question_messages
SELECT q.job, d.question, d.external_ref AS ref, d.thread,
       (SELECT r.external_ref FROM draftsman.deliveries r
         WHERE r.job = q.job AND r.thread_key = d.thread_key
           AND r.kind = 'status' AND r.status = 'sent'
         ORDER BY r.seq DESC
         LIMIT 1) AS root
  FROM (SELECT job, ordinal
          FROM draftsman.job_questions
         WHERE status = 'open'
         ORDER BY job DESC
         LIMIT %(limit)s) q
 CROSS JOIN LATERAL (
       SELECT d.question, d.external_ref, d.thread, d.thread_key, d.seq
         FROM draftsman.deliveries d
        WHERE d.job = q.job AND d.question = q.ordinal
          AND d.channel = 'slack' AND d.kind = 'question' AND d.status = 'sent'
        ORDER BY d.seq
        LIMIT %(limit)s) d
 ORDER BY q.job DESC, d.seq
