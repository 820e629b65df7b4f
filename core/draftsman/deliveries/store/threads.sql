-- Topics of places, and changes of answers.

-- Jobs that post to a place, and the copies of their questions there, confirmed or possible. Newest
-- first. The condition on the log is that of the index.
-- name: place
SELECT t.job, d.question, d.external_ref AS ref
  FROM (SELECT job FROM draftsman.job_targets
         WHERE channel = %(channel)s AND target = %(target)s AND channel <> 'log'
         ORDER BY job DESC
         LIMIT %(limit)s) t
  LEFT JOIN draftsman.deliveries d
    ON d.job = t.job AND d.channel = %(channel)s AND d.target = %(target)s AND d.kind = 'question'
   AND (d.external_ref IS NOT NULL OR d.in_doubt OR d.status = 'sending')
 ORDER BY t.job DESC, d.question DESC

-- name: is_own_message
SELECT EXISTS (SELECT FROM draftsman.deliveries
                WHERE channel = %(channel)s AND external_ref = %(ref)s AND channel <> 'log')

-- The job's lock is held. Once for each change.
-- name: record_answer_change
SELECT draftsman.record_answer_change(%(job)s::bigint, %(question)s::int, %(event)s::text,
                                      %(kind)s::text, %(actor)s::text, %(detail)s::jsonb)
