-- The time of people: first views of questions, acknowledgments, snoozes, delegations, ladders,
-- digests, and events of pagers.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0012_attention') AS applied \gset
\if :applied \echo '0012_attention is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0012_attention');

-- A person who may answer the question opened it while it was open.
CREATE TABLE draftsman.question_views (
    job       bigint NOT NULL,
    question  int NOT NULL,
    person    text NOT NULL CHECK (person <> ''),
    channel   draftsman.channel NOT NULL,
    seen_at   timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, question, person),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);
ALTER TABLE draftsman.question_views ENABLE ROW LEVEL SECURITY;

-- A person works on the answer: all reminders of the question wait until then. `pager` is the pager
-- in which it was acknowledged, and `next_step_at` the time of the ladder's next step before.
CREATE TABLE draftsman.question_acknowledgments (
    job           bigint NOT NULL,
    question      int NOT NULL,
    person        text NOT NULL CHECK (person <> ''),
    expires_at    timestamptz NOT NULL,
    pager         text CHECK (pager <> ''),
    next_step_at  timestamptz,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- A person gets no reminder of the question until then.
CREATE TABLE draftsman.question_snoozes (
    job         bigint NOT NULL,
    question    int NOT NULL,
    person      text NOT NULL CHECK (person <> ''),
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (job, question, person),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- A person was asked by another to answer: the ladder and the reminders wait until then.
CREATE TABLE draftsman.question_delegations (
    job           bigint NOT NULL,
    question      int NOT NULL,
    person        text NOT NULL CHECK (person <> ''),
    delegated_by  text NOT NULL CHECK (delegated_by <> ''),
    expires_at    timestamptz NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- Ladders -----------------------------------------------------------------------------------------

-- The ladder of a question: its steps as they were configured when the question was asked. `step`,
-- from 1, is taken at `due_at`; NULL: no other follows. `owners` are the people who own the changed
-- code.
CREATE TABLE draftsman.question_ladders (
    job       bigint NOT NULL,
    question  int NOT NULL,
    name      text NOT NULL CHECK (name <> ''),
    steps     jsonb NOT NULL
              CHECK (jsonb_typeof(steps) = 'array' AND steps <> '[]'),
    owners    text[] NOT NULL DEFAULT '{}',
    step      int NOT NULL DEFAULT 1,
    due_at    timestamptz,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT question_ladders_step CHECK (step > 0 AND (jsonb_typeof(steps) <> 'array' OR step
        <= jsonb_array_length(CASE WHEN jsonb_typeof(steps) = 'array' THEN steps ELSE '[]' END)
           + (due_at IS NULL)::int))
) WITH (fillfactor = 70);
--   question_ladders_due   the sweep of ladders and the leader's timer: holds open questions only
CREATE INDEX question_ladders_due ON draftsman.question_ladders (due_at) WHERE due_at IS NOT NULL;

-- Each person or target of a step that was taken, and why it was not notified if so. Step 0 is a
-- delegation.
CREATE TABLE draftsman.question_notifications (
    job          bigint NOT NULL,
    question     int NOT NULL,
    step         int NOT NULL CHECK (step >= 0),
    recipient    text NOT NULL CHECK (recipient <> ''),
    outcome      text NOT NULL
                 CHECK (outcome IN ('sent', 'thread', 'inbox', 'away', 'snoozed', 'not_allowed',
                                    'empty')),
    away_until   timestamptz,
    delivery     bigint REFERENCES draftsman.deliveries,
    notified_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, question, step, recipient),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT question_notifications_sent CHECK (outcome <> 'sent' OR delivery IS NOT NULL),
    CONSTRAINT question_notifications_away CHECK (away_until IS NULL
                                                  OR outcome IN ('away', 'snoozed'))
);

-- Digests and pagers ------------------------------------------------------------------------------

-- The local times of a person's digests.
CREATE TABLE draftsman.digest_hours (
    person    text PRIMARY KEY CHECK (person <> ''),
    hours     time[] NOT NULL CHECK (cardinality(hours) BETWEEN 1 AND 24
                                     AND array_position(hours, NULL) IS NULL),
    timezone  text NOT NULL CHECK (timezone <> '')
);

-- A question for the digest of a person at `digest_at`. It is sent, or dropped because it closed
-- before, once.
CREATE TABLE draftsman.digest_questions (
    job        bigint NOT NULL,
    question   int NOT NULL,
    person     text NOT NULL CHECK (person <> ''),
    digest_at  timestamptz NOT NULL,
    sent_at    timestamptz,
    PRIMARY KEY (job, question, person),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);
--   digest_questions_due  the sweep of digests
CREATE INDEX digest_questions_due ON draftsman.digest_questions (digest_at)
    WHERE sent_at IS NULL;

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
--   pager_events_question   the newest event of a question
CREATE INDEX pager_events_question ON draftsman.pager_events (job, question, pager);
