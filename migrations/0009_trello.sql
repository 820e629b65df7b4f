-- Trello: the watched boards, the labels last seen on their cards, the position of each poll, and the
-- checklists and due dates of cards that show open questions.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0009_trello') AS applied \gset
\if :applied \echo '0009_trello is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0009_trello');

-- Labels by their id: `{"LABEL": {"name": "draftsman", "mode": "fix", "agent": null}}`.
CREATE TABLE draftsman.trello_board_configs (
    board_id                  text PRIMARY KEY CHECK (board_id <> ''),
    name                      text NOT NULL,
    url                       text NOT NULL DEFAULT '',
    labels                    jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
    ignored_list_ids          text[] NOT NULL DEFAULT '{}',
    queued_label_id           text CHECK (queued_label_id <> ''),
    ready_for_review_list_id  text CHECK (ready_for_review_list_id <> ''),
    transition_rules          jsonb NOT NULL DEFAULT '{}'
                              CHECK (jsonb_typeof(transition_rules) = 'object'),
    comment_template          text,
    include_existing          boolean NOT NULL DEFAULT false,
    checklists                text NOT NULL DEFAULT 'off'
                              CHECK (checklists IN ('off', 'questions', 'all')),
    due_dates                 boolean NOT NULL DEFAULT false,
    custom_fields             jsonb NOT NULL DEFAULT '{}'
                              CHECK (jsonb_typeof(custom_fields) = 'object'),
    digest_card_id            text CHECK (digest_card_id <> ''),
    webhook_id                text CHECK (webhook_id <> ''),
    created_at                timestamptz NOT NULL DEFAULT draftsman.now(),
    updated_at                timestamptz NOT NULL DEFAULT draftsman.now(),
    CONSTRAINT trello_board_configs_queued CHECK (NOT labels ? queued_label_id)
);

-- A label on a card. An episode begins when the label is seen after it was absent; a label that
-- existed before the first poll of the board is episode 0. A `pending` label will create a job, a
-- `submitted` label will be replaced, and a `done` label needs nothing more. `seen_at` is the time
-- (by our clock) when `present` last changed, `changed_at` the latest time, by Trello's clock or
-- ours, that it is based on.
CREATE TABLE draftsman.trello_labels (
    card        text NOT NULL CHECK (card <> ''),
    label       text NOT NULL CHECK (label <> ''),
    board       text NOT NULL,
    episode     int NOT NULL CHECK (episode >= 0),
    present     boolean NOT NULL,
    stage       text NOT NULL CHECK (stage IN ('pending', 'submitted', 'done')),
    job         bigint REFERENCES draftsman.job_requests,
    seen_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    changed_at  timestamptz NOT NULL,
    PRIMARY KEY (card, label),
    CONSTRAINT trello_labels_baseline CHECK (episode > 0 OR stage = 'done'),
    CONSTRAINT trello_labels_absent CHECK (present OR stage = 'done')
) WITH (fillfactor = 80);
--   trello_labels_board  the labels of a board when it was last read
--   trello_labels_due    labels that will create a job or be replaced
CREATE INDEX trello_labels_board ON draftsman.trello_labels (board) WHERE present;
CREATE INDEX trello_labels_due ON draftsman.trello_labels (board, seen_at) WHERE stage <> 'done';

-- Position up to which the actions of a board were read, by Trello's clock.
CREATE TABLE draftsman.poll_cursors (
    board          text PRIMARY KEY
                   REFERENCES draftsman.trello_board_configs ON DELETE CASCADE,
    actions_until  timestamptz NOT NULL,
    baseline_at    timestamptz NOT NULL DEFAULT draftsman.now(),
    polled_at      timestamptz NOT NULL DEFAULT draftsman.now()
);

-- The checklist of a question on a card: checking an item answers the question. `items` has the number of
-- the choice by the id of its item.
CREATE TABLE draftsman.trello_checklists (
    card        text NOT NULL CHECK (card <> ''),
    job         bigint NOT NULL,
    question    int NOT NULL,
    checklist   text NOT NULL UNIQUE CHECK (checklist <> ''),
    items       jsonb NOT NULL CHECK (jsonb_typeof(items) = 'object' AND items <> '{}'),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    closed_at   timestamptz,
    PRIMARY KEY (card, job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- The due date of a card that shows when its first open question expires. `earlier` was there before;
-- `shown` is written, or was about to be written while the card has `replaced`; a person `changed` it.
CREATE TABLE draftsman.trello_due_dates (
    card      text PRIMARY KEY CHECK (card <> ''),
    board     text NOT NULL CHECK (board <> ''),
    earlier   timestamptz,
    shown     timestamptz NOT NULL,
    replaced  timestamptz,
    changed   boolean NOT NULL DEFAULT false
);
--   trello_due_dates_board  the due dates that a poll of the board compares
CREATE INDEX trello_due_dates_board ON draftsman.trello_due_dates (board);
