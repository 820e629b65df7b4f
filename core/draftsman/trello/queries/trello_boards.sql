-- Trello boards: configuration, observed labels, and read positions.

-- name: listed
SELECT board_id, name, url, labels, ignored_list_ids, queued_label_id, ready_for_review_list_id,
       transition_rules, comment_template, include_existing, checklists, due_dates,
       custom_fields, digest_card_id, webhook_id
  FROM draftsman.trello_board_configs
 ORDER BY name, board_id
 LIMIT %(limit)s

-- name: of
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
INSERT INTO draftsman.trello_labels AS l (card, label, board, episode, present, stage, changed_at)
SELECT w.card, w.label, %(board)s, 1, true, 'pending', greatest(%(began)s::timestamptz, w.at)
  FROM unnest(%(cards)s::text[], %(labels)s::text[], %(ats)s::timestamptz[]) AS w (card, label, at)
 ORDER BY w.card, w.label
    ON CONFLICT (card, label)
       DO UPDATE SET episode = l.episode + 1, present = true, stage = 'pending', job = NULL,
                     board = excluded.board, seen_at = draftsman.now(),
                     changed_at = greatest(l.changed_at, excluded.changed_at)
     WHERE NOT l.present AND l.seen_at < %(began)s::timestamptz
RETURNING card, label, board, episode, present, stage, job

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
    INSERT INTO draftsman.poll_cursors (board, actions_until)
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
  FROM draftsman.poll_cursors
 WHERE board = %(board)s

-- The position never moves back.
-- name: advance
UPDATE draftsman.poll_cursors
   SET actions_until = greatest(actions_until, %(until)s::timestamptz), polled_at = draftsman.now()
 WHERE board = %(board)s

-- name: due
SELECT card, label, board, episode, present, stage, job
  FROM draftsman.trello_labels
 WHERE board = %(board)s AND stage <> 'done'
 ORDER BY seen_at
 LIMIT %(limit)s

-- name: due_on
SELECT card, label, board, episode, present, stage, job
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
