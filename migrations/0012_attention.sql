-- The time of people: first views of questions, acknowledgments, snoozes, delegations, ladders
-- and digests.

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

COMMENT ON TABLE draftsman.question_views IS
    'The first view of a question by a person who may answer it: in the dashboard, with '
    '`questions` or with `show`. People read their own, operators all.';
COMMENT ON COLUMN draftsman.question_views.job IS 'its job';
COMMENT ON COLUMN draftsman.question_views.question IS 'the question';
COMMENT ON COLUMN draftsman.question_views.person IS 'the person';
COMMENT ON COLUMN draftsman.question_views.channel IS 'the channel in which it was opened';
COMMENT ON COLUMN draftsman.question_views.seen_at IS 'when it was opened';

ALTER TABLE draftsman.question_views ENABLE ROW LEVEL SECURITY;

-- A person works on the answer: all reminders of the question wait until then. `actor` is the
-- account that acknowledged it, and `next_step_at` the time of the ladder's next step before.
CREATE TABLE draftsman.question_acknowledgments (
    job           bigint NOT NULL,
    question      int NOT NULL,
    person        text NOT NULL CHECK (person <> ''),
    expires_at    timestamptz NOT NULL,
    actor         text NOT NULL CHECK (actor <> ''),
    next_step_at  timestamptz,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

COMMENT ON TABLE draftsman.question_acknowledgments IS
    'A person works on the answer of a question (`draftsman ack`): all reminders wait until then.';
COMMENT ON COLUMN draftsman.question_acknowledgments.job IS 'its job';
COMMENT ON COLUMN draftsman.question_acknowledgments.question IS 'the question';
COMMENT ON COLUMN draftsman.question_acknowledgments.person IS 'the person';
COMMENT ON COLUMN draftsman.question_acknowledgments.expires_at IS 'until when it holds';
COMMENT ON COLUMN draftsman.question_acknowledgments.actor IS
    'the account that acknowledged it; an alert that is opened again in its channel ends it';
COMMENT ON COLUMN draftsman.question_acknowledgments.next_step_at IS
    'when the next step of the ladder was due before';

-- A person gets no reminder of the question until then.
CREATE TABLE draftsman.question_snoozes (
    job         bigint NOT NULL,
    question    int NOT NULL,
    person      text NOT NULL CHECK (person <> ''),
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (job, question, person),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

COMMENT ON TABLE draftsman.question_snoozes IS
    'A person gets no reminders of a question until then (`draftsman snooze`).';
COMMENT ON COLUMN draftsman.question_snoozes.job IS 'its job';
COMMENT ON COLUMN draftsman.question_snoozes.question IS 'the question';
COMMENT ON COLUMN draftsman.question_snoozes.person IS 'the person';
COMMENT ON COLUMN draftsman.question_snoozes.expires_at IS 'until when it holds';

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

COMMENT ON TABLE draftsman.question_delegations IS
    'A person was asked by another to answer (`draftsman delegate`): the ladder and the reminders '
    'wait until then.';
COMMENT ON COLUMN draftsman.question_delegations.job IS 'its job';
COMMENT ON COLUMN draftsman.question_delegations.question IS 'the question';
COMMENT ON COLUMN draftsman.question_delegations.person IS
    'the person to whom the answer was delegated';
COMMENT ON COLUMN draftsman.question_delegations.delegated_by IS 'the person who asked';
COMMENT ON COLUMN draftsman.question_delegations.expires_at IS 'until when the others wait';
COMMENT ON COLUMN draftsman.question_delegations.created_at IS 'when it was delegated first';

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

COMMENT ON TABLE draftsman.question_ladders IS
    'The ladder of a question: its steps as they were configured when it was asked '
    '(docs/attention-ladder.md).';
COMMENT ON COLUMN draftsman.question_ladders.job IS 'its job';
COMMENT ON COLUMN draftsman.question_ladders.question IS 'the question';
COMMENT ON COLUMN draftsman.question_ladders.name IS 'the table in `[ladders]`';
COMMENT ON COLUMN draftsman.question_ladders.steps IS
    'the people notified by each step, its delay in seconds, its action if they are away, and '
    'whether it escalates';
COMMENT ON COLUMN draftsman.question_ladders.owners IS
    'the people and groups who own the changed code, for `@owners`';
COMMENT ON COLUMN draftsman.question_ladders.step IS 'the next step, from 1';
COMMENT ON COLUMN draftsman.question_ladders.due_at IS
    'when it is due; NULL: no other follows, or the question closed';

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

COMMENT ON TABLE draftsman.question_notifications IS
    'Each person or target of a step that was taken, once; step 0 is a delegation.';
COMMENT ON COLUMN draftsman.question_notifications.job IS 'its job';
COMMENT ON COLUMN draftsman.question_notifications.question IS 'the question';
COMMENT ON COLUMN draftsman.question_notifications.step IS 'the step';
COMMENT ON COLUMN draftsman.question_notifications.recipient IS 'the person, or the target';
COMMENT ON COLUMN draftsman.question_notifications.outcome IS
    '`sent`: a message of its own; `thread`: the message in the thread; `inbox`: no account in a '
    'chat; `away`, `snoozed`, `not_allowed` and `empty`: not notified';
COMMENT ON COLUMN draftsman.question_notifications.away_until IS
    'until when the person is away, or snoozed it';
COMMENT ON COLUMN draftsman.question_notifications.delivery IS 'the message';
COMMENT ON COLUMN draftsman.question_notifications.notified_at IS 'when the step was taken';

-- Digests -----------------------------------------------------------------------------------------

-- The local times of a person's digests.
CREATE TABLE draftsman.digest_hours (
    person    text PRIMARY KEY CHECK (person <> ''),
    hours     time[] NOT NULL CHECK (cardinality(hours) BETWEEN 1 AND 24
                                     AND array_position(hours, NULL) IS NULL),
    timezone  text NOT NULL CHECK (timezone <> '')
);

COMMENT ON TABLE draftsman.digest_hours IS 'The hours of people''s digests (docs/questions.md).';
COMMENT ON COLUMN draftsman.digest_hours.person IS 'the person';
COMMENT ON COLUMN draftsman.digest_hours.hours IS 'local times';
COMMENT ON COLUMN draftsman.digest_hours.timezone IS 'the time zone of the hours';

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

COMMENT ON TABLE draftsman.digest_questions IS
    'Questions in the digests of people; a person is not notified of them before.';
COMMENT ON COLUMN draftsman.digest_questions.job IS 'the job';
COMMENT ON COLUMN draftsman.digest_questions.question IS 'its question';
COMMENT ON COLUMN draftsman.digest_questions.person IS 'the person';
COMMENT ON COLUMN draftsman.digest_questions.digest_at IS 'the time of the digest';
COMMENT ON COLUMN draftsman.digest_questions.sent_at IS
    'when the digest was sent, or the question was left out because it had closed';

--   digest_questions_due  the sweep of digests
CREATE INDEX digest_questions_due ON draftsman.digest_questions (digest_at)
    WHERE sent_at IS NULL;
