-- Approval tokens are kept as hashes.

-- An approver's newest token replaces the older one.
-- name: mint
INSERT INTO draftsman.approval_tokens (token_hash, job, question, approver, minted_by)
SELECT %(hash)s, q.job, q.ordinal, %(approver)s, %(minted_by)s
  FROM draftsman.job_questions q
 WHERE q.job = %(job)s AND q.ordinal = %(ordinal)s AND q.status = 'open' AND q.kind = 'approval'
    ON CONFLICT (job, question, approver) DO UPDATE
       SET token_hash = excluded.token_hash, minted_by = excluded.minted_by,
           created_at = draftsman.now()
     WHERE approval_tokens.used_at IS NULL
RETURNING approver

-- name: find
SELECT job, question, approver, minted_by, used_at IS NOT NULL AS used
  FROM draftsman.approval_tokens
 WHERE token_hash = %(hash)s

-- name: use
UPDATE draftsman.approval_tokens SET used_at = draftsman.now()
 WHERE token_hash = %(hash)s AND used_at IS NULL
