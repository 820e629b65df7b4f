-- Checklists and due dates of cards.

-- name: checklist
SELECT card, job, question, checklist, items, closed_at
  FROM draftsman.trello_checklists
 WHERE card = %(card)s AND job = %(job)s AND question = %(question)s

-- name: find_checklist
SELECT card, job, question, checklist, items, closed_at
  FROM draftsman.trello_checklists
 WHERE checklist = %(checklist)s

-- name: save_checklist
INSERT INTO draftsman.trello_checklists (card, job, question, checklist, items)
VALUES (%(card)s, %(job)s, %(question)s, %(checklist)s, %(items)s)
    ON CONFLICT DO NOTHING

-- name: close_checklist
UPDATE draftsman.trello_checklists
   SET closed_at = draftsman.now()
 WHERE card = %(card)s AND job = %(job)s AND question = %(question)s AND closed_at IS NULL

-- The open questions of the newest jobs of a card that expire, the first to expire first.
-- name: expiring
SELECT q.job, q.ordinal AS question, q.expires_at
  FROM (SELECT job FROM draftsman.job_targets
         WHERE channel = 'trello' AND target = %(card)s
         ORDER BY job DESC
         LIMIT %(limit)s) t
  JOIN draftsman.job_questions q ON q.job = t.job AND q.status = 'open'
 WHERE q.expires_at IS NOT NULL
 ORDER BY q.expires_at, q.job, q.ordinal

-- name: due_date
SELECT card, board, earlier, shown, replaced, changed
  FROM draftsman.trello_due_dates
 WHERE card = %(card)s

-- Due dates of a board that show another time than the first expiry of the open questions.
-- name: stale_due_dates
SELECT d.card
  FROM draftsman.trello_due_dates d
 WHERE d.board = %(board)s
   AND (d.shown <> d.replaced OR d.replaced IS NULL OR d.shown IS DISTINCT FROM (
        SELECT date_trunc('second', min(q.expires_at) + interval '0.5 second')
          FROM draftsman.job_targets t
          JOIN draftsman.job_questions q ON q.job = t.job AND q.status = 'open'
         WHERE t.channel = 'trello' AND t.target = d.card))
 ORDER BY d.card
 LIMIT %(limit)s

-- name: add_due_date
INSERT INTO draftsman.trello_due_dates (card, board, earlier, shown, replaced, changed)
VALUES (%(card)s, %(board)s, %(earlier)s, %(shown)s, %(replaced)s, %(changed)s)
    ON CONFLICT DO NOTHING

-- Only if no other process changed it since it was read.
-- name: change_due_date
UPDATE draftsman.trello_due_dates
   SET board = %(board)s, shown = %(shown)s, replaced = %(replaced)s, changed = %(changed)s
 WHERE card = %(card)s AND shown = %(old_shown)s AND changed = %(old_changed)s
   AND replaced IS NOT DISTINCT FROM %(old_replaced)s::timestamptz

-- name: remove_due_date
DELETE FROM draftsman.trello_due_dates
 WHERE card = %(card)s AND shown = %(shown)s AND changed = %(changed)s
   AND replaced IS NOT DISTINCT FROM %(replaced)s::timestamptz
