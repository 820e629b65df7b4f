-- Who somebody in a channel is, joined by a code.

-- A new code takes the place of the one before; who is linked stays so until it is used.
-- name: offer
INSERT INTO draftsman.identity_links (channel, external_id, display_name, code_hash, code_expires_at)
VALUES (%(channel)s, %(id)s, %(name)s, %(hash)s,
        draftsman.now() + make_interval(secs => %(seconds)s))
    ON CONFLICT (channel, external_id)
       DO UPDATE SET display_name = excluded.display_name, code_hash = excluded.code_hash,
                     code_expires_at = excluded.code_expires_at

-- name: link
UPDATE draftsman.identity_links
   SET person = %(person)s, linked_by = %(actor)s, linked_at = draftsman.now(), code_hash = NULL,
       code_expires_at = NULL
 WHERE code_hash = %(hash)s AND code_expires_at > draftsman.now()
RETURNING channel, external_id, display_name, person, linked_by, linked_at

-- name: unlink
UPDATE draftsman.identity_links
   SET person = NULL, linked_by = NULL, linked_at = NULL, code_hash = NULL, code_expires_at = NULL
 WHERE channel = %(channel)s AND external_id = %(id)s AND person IS NOT NULL
RETURNING person

-- name: person
SELECT person FROM draftsman.identity_links WHERE channel = %(channel)s AND external_id = %(id)s

-- name: links
SELECT channel, external_id, display_name, person, linked_by, linked_at
  FROM draftsman.identity_links
 WHERE person IS NOT NULL
 ORDER BY person, channel, external_id
 LIMIT %(limit)s
