-- Approval tokens, stored as hashes.

-- An approver's newest token replaces the previous token.
-- name: mint
SELECT draftsman.mint_token(%(hash)s::text, %(job)s::bigint, %(ordinal)s::int, %(approver)s::text,
                            %(minted_by)s::text, %(actor)s::text)

-- name: find
SELECT job, question, approver, minted_by, used_at IS NOT NULL AS used
  FROM draftsman.approval_tokens
 WHERE token_hash = %(hash)s

-- name: use
SELECT draftsman.use_token(%(hash)s::text, %(actor)s::text)

-- name: refuse
SELECT draftsman.refuse_token(%(job)s::bigint, %(ordinal)s::int, %(approver)s::text, %(voter)s::text,
                              %(reason)s::text, %(actor)s::text, %(most)s::int)
