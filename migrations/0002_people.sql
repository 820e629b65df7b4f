-- Channels; people, their identities, groups and roles; sign-in links and sessions of browsers.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0002_people') AS applied \gset
\if :applied \echo '0002_people is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0002_people');

-- Where requests and answers come from, and messages go to.
CREATE DOMAIN draftsman.channel AS text COLLATE "C" CHECK (VALUE ~ '^[a-z][a-z0-9_-]{0,39}$');

-- What statements ask instead of comparing names: the channels of the core, and those that packages
-- declare (declare_channel()). `accounts` is how an id in a channel names its
-- person: an `account` of the directory, a `login` as in `cli`, or the name of the `person`. A row
-- stays when its package is removed: others keep the name as history.
CREATE TABLE draftsman.channels (
    name             draftsman.channel PRIMARY KEY,
    package          text NOT NULL DEFAULT 'draftsman' CHECK (package <> ''),
    version          text,
    accounts         text CHECK (accounts IN ('account', 'login', 'person')),
    has_bot          boolean NOT NULL DEFAULT false,
    is_chat          boolean NOT NULL DEFAULT false,
    takes_answers    boolean NOT NULL DEFAULT false,
    has_alerts       boolean NOT NULL DEFAULT false,
    is_evidence      boolean NOT NULL DEFAULT false,
    changes_rules    boolean NOT NULL DEFAULT false,
    shows_changes    boolean NOT NULL DEFAULT false,
    binds_accounts   boolean NOT NULL DEFAULT false,
    person_target    text,
    serves_targets   boolean NOT NULL DEFAULT false,
    CONSTRAINT channels_person_target CHECK (person_target IS NULL
        OR accounts IS NOT DISTINCT FROM 'account')
);

COMMENT ON TABLE draftsman.channels IS
    'Channels: where requests and answers come from, and messages go to. Each package declares its '
    'own.';
COMMENT ON COLUMN draftsman.channels.name IS 'the name in targets, sources and identities';
COMMENT ON COLUMN draftsman.channels.package IS 'the package that declares it';
COMMENT ON COLUMN draftsman.channels.version IS
    'the version of the package that was migrated last; NULL: a channel of the core';
COMMENT ON COLUMN draftsman.channels.accounts IS
    'how an id names its person: `account` of the directory, `login` as in `cli`, `person` by '
    'name; NULL: not at all';
COMMENT ON COLUMN draftsman.channels.has_bot IS 'whether its people act by the role of bots';
COMMENT ON COLUMN draftsman.channels.is_chat IS
    'whether it is a chat: its messages show each step of a run';
COMMENT ON COLUMN draftsman.channels.takes_answers IS
    'whether people answer where its messages are, which are edited';
COMMENT ON COLUMN draftsman.channels.has_alerts IS
    'whether a question there is an alert, which is edited only when the question closes';
COMMENT ON COLUMN draftsman.channels.is_evidence IS
    'whether a person decides there, so that a decision counts for a permission rule';
COMMENT ON COLUMN draftsman.channels.changes_rules IS
    'whether its bot lets operators decide on permission rules';
COMMENT ON COLUMN draftsman.channels.shows_changes IS
    'whether its messages are beside the pull request, so that its patch is no file of theirs';
COMMENT ON COLUMN draftsman.channels.binds_accounts IS
    'whether a name there can be taken by another account, so that the first is remembered';
COMMENT ON COLUMN draftsman.channels.person_target IS
    'regular expression of the part of an account that is the target of its person; NULL: its '
    'targets are no people';
COMMENT ON COLUMN draftsman.channels.serves_targets IS
    'whether a worker sends only to the targets in its configuration';

INSERT INTO draftsman.channels (name, accounts, is_evidence, serves_targets)
VALUES ('log', NULL, false, false),
       ('webhook', NULL, false, true),
       ('tui', 'login', true, false),
       ('cli', 'login', true, false),
       ('api', 'login', false, false),
       ('mcp', NULL, false, false),
       ('schedule', NULL, false, false),
       ('internal', NULL, false, false);

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

COMMENT ON TABLE draftsman.people IS
    'People and their roles. Only the owner of the schema writes here: `draftsman people`.';
COMMENT ON COLUMN draftsman.people.name IS 'the name in questions, groups and approvals';
COMMENT ON COLUMN draftsman.people.roles IS '`invoker`, `responder`, `approver`, `operator`';
COMMENT ON COLUMN draftsman.people.quiet_hours IS
    'quiet hours without interruptions, such as `22:00-07:00`; NULL: the default of questions';
COMMENT ON COLUMN draftsman.people.timezone IS 'time zone; NULL: the default of questions';
COMMENT ON COLUMN draftsman.people.working_hours IS
    'working hours, such as `Mon-Fri 09:00-17:00`; NULL: the default of questions';
COMMENT ON COLUMN draftsman.people.holidays IS
    'table of `[holidays]` in the configuration; NULL: the default of questions';
COMMENT ON COLUMN draftsman.people.updated_at IS 'when this row last changed';
COMMENT ON COLUMN draftsman.people.updated_by IS 'the database role that changed it';

-- Identities that the directory assigns. For `cli` the id is the login name, on a server the
-- database role; the dashboard and the API use the same identity. The form of other ids is that of
-- the channel, in lower case if it has several: `ops:anna`. The declaration of a channel decides
-- whether a person may have several; messages go to the first.
CREATE TABLE draftsman.person_identities (
    channel      draftsman.channel NOT NULL REFERENCES draftsman.channels,
    external_id  text NOT NULL CHECK (external_id <> ''),
    person       text NOT NULL REFERENCES draftsman.people ON DELETE CASCADE,
    place        int NOT NULL DEFAULT 1 CHECK (place > 0),
    PRIMARY KEY (channel, external_id)
);

COMMENT ON TABLE draftsman.person_identities IS
    'Identities of people: a login or database role, or the account in a channel.';
COMMENT ON COLUMN draftsman.person_identities.channel IS
    'the channel; the dashboard uses the id of `cli`';
COMMENT ON COLUMN draftsman.person_identities.external_id IS 'the id in that channel';
COMMENT ON COLUMN draftsman.person_identities.person IS 'its person';
COMMENT ON COLUMN draftsman.person_identities.place IS
    'its place among the accounts of the person: messages go to the first of a channel';

CREATE INDEX person_identities_person ON draftsman.person_identities (person, channel);

-- The account that first acted under an identity of a person, in a channel where its name can be
-- changed, and then be taken by another account.
CREATE TABLE draftsman.bound_accounts (
    channel      draftsman.channel NOT NULL REFERENCES draftsman.channels,
    external_id  text NOT NULL CHECK (external_id <> ''),
    account_id   text NOT NULL CHECK (account_id <> ''),
    bound_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (channel, external_id)
);

COMMENT ON TABLE draftsman.bound_accounts IS
    'The account that first acted under an identity of a person whose name can be taken by '
    'another.';
COMMENT ON COLUMN draftsman.bound_accounts.channel IS 'the channel';
COMMENT ON COLUMN draftsman.bound_accounts.external_id IS
    'the identity, as in person_identities';
COMMENT ON COLUMN draftsman.bound_accounts.account_id IS
    'the channel''s id of the account; another account under the name is refused';
COMMENT ON COLUMN draftsman.bound_accounts.bound_at IS 'when it first acted';

-- Chat identities that people linked themselves, with a code that works once.
CREATE TABLE draftsman.identity_links (
    channel          draftsman.channel NOT NULL REFERENCES draftsman.channels,
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

COMMENT ON TABLE draftsman.identity_links IS
    'Identities in a channel, linked to a person with a single-use code.';
COMMENT ON COLUMN draftsman.identity_links.channel IS 'the channel';
COMMENT ON COLUMN draftsman.identity_links.external_id IS 'the channel''s own id';
COMMENT ON COLUMN draftsman.identity_links.display_name IS
    'the name in that channel, when the code was requested';
COMMENT ON COLUMN draftsman.identity_links.code_hash IS
    'SHA-256 of a code that was not used so far';
COMMENT ON COLUMN draftsman.identity_links.code_expires_at IS 'when the code expires';
COMMENT ON COLUMN draftsman.identity_links.person IS 'the linked person; NULL: none so far';
COMMENT ON COLUMN draftsman.identity_links.linked_by IS 'the person who entered the code';
COMMENT ON COLUMN draftsman.identity_links.linked_at IS 'when it was linked';

CREATE TABLE draftsman.people_groups (
    name    text NOT NULL CHECK (name <> ''),
    member  text NOT NULL REFERENCES draftsman.people ON DELETE CASCADE,
    PRIMARY KEY (name, member)
);

COMMENT ON TABLE draftsman.people_groups IS 'Groups of people, for approvals and escalation.';
COMMENT ON COLUMN draftsman.people_groups.name IS 'name of the group';
COMMENT ON COLUMN draftsman.people_groups.member IS 'a person in it';

-- At most a single row; without it every switch is off.
CREATE TABLE draftsman.approval_policy (
    single         boolean PRIMARY KEY DEFAULT true CHECK (single),
    self_approval  boolean NOT NULL DEFAULT false
);

COMMENT ON TABLE draftsman.approval_policy IS
    'Switches of the policy, in at most a single row; without it they are off.';
COMMENT ON COLUMN draftsman.approval_policy.single IS 'limits the table to a single row';
COMMENT ON COLUMN draftsman.approval_policy.self_approval IS
    'whether requesters may approve their own jobs';

-- Browsers ----------------------------------------------------------------------------------------

-- A link that signs its person in once; a new link replaces the previous link of the person.
CREATE TABLE draftsman.sign_in_links (
    person      text PRIMARY KEY CHECK (person <> ''),
    digest      text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    expires_at  timestamptz NOT NULL,
    CONSTRAINT sign_in_links_digest UNIQUE (digest),
    CONSTRAINT sign_in_links_expires CHECK (expires_at > created_at)
);

COMMENT ON TABLE draftsman.sign_in_links IS
    'Links that sign a person in with a browser, once (`draftsman link --web`). Only processes '
    'that serve pages can use them.';
COMMENT ON COLUMN draftsman.sign_in_links.person IS 'the person; each has a single link';
COMMENT ON COLUMN draftsman.sign_in_links.digest IS 'SHA-256 of the token in the URL';
COMMENT ON COLUMN draftsman.sign_in_links.created_at IS 'when it was created';
COMMENT ON COLUMN draftsman.sign_in_links.expires_at IS 'until when it can be used';

CREATE TABLE draftsman.browser_sessions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    person      text NOT NULL CHECK (person <> ''),
    method      text NOT NULL CHECK (method IN ('link', 'proxy', 'oidc')),
    digest      text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    user_agent  text NOT NULL DEFAULT '' CHECK (length(user_agent) <= 300),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    expires_at  timestamptz NOT NULL,
    CONSTRAINT browser_sessions_digest UNIQUE (digest),
    CONSTRAINT browser_sessions_expires CHECK (expires_at > created_at)
);

COMMENT ON TABLE draftsman.browser_sessions IS
    'Browsers in which people are signed in; `draftsman people sign-out` ends them.';
COMMENT ON COLUMN draftsman.browser_sessions.id IS 'the number in lists';
COMMENT ON COLUMN draftsman.browser_sessions.person IS 'the person';
COMMENT ON COLUMN draftsman.browser_sessions.method IS
    '`link`, `proxy` or `oidc`: how the person signed in';
COMMENT ON COLUMN draftsman.browser_sessions.digest IS 'SHA-256 of the token in the cookie';
COMMENT ON COLUMN draftsman.browser_sessions.user_agent IS 'the name that the browser gave';
COMMENT ON COLUMN draftsman.browser_sessions.created_at IS 'when the person signed in';
COMMENT ON COLUMN draftsman.browser_sessions.expires_at IS 'when the person has to sign in again';

CREATE INDEX browser_sessions_person ON draftsman.browser_sessions (person, id);
