-- Activity of agents: the newest rows of each job, and the transcripts of runs.

-- A batch of rows. A repeated batch, because no reply arrived, is stored once.
-- name: append
WITH owned AS MATERIALIZED (
    SELECT number, run_count FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       FOR NO KEY UPDATE
), written AS (
    INSERT INTO draftsman.run_activity (job, run, seq, kind, state, key, text, detail, continues,
           created_at)
    SELECT m.number, m.run_count, a.seq, a.kind, a.state, a.key, a.text, a.detail, a.continues,
           draftsman.now() - make_interval(secs => %(age)s)
      FROM owned m
     CROSS JOIN jsonb_to_recordset(%(items)s::jsonb) AS a (
           seq int, kind text, state text, key text, text text, detail jsonb, continues boolean)
        ON CONFLICT DO NOTHING
)
SELECT draftsman.now() - make_interval(secs => %(age)s) FROM owned

-- Rows beyond the newest ones of a job, by their number and bytes.
-- name: evict
DELETE FROM draftsman.run_activity a
 USING (SELECT k.run, k.seq
          FROM (SELECT run, seq, row_number() OVER w AS place,
                       sum(octet_length(text) + pg_column_size(detail)) OVER w AS bytes
                  FROM draftsman.run_activity
                 WHERE job = %(job)s
                WINDOW w AS (ORDER BY run DESC, seq DESC)) k
         WHERE k.place > %(most)s OR k.bytes > %(most_bytes)s
         ORDER BY k.run DESC, k.seq DESC
         LIMIT 1) o
 WHERE a.job = %(job)s AND (a.run, a.seq) <= (o.run, o.seq)

-- A part of a transcript; `size` and `sha256` are those of the transcript with this part. It is not
-- stored where the transcripts of the job would exceed `most` bytes.
-- name: transcript
WITH owned AS MATERIALIZED (
    SELECT number, run_count FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       FOR NO KEY UPDATE
), stored AS (
    INSERT INTO draftsman.artifacts (job, run, name, kind, size, sha256)
    SELECT m.number, m.run_count, 'transcript.jsonl', 'transcript', %(size)s::bigint, %(sha256)s
      FROM owned m
     WHERE %(size)s::bigint + (SELECT coalesce(sum(o.size), 0) FROM draftsman.artifacts o
                        WHERE o.job = m.number AND o.kind = 'transcript' AND o.run <> m.run_count)
           <= %(most)s::bigint
        ON CONFLICT (job, run, name) DO UPDATE SET size = excluded.size, sha256 = excluded.sha256
    RETURNING id
), part AS (
    INSERT INTO draftsman.artifact_chunks (artifact, seq, data)
    SELECT id, %(seq)s, %(data)s FROM stored
        ON CONFLICT DO NOTHING
)
SELECT EXISTS (SELECT FROM owned), EXISTS (SELECT FROM stored)

-- The status message of each chat is edited to show the progress of the run, unless another message
-- waits in its thread, or none was sent yet. Beside an open stream of the run it is edited rarely,
-- for readers who do not see the stream. Returns the number of chats; no row after a lost lease.
-- name: show
WITH owned AS MATERIALIZED (
    SELECT number, version FROM draftsman.job_states
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       FOR NO KEY UPDATE
), chats AS MATERIALIZED (
    SELECT t.job, t.ordinal, t.channel, t.target, t.thread, t.thread_key, m.version
      FROM owned m
      JOIN draftsman.job_targets t ON t.job = m.number
      JOIN draftsman.channels c ON c.name = t.channel AND c.is_chat
     WHERE 'status' = ANY (t.kinds)
), inserted AS (
    INSERT INTO draftsman.deliveries (job, channel, target, thread, thread_key, kind, version,
           payload)
    SELECT c.job, c.channel, c.target, c.thread, c.thread_key, 'status', c.version, %(payload)s
      FROM chats c
     WHERE NOT EXISTS (SELECT FROM draftsman.deliveries d
                        WHERE d.thread_key = c.thread_key
                          AND d.status IN ('pending', 'sending', 'unconfirmed'))
       AND EXISTS (SELECT FROM draftsman.deliveries d
                    WHERE d.job = c.job AND d.thread_key = c.thread_key AND d.kind = 'status'
                      AND d.status = 'sent')
       AND NOT EXISTS (SELECT FROM draftsman.live_threads l
                        WHERE l.thread_key = c.thread_key AND l.stream = 'open'
                          AND EXISTS (SELECT FROM draftsman.deliveries d
                                       WHERE d.job = c.job AND d.thread_key = c.thread_key
                                         AND d.kind = 'status' AND d.sent_at
                                             > draftsman.now() - make_interval(secs => %(rest)s)))
     ORDER BY c.ordinal
)
SELECT (SELECT count(*) FROM chats) FROM owned

-- Rows after (run, seq); a run of 0 starts at the beginning.
-- name: page
SELECT run, seq, kind, state, key, text, detail, continues, created_at FROM draftsman.run_activity
 WHERE job = %(job)s AND (run, seq) > (%(run)s, %(seq)s)
 ORDER BY run, seq
 LIMIT %(limit)s

-- The cost of jobs over their runs, and the lines that their newest patches change.
-- name: figures
SELECT j.number, c.cost_usd, p.added, p.removed
  FROM unnest(%(jobs)s::bigint[]) AS j (number)
 CROSS JOIN LATERAL (
       SELECT sum((usage ->> 'cost_usd')::numeric)::float8 AS cost_usd
         FROM draftsman.job_runs
        WHERE job = j.number) c
  LEFT JOIN LATERAL (
       SELECT added, removed FROM draftsman.artifacts
        WHERE job = j.number AND kind = 'patch'
        ORDER BY run DESC
        LIMIT 1) p ON true

-- The newest plan and the newest other row of the last rows of each job, but thoughts.
-- name: latest
SELECT DISTINCT ON (j.number, a.kind = 'plan') j.number, a.run, a.seq, a.kind, a.state, a.key,
       left(a.text, 500) AS text, a.detail, a.continues, a.created_at
  FROM unnest(%(jobs)s::bigint[]) AS j (number)
 CROSS JOIN LATERAL (
       SELECT run, seq, kind, state, key, text, detail, continues, created_at
         FROM draftsman.run_activity
        WHERE job = j.number
        ORDER BY run DESC, seq DESC
        LIMIT 20) a
 WHERE a.kind IN ('message', 'tool', 'file', 'plan')
 ORDER BY j.number, a.kind = 'plan', a.run DESC, a.seq DESC

-- The newest rows after (run, seq).
-- name: newest
SELECT run, seq, kind, state, key, text, detail, continues, created_at FROM draftsman.run_activity
 WHERE job = %(job)s AND (run, seq) > (%(run)s, %(seq)s)
 ORDER BY run DESC, seq DESC
 LIMIT %(limit)s
