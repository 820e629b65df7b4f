-- Questions, answers, approval tokens, decisions with an undo window, and identical questions.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0009_questions') AS applied \gset
\if :applied \echo '0009_questions is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0009_questions');

CREATE TYPE draftsman.question_kind AS ENUM ('input', 'approval');
CREATE TYPE draftsman.question_status AS ENUM (
    'open', 'answered', 'expired', 'canceled', 'superseded');
CREATE TYPE draftsman.answer_kind AS ENUM ('text', 'integer', 'number', 'date', 'person');
CREATE TYPE draftsman.on_expire AS ENUM ('expire', 'default', 'continue', 'escalate');
CREATE TYPE draftsman.on_deny AS ENUM ('fail', 'continue');
CREATE TYPE draftsman.on_changes AS ENUM ('refuse', 'continue', 'tell');

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
    answer_kind       draftsman.answer_kind NOT NULL DEFAULT 'text',
    context_snippet   text,
    approvers         text[] NOT NULL DEFAULT '{}',
    quorum            int NOT NULL DEFAULT 1 CHECK (quorum >= 1),
    on_expire         draftsman.on_expire NOT NULL DEFAULT 'expire',
    default_value     text,
    on_deny           draftsman.on_deny NOT NULL DEFAULT 'fail',
    on_changes        draftsman.on_changes NOT NULL DEFAULT 'refuse',
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
    CONSTRAINT job_questions_changes CHECK (kind = 'approval' OR on_changes = 'refuse'),
    CONSTRAINT job_questions_answerable CHECK (kind = 'approval'
        OR choices <> '[]' OR freeform_allowed),
    CONSTRAINT job_questions_default CHECK ((default_value IS NOT NULL) = (on_expire = 'default')),
    CONSTRAINT job_questions_resolved CHECK ((resolution IS NOT NULL) = (status <> 'open')),
    CONSTRAINT job_questions_answered CHECK (status <> 'answered' OR answered_at IS NOT NULL)
);

COMMENT ON TABLE draftsman.job_questions IS
    'Questions of runs. A job has open questions, all of its newest run, exactly while it waits; '
    'each has another key. A resolved question never changes.';
COMMENT ON COLUMN draftsman.job_questions.job IS 'its job';
COMMENT ON COLUMN draftsman.job_questions.ordinal IS 'counted from 1 within the job: `D-142/2`';
COMMENT ON COLUMN draftsman.job_questions.run IS 'the run that asked it';
COMMENT ON COLUMN draftsman.job_questions.key IS
    'the handler''s name for it; a changed question with the same key supersedes the older '
    'question';
COMMENT ON COLUMN draftsman.job_questions.kind IS '`input` takes an answer, `approval` a decision';
COMMENT ON COLUMN draftsman.job_questions.status IS 'open, or its outcome';
COMMENT ON COLUMN draftsman.job_questions.text IS 'the question';
COMMENT ON COLUMN draftsman.job_questions.choices IS
    'the choices: a list of value, label, description';
COMMENT ON COLUMN draftsman.job_questions.freeform_allowed IS 'whether free text is accepted';
COMMENT ON COLUMN draftsman.job_questions.answer_kind IS
    'what a free answer has to be; the choices of `person` are the people of the directory';
COMMENT ON COLUMN draftsman.job_questions.context_snippet IS 'information for the answer';
COMMENT ON COLUMN draftsman.job_questions.approvers IS
    'people and groups who may decide an approval, empty: no person; for a question, the group or '
    'person of its escalation';
COMMENT ON COLUMN draftsman.job_questions.quorum IS 'the number of approvals that it needs';
COMMENT ON COLUMN draftsman.job_questions.on_expire IS 'the action when it expires';
COMMENT ON COLUMN draftsman.job_questions.default_value IS 'the answer on expiry, with `default`';
COMMENT ON COLUMN draftsman.job_questions.on_deny IS
    'whether a denial fails the job or is returned to the handler';
COMMENT ON COLUMN draftsman.job_questions.on_changes IS
    'whether a request for changes is refused, is returned to the handler, or is told to the agent, '
    'after which people are asked again';
COMMENT ON COLUMN draftsman.job_questions.digest IS
    'SHA-256 of the question, including the action; an answer is bound to it';
COMMENT ON COLUMN draftsman.job_questions.action IS 'the action that an approval permits';
COMMENT ON COLUMN draftsman.job_questions.resolution IS
    'how it closed: outcome, channel, value or text, people, reason, comments';
COMMENT ON COLUMN draftsman.job_questions.asked_at IS 'when it was asked';
COMMENT ON COLUMN draftsman.job_questions.expires_at IS 'when it expires; NULL: never';
COMMENT ON COLUMN draftsman.job_questions.answered_at IS 'when it was answered';
COMMENT ON COLUMN draftsman.job_questions.is_permission IS
    'whether it asks for permission to run a command: it is answered alone';
COMMENT ON COLUMN draftsman.job_questions.alternative_of IS
    'the first of several alternatives, of which the first that closes resumes the job and '
    'cancels the others; NULL: the job waits for this question';

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
    removed_expiry timestamptz,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT question_times_reminders CHECK (reminders BETWEEN 0 AND 3
        AND (reminders < 3 OR remind_at IS NULL)),
    CONSTRAINT question_times_escalated CHECK (escalated_at IS NULL OR escalate_to IS NOT NULL)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE draftsman.question_times IS 'Timers of a question (docs/questions.md).';
COMMENT ON COLUMN draftsman.question_times.job IS 'job of the question';
COMMENT ON COLUMN draftsman.question_times.question IS 'its ordinal';
COMMENT ON COLUMN draftsman.question_times.since IS
    'when its time began: when it was asked, extended or escalated';
COMMENT ON COLUMN draftsman.question_times.remind_at IS
    'when the next reminder is due, outside of quiet hours; NULL: never';
COMMENT ON COLUMN draftsman.question_times.reminders IS 'reminders so far, at most three';
COMMENT ON COLUMN draftsman.question_times.escalate_to IS
    'group or person that is asked after `escalate`';
COMMENT ON COLUMN draftsman.question_times.escalated_at IS 'when it escalated';
COMMENT ON COLUMN draftsman.question_times.removed_expiry IS
    'when it would have expired, if a person removed the expiry; an extension counts from then';
COMMENT ON COLUMN draftsman.question_times.patch_sha256 IS
    'SHA-256 of its patch: the tree of the latest checkpoint; NULL: no patch';
COMMENT ON COLUMN draftsman.question_times.critical IS
    'whether it may interrupt people in their quiet hours';

--   question_times_due   the sweep of reminders and the leader's timer: holds open questions only
CREATE INDEX question_times_due ON draftsman.question_times (remind_at)
    WHERE remind_at IS NOT NULL;

-- Answers -----------------------------------------------------------------------------------------

-- `session_role` is the kind and the name of the session's role, whatever the session sends. A request
-- for changes says what to change: in its reason, and in comments on files or on lines of them.
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
    CONSTRAINT job_answers_refused CHECK (accepted OR reason IS NOT NULL),
    CONSTRAINT job_answers_changes CHECK (
        payload ->> 'decision' IS DISTINCT FROM 'request_changes'
        OR coalesce(payload ->> 'reason', '') <> '' OR payload ? 'comments'),
    CONSTRAINT job_answers_comments CHECK (CASE
        WHEN NOT payload ? 'comments' THEN true
        WHEN coalesce(payload ->> 'decision', '') <> 'request_changes'
             OR jsonb_typeof(payload -> 'comments') <> 'array' THEN false
        ELSE jsonb_array_length(payload -> 'comments') BETWEEN 1 AND 50
             AND NOT jsonb_path_exists(payload,
                 'strict $.comments[*] ? (@.type() != "object")')
             AND NOT jsonb_path_exists(payload, '$.comments[*].keyvalue() ? (
                 @.key != "path" && @.key != "text" && @.key != "line")')
             AND jsonb_array_length(payload -> 'comments') = jsonb_array_length(
                 jsonb_path_query_array(payload, '$.comments[*] ? (
                     @.path.type() == "string" && @.path != ""
                     && @.text.type() == "string" && @.text != ""
                     && (!exists(@.line) || (@.line.type() == "number" && @.line >= 1
                         && @.line <= 2147483647 && @.line == @.line.floor())))')) END)
);

COMMENT ON TABLE draftsman.job_answers IS
    'Every response, including refused and late responses. Never changed.';
COMMENT ON COLUMN draftsman.job_answers.id IS 'in the order of arrival';
COMMENT ON COLUMN draftsman.job_answers.job IS 'job of the question';
COMMENT ON COLUMN draftsman.job_answers.question IS 'its ordinal';
COMMENT ON COLUMN draftsman.job_answers.kind IS 'kind of the question';
COMMENT ON COLUMN draftsman.job_answers.source IS 'the channel';
COMMENT ON COLUMN draftsman.job_answers.source_event_id IS
    'the channel''s own id of the click or message, for deduplication';
COMMENT ON COLUMN draftsman.job_answers.responder_id IS 'the responder''s id in that channel';
COMMENT ON COLUMN draftsman.job_answers.responder_display_name IS
    'the responder''s name in that channel';
COMMENT ON COLUMN draftsman.job_answers.voter IS 'the person, or `channel:id` if unknown';
COMMENT ON COLUMN draftsman.job_answers.payload IS 'the value, text or decision, the reason, and the comments on files';
COMMENT ON COLUMN draftsman.job_answers.accepted IS 'whether it was accepted';
COMMENT ON COLUMN draftsman.job_answers.reason IS 'the reason of a refusal';
COMMENT ON COLUMN draftsman.job_answers.session_role IS
    'the kind and the name of the database role that gave it; set by the database';
COMMENT ON COLUMN draftsman.job_answers.created_at IS 'when it arrived';

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

COMMENT ON TABLE draftsman.refused_answers IS
    'Number of refused answers that `job_answers` does not store.';
COMMENT ON COLUMN draftsman.refused_answers.job IS 'job of the question';
COMMENT ON COLUMN draftsman.refused_answers.question IS 'its ordinal';
COMMENT ON COLUMN draftsman.refused_answers.answers IS 'the number';
COMMENT ON COLUMN draftsman.refused_answers.last_voter IS 'the voter of the last answer';
COMMENT ON COLUMN draftsman.refused_answers.last_reason IS 'the reason of its refusal';
COMMENT ON COLUMN draftsman.refused_answers.last_at IS 'its time';

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

COMMENT ON TABLE draftsman.approval_tokens IS
    'Single-use tokens that decide an approval in the name of an approver.';
COMMENT ON COLUMN draftsman.approval_tokens.token_hash IS 'SHA-256; the token itself is not stored';
COMMENT ON COLUMN draftsman.approval_tokens.job IS 'job of the approval';
COMMENT ON COLUMN draftsman.approval_tokens.question IS 'its ordinal';
COMMENT ON COLUMN draftsman.approval_tokens.approver IS
    'the approver; a newer token replaces the older token';
COMMENT ON COLUMN draftsman.approval_tokens.minted_by IS
    'the approver, or `system` for a delivery; other tokens are invalid';
COMMENT ON COLUMN draftsman.approval_tokens.used_at IS 'when it was used';

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

COMMENT ON TABLE draftsman.pending_decisions IS
    'An answer or a decision of a question, or the cancel of a job, in its undo window. Applying '
    'or undoing it deletes the row.';
COMMENT ON COLUMN draftsman.pending_decisions.id IS 'its number';
COMMENT ON COLUMN draftsman.pending_decisions.job IS 'its job';
COMMENT ON COLUMN draftsman.pending_decisions.question IS
    'the question; NULL: the cancel of the job';
COMMENT ON COLUMN draftsman.pending_decisions.source IS 'the channel that it came from';
COMMENT ON COLUMN draftsman.pending_decisions.source_event_id IS
    'the id of the key or click in that channel, which the answer has as well';
COMMENT ON COLUMN draftsman.pending_decisions.actor_id IS 'the id of the person in the channel';
COMMENT ON COLUMN draftsman.pending_decisions.actor_display_name IS
    'the name of the person in the channel';
COMMENT ON COLUMN draftsman.pending_decisions.voter IS 'the person, or `channel:id` if unknown';
COMMENT ON COLUMN draftsman.pending_decisions.is_owner IS
    'whether it is the owner of an embedded database';
COMMENT ON COLUMN draftsman.pending_decisions.decision IS
    'the fields of the response, or `force` and `reason` of a cancel';
COMMENT ON COLUMN draftsman.pending_decisions.payload IS
    'the payload of the answer; NULL: a cancel';
COMMENT ON COLUMN draftsman.pending_decisions.created_at IS 'when it was made';
COMMENT ON COLUMN draftsman.pending_decisions.applies_at IS
    'the end of the undo window, at which it takes effect';
COMMENT ON COLUMN draftsman.pending_decisions.session_role IS
    'the kind and the name of the role of the session that decided';
COMMENT ON COLUMN draftsman.pending_decisions.taken_by IS 'the transaction that applies it';

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

COMMENT ON TABLE draftsman.identical_questions IS
    'Open questions that are answered together with the identical questions of other jobs '
    '(docs/questions.md).';
COMMENT ON COLUMN draftsman.identical_questions.id IS 'the order in which they were asked';
COMMENT ON COLUMN draftsman.identical_questions.digest IS
    'SHA-256 of the repository and of all that people see of the question';
COMMENT ON COLUMN draftsman.identical_questions.job IS 'the job';
COMMENT ON COLUMN draftsman.identical_questions.question IS 'its question';
COMMENT ON COLUMN draftsman.identical_questions.shown IS
    'whether it has messages; a target that shows an identical question of the same requester '
    'gets none';

--   identical_questions_digest  the questions that are identical to another
--   identical_questions_shown   those of them that have messages
CREATE UNIQUE INDEX identical_questions_digest ON draftsman.identical_questions (digest, id);
CREATE INDEX identical_questions_shown ON draftsman.identical_questions (digest, id) WHERE shown;
