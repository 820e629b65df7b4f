-- Trello: the watched boards, the labels last seen on their cards, and the position of each poll.

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
