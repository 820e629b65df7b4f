-- People, their identities, groups and roles; links and sessions of the web inbox.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0002_people') AS applied \gset
\if :applied \echo '0002_people is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0002_people');

-- Where requests and answers come from.
CREATE TYPE draftsman.channel AS ENUM (
    'slack', 'trello', 'tui', 'cli', 'api', 'mcp', 'schedule', 'internal', 'forge', 'web',
    'pager');

CREATE TABLE draftsman.people (
    name           text PRIMARY KEY CHECK (name <> ''),
    roles          text[] NOT NULL DEFAULT '{}'
                   CHECK (roles <@ '{invoker,responder,approver,operator}'::text[]),
    quiet_hours    text CHECK (quiet_hours <> ''),
    timezone       text CHECK (timezone <> ''),
    working_hours  text CHECK (working_hours <> ''),
    holidays       text CHECK (holidays <> ''),
    updated_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    updated_by     text NOT NULL DEFAULT session_user
);

-- Identities that the directory assigns. For `cli` the id is the login name, on a server the
-- database role; the dashboard and the API use the same identity. For `forge` it is the name of the
-- forge in the configuration and a login in lower case: `github:anna`. For `pager` it is the name
-- of the pager and a user id or an e-mail address in lower case, `ops:plh1hkv`; a person may have
-- several.
CREATE TABLE draftsman.person_identities (
    channel      draftsman.channel NOT NULL
                 CHECK (channel IN ('cli', 'slack', 'trello', 'forge', 'pager')),
    external_id  text NOT NULL CHECK (external_id <> ''),
    person       text NOT NULL REFERENCES draftsman.people ON DELETE CASCADE,
    PRIMARY KEY (channel, external_id)
);
CREATE UNIQUE INDEX person_identities_unique ON draftsman.person_identities (person, channel)
    WHERE channel <> 'pager';

-- The account at the forge that first acted under a login of a person: a login can be renamed, and
-- then taken by another account. `login` is the external id of the identity.
CREATE TABLE draftsman.forge_accounts (
    login       text PRIMARY KEY CHECK (login <> ''),
    account_id  text NOT NULL CHECK (account_id <> ''),
    bound_at    timestamptz NOT NULL DEFAULT draftsman.now()
);

-- Chat identities that people linked themselves, with a code that works once.
CREATE TABLE draftsman.identity_links (
    channel          draftsman.channel NOT NULL,
    external_id      text NOT NULL CHECK (external_id <> ''),
    display_name     text NOT NULL DEFAULT '',
    code_hash        text,
    code_expires_at  timestamptz,
    person           text CHECK (person <> ''),
    linked_by        text,
    linked_at        timestamptz,
    PRIMARY KEY (channel, external_id),
    CONSTRAINT identity_links_code UNIQUE (code_hash),
    CONSTRAINT identity_links_expires CHECK ((code_hash IS NULL) = (code_expires_at IS NULL)),
    CONSTRAINT identity_links_linked CHECK ((person IS NULL) = (linked_at IS NULL)
        AND (person IS NULL) = (linked_by IS NULL))
);

CREATE TABLE draftsman.people_groups (
    name    text NOT NULL CHECK (name <> ''),
    member  text NOT NULL REFERENCES draftsman.people ON DELETE CASCADE,
    PRIMARY KEY (name, member)
);

-- At most a single row; without it every switch is off.
CREATE TABLE draftsman.approval_policy (
    single         boolean PRIMARY KEY DEFAULT true CHECK (single),
    self_approval  boolean NOT NULL DEFAULT false
);

-- Web inbox ---------------------------------------------------------------------------------------

-- A link that signs its person in once; a new link replaces the previous link of the person.
CREATE TABLE draftsman.web_links (
    person      text PRIMARY KEY CHECK (person <> ''),
    digest      text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    expires_at  timestamptz NOT NULL,
    CONSTRAINT web_links_digest UNIQUE (digest),
    CONSTRAINT web_links_expires CHECK (expires_at > created_at)
);

CREATE TABLE draftsman.web_sessions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    person      text NOT NULL CHECK (person <> ''),
    method      text NOT NULL CHECK (method IN ('link', 'proxy', 'oidc')),
    digest      text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    user_agent  text NOT NULL DEFAULT '' CHECK (length(user_agent) <= 300),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    expires_at  timestamptz NOT NULL,
    CONSTRAINT web_sessions_digest UNIQUE (digest),
    CONSTRAINT web_sessions_expires CHECK (expires_at > created_at)
);
CREATE INDEX web_sessions_person ON draftsman.web_sessions (person, id);
