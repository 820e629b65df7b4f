-- Who may do what, kept beside the jobs: people, their identities, groups, and who may use a token.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0016_rights');

-- Only the approver, or the delivery that is addressed to the approver, mints a token. Who minted the
-- unused tokens of before is unknown: they no longer count.
ALTER TABLE draftsman.approval_tokens ADD COLUMN minted_by text NOT NULL DEFAULT '';
UPDATE draftsman.approval_tokens SET minted_by = approver WHERE used_at IS NOT NULL;

-- Refused answers beyond those that are kept one by one: counted, so that a flood of them does not
-- grow the tables.
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

CREATE TABLE draftsman.people (
    name        text PRIMARY KEY CHECK (name <> ''),
    roles       text[] NOT NULL DEFAULT '{}'
                CHECK (roles <@ '{invoker,responder,approver,operator}'::text[]),
    quiet       text CHECK (quiet <> ''),
    timezone    text CHECK (timezone <> ''),
    updated_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    updated_by  text NOT NULL DEFAULT session_user
);

-- The id of a person in a channel; of `cli` it is the login, on a server the database role, and the
-- dashboard knows people by it too.
CREATE TABLE draftsman.person_identities (
    channel      draftsman.channel NOT NULL CHECK (channel IN ('cli', 'slack', 'trello')),
    external_id  text NOT NULL CHECK (external_id <> ''),
    person       text NOT NULL REFERENCES draftsman.people ON DELETE CASCADE,
    PRIMARY KEY (channel, external_id),
    CONSTRAINT person_identities_once UNIQUE (person, channel)
);

CREATE TABLE draftsman.people_groups (
    name    text NOT NULL CHECK (name <> ''),
    member  text NOT NULL REFERENCES draftsman.people ON DELETE CASCADE,
    PRIMARY KEY (name, member)
);

-- At most one row; without it every switch is off.
CREATE TABLE draftsman.approval_policy (
    single         boolean PRIMARY KEY DEFAULT true CHECK (single),
    self_approval  boolean NOT NULL DEFAULT false
);
