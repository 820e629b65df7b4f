-- Pending decisions: answers, decisions and cancels in their undo window.

-- name: hold
SELECT id, job, question, source, source_event_id, actor_id, actor_display_name, voter, is_owner,
       decision, applies_at
  FROM draftsman.hold_decision(
       %(job)s::bigint, %(question)s::int, %(source)s::draftsman.channel, %(event)s::text,
       %(actor_id)s::text, %(display_name)s::text, %(voter)s::text, %(is_owner)s::boolean,
       %(decision)s::jsonb, %(payload)s::jsonb, %(seconds)s::float8)

-- name: take
SELECT draftsman.take_decision(%(id)s::bigint, %(early)s::boolean)

-- name: finish
SELECT draftsman.finish_decision(%(id)s::bigint)

-- name: undo
SELECT draftsman.undo_decision(%(id)s::bigint)

-- Decisions that are due, for the leader.
-- name: due
SELECT id, job, question, source, source_event_id, actor_id, actor_display_name, voter, is_owner,
       decision, applies_at
  FROM draftsman.pending_decisions
 WHERE applies_at <= draftsman.now()
   AND id <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY applies_at
 LIMIT %(limit)s
