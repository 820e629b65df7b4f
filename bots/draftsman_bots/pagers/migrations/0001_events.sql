-- Pagers: the events of the alerts of questions.

-- Events of the alert of a question in a pager, each once. Of a late event and a newer one, the
-- newer counts.
CREATE TABLE draftsman.pager_events (
    pager        text NOT NULL CHECK (pager <> ''),
    id           text NOT NULL CHECK (id <> ''),
    job          bigint NOT NULL,
    question     int NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('acknowledged', 'resolved', 'reopened')),
    occurred_at  timestamptz NOT NULL,
    received_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (pager, id),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

COMMENT ON TABLE draftsman.pager_events IS
    'Events of the alerts of questions in pagers, each once; of two events of an alert the newer '
    'counts.';
COMMENT ON COLUMN draftsman.pager_events.pager IS 'the table in `[pagers]`';
COMMENT ON COLUMN draftsman.pager_events.id IS 'the id of the event there';
COMMENT ON COLUMN draftsman.pager_events.job IS 'the job of the question';
COMMENT ON COLUMN draftsman.pager_events.question IS 'the question';
COMMENT ON COLUMN draftsman.pager_events.kind IS
    '`acknowledged`, `resolved`, or `reopened`: the alert is open again';
COMMENT ON COLUMN draftsman.pager_events.occurred_at IS
    'when it happened, by the clock of the pager';
COMMENT ON COLUMN draftsman.pager_events.received_at IS 'when its webhook arrived first';

--   pager_events_question   the newest event of a question
CREATE INDEX pager_events_question ON draftsman.pager_events (job, question, pager);

SELECT draftsman.limit_sizes('pager_events');
