-- Digests of questions; their functions are in functions/attention.sql.

-- name: choose
SELECT draftsman.choose_digest(%(person)s::text, %(hours)s::time[], coalesce(
           %(timezone)s::text, (SELECT timezone FROM draftsman.people WHERE name = %(person)s::text),
           %(default)s::text), %(actor)s::text)

-- name: hours
SELECT d.person, d.hours, d.timezone, draftsman.next_digest(d.person) AS next_at
  FROM draftsman.digest_hours d
 WHERE d.person = %(person)s

-- part: due
SELECT d.job, d.question, d.person FROM draftsman.digest_questions d
 WHERE d.sent_at IS NULL AND d.digest_at <= draftsman.now()
   AND d.person <> ALL (%(away)s::text[])
   AND (%(only)s::bigint[] IS NULL OR d.job = ANY (%(only)s::bigint[]))
   AND d.job <> ALL (%(without)s::bigint[])
   AND (%(term)s::bigint IS NULL OR EXISTS (
       SELECT FROM draftsman.leases WHERE name = 'leader' AND owner = %(owner)s
          AND term = %(term)s AND expires_at > draftsman.now()))
 ORDER BY d.digest_at
 LIMIT %(limit)s
   FOR UPDATE SKIP LOCKED

-- name: candidates
SELECT job FROM (
-- include: due
) d

-- Questions whose digest is due, marked as sent: each is in at most one. A question that has closed is
-- marked, and left out, and so are identical questions of later jobs: their answer counts for all.
-- `slack` and `trello` are the accounts of the person, `card` is the card for digests of the board
-- whose card asks; each is NULL if there is none.
-- name: take_due
WITH due AS MATERIALIZED (
-- include: due
), taken AS (
    UPDATE draftsman.digest_questions d SET sent_at = draftsman.now()
      FROM due w
     WHERE d.job = w.job AND d.question = w.question AND d.person = w.person AND d.sent_at IS NULL
    RETURNING d.*
)
SELECT t.person, t.job, t.question, t.digest_at, q.text, q.expires_at,
       coalesce(r.ticket_title, r.type) AS title, (
       SELECT count(*) FROM draftsman.identical_to(t.job, t.question)) AS others, (
       SELECT coalesce((SELECT i.external_id FROM draftsman.person_identities i
                         WHERE i.person = t.person AND i.channel = 'slack' LIMIT 1),
                       (SELECT l.external_id FROM draftsman.identity_links l
                         WHERE l.person = t.person AND l.channel = 'slack' LIMIT 1))) AS slack, (
       SELECT coalesce((SELECT i.external_id FROM draftsman.person_identities i
                         WHERE i.person = t.person AND i.channel = 'trello' LIMIT 1),
                       (SELECT l.external_id FROM draftsman.identity_links l
                         WHERE l.person = t.person AND l.channel = 'trello' LIMIT 1))) AS trello, (
       SELECT min(b.digest_card_id)
         FROM draftsman.job_targets g
         JOIN draftsman.trello_labels l ON l.card = g.target
         JOIN draftsman.trello_board_configs b ON b.board_id = l.board
        WHERE g.job = t.job AND g.channel = 'trello') AS card
  FROM taken t
  JOIN draftsman.job_questions q ON q.job = t.job AND q.ordinal = t.question
  JOIN draftsman.job_requests r ON r.number = t.job
 WHERE q.status = 'open' AND NOT EXISTS (
       SELECT FROM draftsman.identical_to(t.job, t.question) i
         JOIN draftsman.digest_questions d
           ON d.job = i.job AND d.question = i.question AND d.person = t.person
        WHERE (i.job, i.question) < (t.job, t.question)
          AND (d.digest_at = t.digest_at OR (i.job, i.question) IN (
              SELECT k.job, k.question FROM taken k WHERE k.person = t.person)))
 ORDER BY t.person, q.expires_at NULLS LAST, t.job
