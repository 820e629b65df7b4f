-- Questions, answers, approval tokens, decisions with an undo window, and identical questions.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0009_questions') AS applied \gset
\if :applied \echo '0009_questions is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0009_questions');

CREATE TYPE draftsman.question_kind AS ENUM ('input', 'approval');
CREATE TYPE draftsman.question_status AS ENUM (
    'open', 'answered', 'expired', 'canceled', 'superseded');
CREATE TYPE draftsman.on_expire AS ENUM ('expire', 'default', 'continue', 'escalate');
CREATE TYPE draftsman.on_deny AS ENUM ('fail', 'continue');

-- Questions ---------------------------------------------------------------------------------------

-- An approval takes a decision only, and either expires or escalates. A permission request is about
-- a command, under whatever key the agent asks. A run may ask several questions at once.
-- `alternative_of` is the first of questions of which the first that closes counts: it closes the
-- others. NULL: the job waits for this question.
CREATE TABLE draftsman.job_questions (
    job               bigint NOT NULL REFERENCES draftsman.job_requests,
    ordinal           int NOT NULL CHECK (ordinal > 0),
    run               int NOT NULL,
    key               text NOT NULL CHECK (key <> ''),
    kind              draftsman.question_kind NOT NULL,
    status            draftsman.question_status NOT NULL DEFAULT 'open',
    text              text NOT NULL CHECK (text <> ''),
    choices           jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(choices) = 'array'),
    freeform_allowed  boolean NOT NULL DEFAULT false,
    context_snippet   text,
    approvers         text[] NOT NULL DEFAULT '{}',
    quorum            int NOT NULL DEFAULT 1 CHECK (quorum >= 1),
    on_expire         draftsman.on_expire NOT NULL DEFAULT 'expire',
    default_value     text,
    on_deny           draftsman.on_deny NOT NULL DEFAULT 'fail',
    digest            text NOT NULL,
    action            jsonb,
    resolution        jsonb,
    asked_at          timestamptz NOT NULL DEFAULT draftsman.now(),
    expires_at        timestamptz,
    answered_at       timestamptz,
    is_permission     boolean NOT NULL DEFAULT false,
    alternative_of    int CHECK (alternative_of BETWEEN 1 AND ordinal),
    PRIMARY KEY (job, ordinal),
    CONSTRAINT job_questions_approval CHECK (kind = 'input'
        OR (choices = '[]' AND NOT freeform_allowed AND on_expire IN ('expire', 'escalate'))),
    CONSTRAINT job_questions_answerable CHECK (kind = 'approval'
        OR choices <> '[]' OR freeform_allowed),
    CONSTRAINT job_questions_default CHECK ((default_value IS NOT NULL) = (on_expire = 'default')),
    CONSTRAINT job_questions_resolved CHECK ((resolution IS NOT NULL) = (status <> 'open')),
    CONSTRAINT job_questions_answered CHECK (status <> 'answered' OR answered_at IS NOT NULL)
);
--   job_questions_open    the open questions of a job, one for each key
--   job_questions_expiry  the sweep of expired questions; the inbox, page by page
--   job_questions_asked   the questions of the last days, for figures
CREATE UNIQUE INDEX job_questions_open ON draftsman.job_questions (job, key)
    WHERE status = 'open';
CREATE INDEX job_questions_expiry ON draftsman.job_questions (expires_at, job, ordinal)
    WHERE status = 'open';
CREATE INDEX job_questions_asked ON draftsman.job_questions (asked_at);

-- Reminders and escalation of a question, and the patch of the saved tree then (NULL: none).
CREATE TABLE draftsman.question_times (
    job           bigint NOT NULL,
    question      int NOT NULL,
    since         timestamptz NOT NULL DEFAULT draftsman.now(),
    remind_at     timestamptz,
    reminders     int NOT NULL DEFAULT 0,
    escalate_to   text CHECK (escalate_to <> ''),
    escalated_at  timestamptz,
    patch_sha256  text CONSTRAINT question_times_patch CHECK (patch_sha256 ~ '^[0-9a-f]{64}$'),
    critical      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT question_times_reminders CHECK (reminders BETWEEN 0 AND 3
        AND (reminders < 3 OR remind_at IS NULL)),
    CONSTRAINT question_times_escalated CHECK (escalated_at IS NULL OR escalate_to IS NOT NULL)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
--   question_times_due   the sweep of reminders and the leader's timer: holds open questions only
CREATE INDEX question_times_due ON draftsman.question_times (remind_at)
    WHERE remind_at IS NOT NULL;

-- Answers -----------------------------------------------------------------------------------------

-- `session_role` is the kind and the name of the session's role, whatever the session sends.
CREATE TABLE draftsman.job_answers (
    id                      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job                     bigint NOT NULL,
    question                int NOT NULL,
    kind                    draftsman.question_kind NOT NULL,
    source                  draftsman.channel NOT NULL,
    source_event_id         text NOT NULL,
    responder_id            text NOT NULL,
    responder_display_name  text,
    voter                   text NOT NULL,
    payload                 jsonb NOT NULL,
    accepted                boolean NOT NULL,
    reason                  text,
    session_role            text NOT NULL DEFAULT '',
    created_at              timestamptz NOT NULL DEFAULT draftsman.now(),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT job_answers_event UNIQUE (job, question, source_event_id),
    CONSTRAINT job_answers_refused CHECK (accepted OR reason IS NOT NULL)
);
--   job_answers_input  a single accepted answer of an input
--   job_answers_vote   an accepted vote of each kind a person, who may deny after an approval
CREATE UNIQUE INDEX job_answers_input ON draftsman.job_answers (job, question)
    WHERE accepted AND kind = 'input';
CREATE UNIQUE INDEX job_answers_vote
    ON draftsman.job_answers (job, question, voter, (payload ->> 'decision'))
    NULLS NOT DISTINCT WHERE accepted AND kind = 'approval';

-- Number of refused answers that are not stored, so that a flood of them does not grow the tables.
CREATE TABLE draftsman.refused_answers (
    job          bigint NOT NULL,
    question     int NOT NULL,
    answers      bigint NOT NULL CHECK (answers > 0),
    last_voter   text NOT NULL,
    last_reason  text NOT NULL,
    last_at      timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
) WITH (fillfactor = 50);

-- Only the approver, or a delivery that is addressed to the approver, mints a token.
CREATE TABLE draftsman.approval_tokens (
    token_hash  text PRIMARY KEY,
    job         bigint NOT NULL,
    question    int NOT NULL,
    approver    text NOT NULL,
    minted_by   text NOT NULL DEFAULT '',
    used_at     timestamptz,
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    UNIQUE (job, question, approver)
);

-- An answer or a decision of a question, or with no question the cancel of a job, which takes
-- effect at `applies_at` and can be undone until then. A row is deleted in the transaction that
-- applies or undoes it. `payload` is that of the answer; `session_role` is that of the session that
-- decided, as in `job_answers`; `taken_by` is the transaction that applies the row.
CREATE TABLE draftsman.pending_decisions (
    id                  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job                 bigint NOT NULL REFERENCES draftsman.job_requests,
    question            int,
    source              draftsman.channel NOT NULL,
    source_event_id     text NOT NULL CHECK (source_event_id <> ''),
    actor_id            text NOT NULL,
    actor_display_name  text NOT NULL,
    voter               text NOT NULL,
    is_owner            boolean NOT NULL DEFAULT false,
    decision            jsonb NOT NULL CHECK (jsonb_typeof(decision) = 'object'),
    payload             jsonb,
    created_at          timestamptz NOT NULL DEFAULT draftsman.now(),
    applies_at          timestamptz NOT NULL,
    session_role        text NOT NULL DEFAULT '',
    taken_by            xid8,
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT pending_decisions_event UNIQUE (job, source_event_id),
    CONSTRAINT pending_decisions_payload CHECK ((payload IS NULL) = (question IS NULL)),
    CONSTRAINT pending_decisions_window CHECK (
        applies_at > created_at AND applies_at <= created_at + interval '60 seconds')
);
--   pending_decisions_voter  one a person for each question, and one for the cancel of a job
--   pending_decisions_due    the sweep, and the leader's timer
CREATE UNIQUE INDEX pending_decisions_voter
    ON draftsman.pending_decisions (job, question, voter) NULLS NOT DISTINCT;
CREATE INDEX pending_decisions_due ON draftsman.pending_decisions (applies_at);

-- Identical questions -----------------------------------------------------------------------------

-- The open questions that may be answered together, in the order in which they were asked.
-- Questions with the same digest are identical. Only a few of them have messages, `shown`:
-- thousands of identical questions cost the next no more than a single one.
CREATE TABLE draftsman.identical_questions (
    id        bigint GENERATED ALWAYS AS IDENTITY,
    digest    text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    job       bigint NOT NULL,
    question  int NOT NULL,
    shown     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);
--   identical_questions_digest  the questions that are identical to another
--   identical_questions_shown   those of them that have messages
CREATE UNIQUE INDEX identical_questions_digest ON draftsman.identical_questions (digest, id);
CREATE INDEX identical_questions_shown ON draftsman.identical_questions (digest, id) WHERE shown;
