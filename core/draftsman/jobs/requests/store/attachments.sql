-- Attachments of requests and messages.

-- name: add
SELECT draftsman.add_attachments(%(job)s::bigint, %(actor)s::text, %(message)s::int,
                                 %(files)s::jsonb)

-- name: inherit
SELECT draftsman.inherit_attachments(%(old)s::bigint, %(new)s::bigint)

-- Those whose download has taken too long are overdue.
-- name: of_job
SELECT f.*, f.status = 'pending'
            AND f.created_at < draftsman.now() - make_interval(secs => %(patience)s) AS overdue
  FROM draftsman.job_files f
 WHERE f.job = %(job)s
 ORDER BY f.ordinal

-- name: content
SELECT c.data
  FROM draftsman.job_files f
  JOIN draftsman.attachment_contents c ON c.attachment = f.id
 WHERE f.job = %(job)s AND f.id = %(attachment)s AND f.status = 'stored'

-- name: claim
SELECT id, attempt, reference, name
  FROM draftsman.claim_attachments(%(channel)s::draftsman.channel, %(most)s::int,
                                   %(seconds)s::float8)

-- name: end
SELECT draftsman.end_attachment(%(id)s::bigint, %(attempt)s::int, %(data)s::bytea,
                                %(reason)s::text, %(more)s::jsonb)
