-- Work that transactions left to the leader: `core/draftsman/jobs/runs/sweep.py` has the rules of such statements.

-- Work that transactions postponed: at most so many buckets, keys and jobs.
-- name: do_postponed
SELECT draftsman.do_due_work(%(limit)s, %(only)s::bigint[], %(without)s::bigint[])
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: do_postponed_candidates
SELECT draftsman.lock_due_work(%(limit)s, NULL, %(without)s::bigint[])

-- Jobs that were canceled with a large tree or group.
-- name: do_cancels
SELECT draftsman.do_pending_cancels(%(limit)s, %(only)s::bigint[], %(without)s::bigint[])
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())

-- name: do_cancels_candidates
SELECT job FROM draftsman.pending_cancels
 WHERE due_at <= draftsman.now() AND job <> ALL (%(without)s::bigint[])
 ORDER BY due_at, job
 LIMIT %(limit)s
