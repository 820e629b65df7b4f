-- Events of forges, and the pull requests of jobs.

-- Events that are known are left out; returns the ids of the others. A review counts as it was submitted:
-- no forge tells the time of an edit, or who edited it.
-- name: receive
INSERT INTO draftsman.forge_events (forge, project, number, key, kind, source, author, author_name,
       author_id, is_bot, association, verdict, title, text, label, path, line, commit, thread, url, at)
SELECT %(forge)s, e.project, e.number, e.key, e.kind, 'forge', lower(e.author), e.author, e.author_id,
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
SELECT root, forge, project, number, url, branch, base, head FROM draftsman.pull_requests
 WHERE forge = %(forge)s AND state = 'open'
 ORDER BY root DESC
 LIMIT %(limit)s

-- The pull requests that were closed lately, and that people may open again.
-- name: closed_pulls
SELECT root, forge, project, number, url, branch, base, head, state, ended_at
  FROM draftsman.pull_requests
 WHERE forge = %(forge)s AND state = 'closed' AND ended_at > draftsman.now() - %(age)s::interval
 ORDER BY ended_at DESC
 LIMIT %(limit)s
