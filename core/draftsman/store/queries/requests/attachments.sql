-- Attachments of requests and messages.

-- name: add
SELECT draftsman.add_attachments(%(job)s::bigint, %(actor)s::text, %(message)s::int,
                                 %(files)s::jsonb)

-- name: inherit
SELECT draftsman.inherit_attachments(%(old)s::bigint, %(new)s::bigint)

-- Those whose download has taken too long are overdue.
-- name: of_job
SELECT j.job, j.ordinal, j.message, a.id, a.name, a.media_type, a.status, a.reason, a.size,
       a.sha256, a.created_at,
       a.status = 'pending' AND a.created_at < draftsman.now() - make_interval(secs => %(patience)s)
           AS overdue
  FROM draftsman.job_attachments j
  JOIN draftsman.attachments a ON a.id = j.attachment
 WHERE j.job = %(job)s
 ORDER BY j.ordinal

-- name: content
SELECT data FROM draftsman.attachment_contents WHERE attachment = %(attachment)s

-- name: claim
SELECT id, attempt, reference, name
  FROM draftsman.claim_attachments(%(channel)s::draftsman.channel, %(most)s::int,
                                   %(seconds)s::float8)

-- name: end
SELECT draftsman.end_attachment(%(id)s::bigint, %(attempt)s::int, %(data)s::bytea,
                                %(reason)s::text, %(more)s::jsonb)
