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
  JOIN draftsman.job_targets t ON t.job = q.job AND t.channel = 'forge'
