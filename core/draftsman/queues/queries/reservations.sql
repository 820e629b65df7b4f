-- Reservations of queues for jobs.

-- name: reserve
SELECT outcome, queue, holder, by, until, reason
  FROM draftsman.reserve_queue(%(job)s::bigint, %(seconds)s::float8, %(actor)s::text)

-- name: release
SELECT draftsman.release_queue(%(queue)s::text, %(actor)s::text)

-- name: active
SELECT queue, job, actor, seconds, reserved_at, expires_at
  FROM draftsman.active_reservations
 ORDER BY queue

-- name: expire
SELECT draftsman.delete_expired_reservations()
 WHERE %(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now())
