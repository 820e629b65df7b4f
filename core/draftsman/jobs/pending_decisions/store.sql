-- Pending decisions: answers, decisions and cancels in their undo window.

-- name: hold
SELECT id, job, question, source, source_event_id, actor_id, actor_display_name, voter, is_owner,
       decision, applies_at
  FROM draftsman.hold_decision(
       %(job)s::bigint, %(question)s::int, %(source)s::draftsman.channel, %(event)s::text,
       %(actor_id)s::text, %(display_name)s::text, %(voter)s::text, %(is_owner)s::boolean,
       %(decision)s::jsonb, %(payload)s::jsonb, %(seconds)s::float8)

-- name: of_question
SELECT id, job, question, source, source_event_id, actor_id, actor_display_name, voter, is_owner,
       decision, applies_at
  FROM draftsman.pending_decisions
 WHERE job = %(job)s AND question = %(question)s AND voter = %(voter)s

-- The first decision to take effect of each of these jobs.
-- name: of_jobs
SELECT DISTINCT ON (job) id, job, question, source, source_event_id, actor_id, actor_display_name, voter,
       is_owner, decision, applies_at
  FROM draftsman.pending_decisions
 WHERE job = ANY (%(jobs)s::bigint[])
 ORDER BY job, applies_at, id

-- name: newest_of
SELECT id, job, question, source, source_event_id, actor_id, actor_display_name, voter, is_owner,
       decision, applies_at
  FROM draftsman.pending_decisions
 WHERE voter = %(voter)s AND (%(job)s::bigint IS NULL OR job = %(job)s)
 ORDER BY id DESC
 LIMIT 1

-- name: has_leader
SELECT EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND expires_at > draftsman.now())

-- name: take
SELECT draftsman.take_decision(%(id)s::bigint, %(early)s::boolean)

-- name: finish
SELECT draftsman.finish_decision(%(id)s::bigint)

-- name: undo
SELECT draftsman.undo_decision(%(id)s::bigint)

-- part: decisions_due
SELECT min(applies_at) FROM draftsman.pending_decisions

-- Decisions that are due, for the leader. Those of jobs that another transaction has locked are left
-- out: it may stay open, and the leader would wait for it.
-- name: due
SELECT p.id, p.job, p.question, p.source, p.source_event_id, p.actor_id, p.actor_display_name, p.voter,
       p.is_owner, p.decision, p.applies_at
  FROM draftsman.pending_decisions p
  JOIN draftsman.job_states j ON j.number = p.job
 WHERE p.applies_at <= draftsman.now()
   AND p.id <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY p.applies_at
 LIMIT %(limit)s
   FOR NO KEY UPDATE OF j SKIP LOCKED
