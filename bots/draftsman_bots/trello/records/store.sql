-- Trello boards: configuration, observed labels, and read positions.

-- name: clock
SELECT draftsman.now() AS moment

-- name: boards
SELECT board_id, name, url, labels, ignored_list_ids, queued_label_id, ready_for_review_list_id,
       transition_rules, comment_template, include_existing, checklists, due_dates,
       custom_fields, digest_card_id, webhook_id
  FROM draftsman.trello_board_configs
 ORDER BY name, board_id
 LIMIT %(limit)s

-- name: board
SELECT board_id, name, url, labels, ignored_list_ids, queued_label_id, ready_for_review_list_id,
       transition_rules, comment_template, include_existing, checklists, due_dates,
       custom_fields, digest_card_id, webhook_id
  FROM draftsman.trello_board_configs
 WHERE board_id = %(board)s

-- name: save
INSERT INTO draftsman.trello_board_configs (board_id, name, url, labels, ignored_list_ids,
       queued_label_id, ready_for_review_list_id, transition_rules, comment_template,
       include_existing, checklists, due_dates, custom_fields, digest_card_id, webhook_id)
VALUES (%(board_id)s, %(name)s, %(url)s, %(labels)s, %(ignored_list_ids)s, %(queued_label_id)s,
        %(ready_for_review_list_id)s, %(transition_rules)s, %(comment_template)s,
        %(include_existing)s, %(checklists)s, %(due_dates)s, %(custom_fields)s,
        %(digest_card_id)s, %(webhook_id)s)
    ON CONFLICT (board_id)
       DO UPDATE SET name = excluded.name, url = excluded.url, labels = excluded.labels,
                     ignored_list_ids = excluded.ignored_list_ids,
                     queued_label_id = excluded.queued_label_id,
                     ready_for_review_list_id = excluded.ready_for_review_list_id,
                     transition_rules = excluded.transition_rules,
                     comment_template = excluded.comment_template,
                     include_existing = excluded.include_existing,
                     checklists = excluded.checklists, due_dates = excluded.due_dates,
                     custom_fields = excluded.custom_fields,
                     digest_card_id = excluded.digest_card_id, webhook_id = excluded.webhook_id

-- The episodes stay: when the board is added again, no job is created twice.
-- name: remove
DELETE FROM draftsman.trello_board_configs WHERE board_id = %(board)s

-- name: webhook
UPDATE draftsman.trello_board_configs
   SET webhook_id = %(webhook)s
 WHERE board_id = %(board)s AND webhook_id IS DISTINCT FROM %(webhook)s

-- name: present
SELECT card, label FROM draftsman.trello_labels WHERE board = %(board)s AND present

-- name: present_on
SELECT card, label FROM draftsman.trello_labels WHERE card = ANY (%(cards)s::text[]) AND present

-- Labels that a poll since `began` found present: an episode begins after the end of the previous
-- episode. A later observation of another process takes precedence. A single statement, in the
-- order of the key, so that two concurrent observers wait for each other, and the second finds it
-- done.
-- name: begin_episodes
INSERT INTO draftsman.trello_labels AS l (card, label, board, episode, present, stage, added_by,
                                          changed_at)
SELECT w.card, w.label, %(board)s, 1, true, 'pending', w.by,
       greatest(%(began)s::timestamptz, w.at)
  FROM unnest(%(cards)s::text[], %(labels)s::text[], %(ats)s::timestamptz[], %(bys)s::text[])
       AS w (card, label, at, by)
 ORDER BY w.card, w.label
    ON CONFLICT (card, label)
       DO UPDATE SET episode = l.episode + 1, present = true, stage = 'pending', job = NULL,
                     added_by = excluded.added_by, board = excluded.board, seen_at = draftsman.now(),
                     changed_at = greatest(l.changed_at, excluded.changed_at)
     WHERE NOT l.present AND l.seen_at < %(began)s::timestamptz
RETURNING card, label, board, episode, present, stage, job, added_by, seen_at

-- A webhook names the member of an episode that began without one.
-- name: name_member
UPDATE draftsman.trello_labels
   SET added_by = %(member)s
 WHERE card = %(card)s AND label = %(label)s AND stage = 'pending' AND added_by IS NULL
RETURNING card, label, board, episode, present, stage, job, added_by, seen_at

-- Labels that a poll since `began` found absent. Locked in the order of the key.
-- name: end_episodes
WITH locked AS MATERIALIZED (
    SELECT l.card, l.label, greatest(%(began)s::timestamptz, w.at) AS at
      FROM unnest(%(cards)s::text[], %(labels)s::text[], %(ats)s::timestamptz[])
           AS w (card, label, at)
      JOIN draftsman.trello_labels l ON l.card = w.card AND l.label = w.label
     WHERE l.present AND l.seen_at < %(began)s::timestamptz
     ORDER BY l.card, l.label
       FOR NO KEY UPDATE OF l
)
UPDATE draftsman.trello_labels l
   SET present = false, stage = 'done', seen_at = draftsman.now(),
       changed_at = greatest(l.changed_at, locked.at)
  FROM locked
 WHERE l.card = locked.card AND l.label = locked.label

-- A Trello action removed the label, and there is no newer observation.
-- name: end_removed_episode
UPDATE draftsman.trello_labels
   SET present = false, stage = 'done', seen_at = draftsman.now(), changed_at = %(at)s
 WHERE card = %(card)s AND label = %(label)s AND present AND changed_at < %(at)s

-- name: baseline
WITH begun AS (
    INSERT INTO draftsman.trello_poll_cursors (board, actions_until)
    VALUES (%(board)s, %(until)s)
        ON CONFLICT DO NOTHING
    RETURNING board
), there AS (
    INSERT INTO draftsman.trello_labels (card, label, board, episode, present, stage, changed_at)
    SELECT w.card, w.label, b.board, 0, true, 'done', %(began)s
      FROM begun b
     CROSS JOIN unnest(%(cards)s::text[], %(labels)s::text[]) AS w (card, label)
     ORDER BY w.card, w.label
        ON CONFLICT DO NOTHING
)
SELECT count(*) FROM begun

-- name: cursor
SELECT board, actions_until, baseline_at, polled_at,
       extract(epoch FROM draftsman.now() - polled_at)::float8 AS age
  FROM draftsman.trello_poll_cursors
 WHERE board = %(board)s

-- The position never moves back.
-- name: advance
UPDATE draftsman.trello_poll_cursors
   SET actions_until = greatest(actions_until, %(until)s::timestamptz), polled_at = draftsman.now()
 WHERE board = %(board)s

-- name: due
SELECT card, label, board, episode, present, stage, job, added_by, seen_at
  FROM draftsman.trello_labels
 WHERE board = %(board)s AND stage <> 'done'
 ORDER BY seen_at
 LIMIT %(limit)s

-- name: due_on
SELECT card, label, board, episode, present, stage, job, added_by, seen_at
  FROM draftsman.trello_labels
 WHERE card = %(card)s AND stage <> 'done'
 ORDER BY label

-- name: settle
UPDATE draftsman.trello_labels
   SET stage = %(stage)s, job = coalesce(%(job)s::bigint, job)
 WHERE card = %(card)s AND label = %(label)s AND episode = %(episode)s AND stage <> 'done'

-- Draftsman removed the label: adding it again begins another episode.
-- name: end_swapped_episode
UPDATE draftsman.trello_labels
   SET present = false, stage = 'done', seen_at = draftsman.now(),
       changed_at = greatest(changed_at, draftsman.now())
 WHERE card = %(card)s AND label = %(label)s AND episode = %(episode)s AND present

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

-- The card for digests of the board whose card asks, by job.
-- name: digest_cards
SELECT g.job, min(b.digest_card_id)
  FROM draftsman.job_targets g
  JOIN draftsman.trello_labels l ON l.card = g.target
  JOIN draftsman.trello_board_configs b ON b.board_id = l.board
 WHERE g.job = ANY (%(jobs)s::bigint[]) AND g.channel = 'trello' AND b.digest_card_id IS NOT NULL
 GROUP BY g.job
