-- Identical open questions of several jobs; their functions are in functions/questions.sql.

-- The other identical questions in the order asked; those of the same requester that were asked before
-- are shown instead.
-- name: others
SELECT i.job, i.question,
       i.id < me.id AND r.invoker_id = (SELECT invoker_id FROM draftsman.job_requests
                                         WHERE number = me.job) AS is_earlier
  FROM draftsman.identical_questions me
 CROSS JOIN LATERAL draftsman.identical_to(me.job, me.question) i
  JOIN draftsman.job_requests r ON r.number = i.job
 WHERE me.job = %(job)s AND me.question = %(question)s
 ORDER BY i.id
