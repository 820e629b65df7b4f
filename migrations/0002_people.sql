-- People, their identities, groups and roles.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0002_people') AS applied \gset
\if :applied \echo '0002_people is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0002_people');

-- Where requests and answers come from.
CREATE TYPE draftsman.channel AS ENUM (
    'slack', 'trello', 'tui', 'cli', 'api', 'mcp', 'schedule', 'internal', 'forge', 'web',
    'pager');

CREATE TABLE draftsman.people (
    name        text PRIMARY KEY CHECK (name <> ''),
    roles       text[] NOT NULL DEFAULT '{}'
                CHECK (roles <@ '{invoker,responder,approver,operator}'::text[]),
    quiet_hours text CHECK (quiet_hours <> ''),
    timezone    text CHECK (timezone <> ''),
    working_hours text CHECK (working_hours <> ''),
    holidays    text CHECK (holidays <> ''),
    updated_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    updated_by  text NOT NULL DEFAULT session_user
);

-- Identities that the directory assigns. For `cli` the id is the login name, on a server the
-- database role; the dashboard and the API use the same identity. For `forge` it is the name of the
-- forge in the configuration and a login in lower case: `github:anna`. For `pager` it is the name of
-- the pager and a user id or an e-mail address in lower case, `ops:plh1hkv`; a person may have several.
CREATE TABLE draftsman.person_identities (
    channel      draftsman.channel NOT NULL
                 CHECK (channel IN ('cli', 'slack', 'trello', 'forge', 'pager')),
    external_id  text NOT NULL CHECK (external_id <> ''),
    person       text NOT NULL REFERENCES draftsman.people ON DELETE CASCADE,
    PRIMARY KEY (channel, external_id)
);
CREATE UNIQUE INDEX person_identities_unique ON draftsman.person_identities (person, channel)
    WHERE channel <> 'pager';

-- The account at the forge that first acted under a login of a person: a login can be renamed, and then
-- taken by another account. `login` is the external id of the identity.
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
    created_at       timestamptz NOT NULL DEFAULT draftsman.now(),
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

-- Replaces the whole directory. Only the owner of the schema may write these tables. Processes that
-- start at the same time save one after another: each would insert the same rows.
CREATE FUNCTION draftsman.save_people(directory jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE draftsman.people IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM draftsman.people_groups;
    DELETE FROM draftsman.person_identities;
    DELETE FROM draftsman.people
     WHERE name NOT IN (SELECT p ->> 'name' FROM jsonb_array_elements(directory -> 'people') p);
    INSERT INTO draftsman.people AS old (name, roles, quiet_hours, timezone, working_hours, holidays)
    SELECT p ->> 'name',
           ARRAY(SELECT jsonb_array_elements_text(p -> 'roles')), p ->> 'quiet_hours',
           p ->> 'timezone', p ->> 'working_hours', p ->> 'holidays'
      FROM jsonb_array_elements(directory -> 'people') p
        ON CONFLICT (name) DO UPDATE
           SET roles = excluded.roles, quiet_hours = excluded.quiet_hours,
               timezone = excluded.timezone, working_hours = excluded.working_hours,
               holidays = excluded.holidays,
               updated_at = excluded.updated_at, updated_by = excluded.updated_by
         WHERE (old.roles, old.quiet_hours, old.timezone, old.working_hours, old.holidays)
               IS DISTINCT FROM (excluded.roles, excluded.quiet_hours, excluded.timezone,
                                 excluded.working_hours, excluded.holidays);
    INSERT INTO draftsman.person_identities (channel, external_id, person)
    SELECT i.key::draftsman.channel, i.value, p ->> 'name'
      FROM jsonb_array_elements(directory -> 'people') p
     CROSS JOIN LATERAL (
           SELECT key, value FROM jsonb_each_text(p -> 'ids')
            UNION ALL
           SELECT 'pager', value FROM jsonb_array_elements_text(coalesce(p -> 'pagers', '[]'))) i;
    INSERT INTO draftsman.people_groups (name, member)
    SELECT g.key, m FROM jsonb_each(directory -> 'groups') g
     CROSS JOIN LATERAL (SELECT DISTINCT jsonb_array_elements_text(g.value) AS m) w;
    INSERT INTO draftsman.approval_policy (self_approval)
    VALUES ((directory ->> 'self_approval')::boolean)
        ON CONFLICT (single) DO UPDATE SET self_approval = excluded.self_approval;
END $$;

-- Lookups -------------------------------------------------------------------------------------

-- The person of an identity; NULL when it is unknown. In the web inbox it is the person's name.
CREATE FUNCTION draftsman.person_of(channel text, id text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.name
      FROM (SELECT CASE WHEN $1 IN ('tui', 'api') THEN 'cli' ELSE $1 END AS channel) c
     CROSS JOIN LATERAL (
           SELECT i.person FROM draftsman.person_identities i
            WHERE i.channel::text = c.channel AND i.external_id = $2
            UNION ALL
           SELECT l.person FROM draftsman.identity_links l
            WHERE l.channel::text = c.channel AND l.external_id = $2
              AND c.channel NOT IN ('cli', 'web')
            UNION ALL
           SELECT $2 WHERE c.channel = 'web'
            LIMIT 1) f
      JOIN draftsman.people p ON p.name = f.person
$$;

-- The account of a person in Slack, without its workspace; NULL without any.
CREATE FUNCTION draftsman.slack_account(person text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT split_part(f.id, '@', 1)
      FROM (SELECT i.external_id AS id FROM draftsman.person_identities i
             WHERE i.channel = 'slack' AND i.person = $1
             UNION ALL
            SELECT l.external_id FROM draftsman.identity_links l
             WHERE l.channel = 'slack' AND l.person = $1) f
     LIMIT 1
$$;

CREATE FUNCTION draftsman.has_role(person text, role text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT $2 = ANY (p.roles) FROM draftsman.people p WHERE p.name = $1), false)
$$;

-- Whether a list of people and groups includes a person. A group hides a person of the same name.
CREATE FUNCTION draftsman.list_includes(person text, names text[]) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM draftsman.people_groups g
                    WHERE g.name = ANY ($2) AND g.member = $1)
        OR ($1 = ANY ($2) AND NOT EXISTS (SELECT FROM draftsman.people_groups g WHERE g.name = $1))
$$;

-- The person of an actor (`slack:U012`) that the session may act as.
CREATE FUNCTION draftsman.person_of_actor(actor text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN draftsman.may_act_as($1) THEN draftsman.person_of(
           split_part($1, ':', 1), substr($1, strpos($1, ':') + 1)) END
$$;

-- Raises an error unless the actor may act in this session and has the role or requested the job.
-- A worker that applies a decision has the rights of its person, and no others.
CREATE FUNCTION draftsman.require_control(job bigint, actor text, role text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text;
BEGIN
    IF draftsman.session_kind() = 'owner'
       OR (draftsman.session_kind() = 'worker' AND draftsman.may_act_as(actor)
           AND NOT draftsman.applies_decision(actor)) THEN
        RETURN;
    END IF;
    person := draftsman.person_of_actor(actor);
    IF NOT draftsman.may_act_as(actor) OR NOT (
        draftsman.has_role(person, role) OR EXISTS (
            SELECT FROM draftsman.job_requests j
             WHERE j.number = job AND j.invoker_id IN (person, actor))) THEN
        PERFORM draftsman.deny_access(format('%s may not control D-%s', actor, job));
    END IF;
END $$;

-- Linking a chat account: the bot issues a code in the chat, the person redeems it in the
-- terminal.
CREATE FUNCTION draftsman.issue_link_code(
    channel draftsman.channel, external_id text, display_name text, code_hash text, seconds float8
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND NOT (draftsman.session_kind() = 'bot'
       AND draftsman.may_act_as($1 || ':' || $2)) THEN
        PERFORM draftsman.deny_access(format('%s cannot offer a code to %s', session_user, $2));
    END IF;
    INSERT INTO draftsman.identity_links AS l
           (channel, external_id, display_name, code_hash, code_expires_at)
    VALUES ($1, $2, $3, $4, draftsman.now() + make_interval(secs => $5))
        ON CONFLICT ON CONSTRAINT identity_links_pkey
           DO UPDATE SET display_name = excluded.display_name, code_hash = excluded.code_hash,
                         code_expires_at = excluded.code_expires_at;
END $$;

CREATE FUNCTION draftsman.link_identity(code_hash text, person text, actor text) RETURNS TABLE (
    channel draftsman.channel, external_id text, display_name text, person_name text,
    linked_by text, linked_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.session_kind() = 'person'
       AND draftsman.person_of('cli', session_user::text) = $2
       AND draftsman.may_act_as($3)) IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('%s cannot link to %s', session_user, $2));
    END IF;
    RETURN QUERY
    UPDATE draftsman.identity_links AS l
       SET person = $2, linked_by = $3, linked_at = draftsman.now(), code_hash = NULL,
           code_expires_at = NULL
     WHERE l.code_hash = $1 AND l.code_expires_at > draftsman.now()
    RETURNING l.channel, l.external_id, l.display_name, l.person, l.linked_by, l.linked_at;
END $$;

CREATE FUNCTION draftsman.unlink_identity(channel draftsman.channel, external_id text)
RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    whose text := CASE WHEN $1 = 'forge' THEN draftsman.person_of('forge', $2)
                  ELSE (SELECT l.person FROM draftsman.identity_links l
                         WHERE l.channel = $1 AND l.external_id = $2) END;
    me    text := draftsman.person_of('cli', session_user::text);
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.session_kind() = 'person'
       AND (me = whose OR draftsman.has_role(me, 'operator'))) IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('%s cannot unlink %s', session_user, $2));
    END IF;
    IF $1 = 'forge' THEN
        RETURN QUERY DELETE FROM draftsman.forge_accounts a WHERE a.login = $2
                     RETURNING coalesce(whose, a.login);
        RETURN;
    END IF;
    RETURN QUERY
    UPDATE draftsman.identity_links AS l
       SET person = NULL, linked_by = NULL, linked_at = NULL, code_hash = NULL,
           code_expires_at = NULL
     WHERE l.channel = $1 AND l.external_id = $2 AND l.person IS NOT NULL
    RETURNING whose;
END $$;

-- Binds the login of a person to the account that acts under it, at its first use; returns the id of the
-- account to which it is bound.
CREATE FUNCTION draftsman.bind_account(login text, account_id text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.session_kind() = 'bot'
       AND draftsman.person_of('forge', $1) IS NOT NULL) IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('%s cannot bind %s', session_user, $1));
    END IF;
    INSERT INTO draftsman.forge_accounts (login, account_id) VALUES ($1, $2) ON CONFLICT DO NOTHING;
    RETURN (SELECT a.account_id FROM draftsman.forge_accounts a WHERE a.login = $1);
END $$;
