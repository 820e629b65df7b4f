-- The directory of people, their identities and roles, and their sessions in browsers.

INSERT INTO draftsman.schema_functions (name) VALUES ('people')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Directory ---------------------------------------------------------------------------------------

-- Replaces the whole directory. Only the owner of the schema may write these tables. Processes that
-- start at the same time save one after another: each would insert the same rows.
CREATE OR REPLACE FUNCTION draftsman.save_people(directory jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM draftsman.refuse('DM004', 'people.undeclared_channel', jsonb_build_object(
                'channel', a.value ->> 0, 'person', p ->> 'name'))
       FROM jsonb_array_elements(directory -> 'people') p
      CROSS JOIN LATERAL jsonb_array_elements(p -> 'accounts') a
      WHERE NOT EXISTS (SELECT FROM draftsman.channels c WHERE c.name = a.value ->> 0)
      LIMIT 1;
    LOCK TABLE draftsman.people IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM draftsman.people_groups;
    DELETE FROM draftsman.person_identities;
    DELETE FROM draftsman.people
     WHERE name NOT IN (SELECT p ->> 'name' FROM jsonb_array_elements(directory -> 'people') p);
    INSERT INTO draftsman.people AS old
           (name, roles, quiet_hours, timezone, working_hours, holidays)
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
    INSERT INTO draftsman.person_identities (channel, external_id, person, place)
    SELECT a.value ->> 0, a.value ->> 1, p ->> 'name', a.place
      FROM jsonb_array_elements(directory -> 'people') p
     CROSS JOIN LATERAL jsonb_array_elements(p -> 'accounts') WITH ORDINALITY a (value, place);
    INSERT INTO draftsman.people_groups (name, member)
    SELECT g.key, m FROM jsonb_each(directory -> 'groups') g
     CROSS JOIN LATERAL (SELECT DISTINCT jsonb_array_elements_text(g.value) AS m) w;
    INSERT INTO draftsman.approval_policy (self_approval)
    VALUES ((directory ->> 'self_approval')::boolean)
        ON CONFLICT (single) DO UPDATE SET self_approval = excluded.self_approval;
END $$;

-- Channels ----------------------------------------------------------------------------------------

-- Adds the channel of a package, or changes it; a channel of another package is left alone.
CREATE OR REPLACE FUNCTION draftsman.declare_channel(name text, package text, facts jsonb)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO draftsman.channels AS c
           (name, package, accounts, has_bot, is_chat, takes_answers, has_alerts, is_evidence,
            changes_rules, shows_changes, binds_accounts, person_target, serves_targets)
    SELECT declare_channel.name, declare_channel.package, f.*
      FROM jsonb_to_record(facts) AS f (
           accounts text, has_bot boolean, is_chat boolean, takes_answers boolean,
           has_alerts boolean, is_evidence boolean, changes_rules boolean, shows_changes boolean,
           binds_accounts boolean, person_target text, serves_targets boolean)
        ON CONFLICT ON CONSTRAINT channels_pkey DO UPDATE
           SET accounts = excluded.accounts, has_bot = excluded.has_bot,
               is_chat = excluded.is_chat, takes_answers = excluded.takes_answers,
               has_alerts = excluded.has_alerts, is_evidence = excluded.is_evidence,
               changes_rules = excluded.changes_rules, shows_changes = excluded.shows_changes,
               binds_accounts = excluded.binds_accounts, person_target = excluded.person_target,
               serves_targets = excluded.serves_targets
         WHERE c.package = excluded.package;
    IF NOT FOUND THEN
        PERFORM draftsman.refuse('DM003', 'database.channel_taken', (
            SELECT jsonb_build_object('channel', c.name, 'package', c.package)
              FROM draftsman.channels c WHERE c.name = declare_channel.name));
    END IF;
END $$;

-- Identities and roles ----------------------------------------------------------------------------

-- The person of an identity; NULL when it is unknown. In some channels the id is the person's name.
CREATE OR REPLACE FUNCTION draftsman.person_of(channel text, id text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.name
      FROM draftsman.channels c
     CROSS JOIN LATERAL (
           SELECT i.person FROM draftsman.person_identities i
            WHERE i.channel = CASE c.accounts WHEN 'account' THEN c.name WHEN 'login' THEN 'cli' END
              AND i.external_id = id
            UNION ALL
           SELECT l.person FROM draftsman.identity_links l
            WHERE c.accounts = 'account' AND l.channel = c.name AND l.external_id = id
            UNION ALL
           SELECT id WHERE c.accounts = 'person'
            LIMIT 1) f
      JOIN draftsman.people p ON p.name = f.person
     WHERE c.name = person_of.channel
$$;

-- The person whom a target reaches, and no other; NULL if it is a place of several.
CREATE OR REPLACE FUNCTION draftsman.person_of_target(channel text, target text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.person_of(c.name, target) FROM draftsman.channels c
     WHERE c.name = person_of_target.channel AND c.person_target IS NOT NULL
$$;

-- The target that reaches a person: the first account in the first channel with such targets, chats
-- before others. No row without any.
CREATE OR REPLACE FUNCTION draftsman.target_of_person(person text)
RETURNS TABLE (channel draftsman.channel, target text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.name, substring(f.id FROM c.person_target)
      FROM draftsman.channels c
     CROSS JOIN LATERAL (
           SELECT i.external_id AS id, i.place FROM draftsman.person_identities i
            WHERE i.channel = c.name AND i.person = target_of_person.person
            UNION ALL
           SELECT l.external_id, NULL FROM draftsman.identity_links l
            WHERE l.channel = c.name AND l.person = target_of_person.person) f
     WHERE c.person_target IS NOT NULL
     ORDER BY c.is_chat DESC, c.name, f.place, f.id
     LIMIT 1
$$;

CREATE OR REPLACE FUNCTION draftsman.has_role(person text, role text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT role = ANY (p.roles) FROM draftsman.people p WHERE p.name = person),
                    false)
$$;

-- Whether this is the owner's session, or one of these kinds that may act as the actor, whose
-- person has the role (NULL: any role, or none).
CREATE OR REPLACE FUNCTION draftsman.has_right(actor text, role text, kinds text[]) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.session_kind() = 'owner' OR (
               draftsman.session_kind() = ANY (kinds) AND draftsman.may_act_as(actor)
               AND (role IS NULL OR draftsman.has_role(draftsman.person_of_actor(actor), role)))
           IS TRUE
$$;

-- Whether a person has a role, and an account in a chat, for which the bots act.
CREATE OR REPLACE FUNCTION draftsman.acts_in_chat(person text, role text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.has_role(person, role) AND EXISTS (
           SELECT FROM draftsman.channels c
            WHERE c.is_chat AND (
                  EXISTS (SELECT FROM draftsman.person_identities i
                           WHERE i.person = acts_in_chat.person AND i.channel = c.name)
                  OR EXISTS (SELECT FROM draftsman.identity_links l
                              WHERE l.person = acts_in_chat.person AND l.channel = c.name)))
$$;

-- Whether a list of people and groups includes a person. A group hides a person of the same name.
CREATE OR REPLACE FUNCTION draftsman.list_includes(person text, names text[]) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM draftsman.people_groups g
                    WHERE g.name = ANY (names) AND g.member = person)
        OR (person = ANY (names)
            AND NOT EXISTS (SELECT FROM draftsman.people_groups g WHERE g.name = person))
$$;

-- Links of chat accounts --------------------------------------------------------------------------

-- Linking a chat account: the bot issues a code in the chat, the person redeems it in the
-- terminal.
CREATE OR REPLACE FUNCTION draftsman.issue_link_code(
    channel draftsman.channel, external_id text, display_name text, code_hash text, seconds float8
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND NOT (draftsman.session_kind() = 'bot'
       AND draftsman.may_act_as(channel || ':' || external_id)) THEN
        PERFORM draftsman.deny_access('people.offer_code', jsonb_build_object(
                    'account', external_id));
    END IF;
    INSERT INTO draftsman.identity_links AS l
           (channel, external_id, display_name, code_hash, code_expires_at)
    VALUES (issue_link_code.channel, issue_link_code.external_id, issue_link_code.display_name,
            issue_link_code.code_hash, draftsman.now() + make_interval(secs => seconds))
        ON CONFLICT ON CONSTRAINT identity_links_pkey
           DO UPDATE SET display_name = excluded.display_name, code_hash = excluded.code_hash,
                         code_expires_at = excluded.code_expires_at;
END $$;

CREATE OR REPLACE FUNCTION draftsman.link_identity(code_hash text, person text, actor text)
RETURNS TABLE (channel draftsman.channel, external_id text, display_name text, person_name text,
               linked_by text, linked_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.session_kind() = 'person'
       AND draftsman.person_of('cli', session_user::text) = person
       AND draftsman.may_act_as(actor)) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('people.link', jsonb_build_object('person', person));
    END IF;
    RETURN QUERY
    UPDATE draftsman.identity_links AS l
       SET person = link_identity.person, linked_by = actor, linked_at = draftsman.now(),
           code_hash = NULL, code_expires_at = NULL
     WHERE l.code_hash = link_identity.code_hash AND l.code_expires_at > draftsman.now()
    RETURNING l.channel, l.external_id, l.display_name, l.person, l.linked_by, l.linked_at;
END $$;

CREATE OR REPLACE FUNCTION draftsman.unlink_identity(
    channel draftsman.channel, external_id text
) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_bound boolean := draftsman.binds_accounts(channel);
    whose    text := CASE WHEN is_bound THEN draftsman.person_of(channel, external_id)
                     ELSE (SELECT l.person FROM draftsman.identity_links l
                            WHERE l.channel = unlink_identity.channel
                              AND l.external_id = unlink_identity.external_id) END;
    me       text := draftsman.person_of('cli', session_user::text);
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.session_kind() = 'person'
       AND (me = whose OR draftsman.has_role(me, 'operator'))) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('people.unlink', jsonb_build_object('account', external_id));
    END IF;
    IF is_bound THEN
        RETURN QUERY
        DELETE FROM draftsman.bound_accounts b
         WHERE b.channel = unlink_identity.channel
           AND b.external_id = unlink_identity.external_id
        RETURNING coalesce(whose, b.external_id);
        RETURN;
    END IF;
    RETURN QUERY
    UPDATE draftsman.identity_links AS l
       SET person = NULL, linked_by = NULL, linked_at = NULL, code_hash = NULL,
           code_expires_at = NULL
     WHERE l.channel = unlink_identity.channel AND l.external_id = unlink_identity.external_id
       AND l.person IS NOT NULL
    RETURNING whose;
END $$;

-- Whether the name of an account in a channel is bound to the account that acts first under it.
CREATE OR REPLACE FUNCTION draftsman.binds_accounts(channel text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM draftsman.channels c
                    WHERE c.name = binds_accounts.channel AND c.binds_accounts)
$$;

-- Binds an identity of a person to the account that acts under it, at its first use; returns the id
-- of the account to which it is bound.
CREATE OR REPLACE FUNCTION draftsman.bind_account(
    channel draftsman.channel, external_id text, account_id text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.session_kind() = 'bot'
       AND draftsman.binds_accounts(channel)
       AND draftsman.person_of(channel, external_id) IS NOT NULL) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('people.bind', jsonb_build_object(
                    'channel', channel, 'account', external_id));
    END IF;
    INSERT INTO draftsman.bound_accounts (channel, external_id, account_id)
    VALUES (channel, external_id, account_id)
        ON CONFLICT DO NOTHING;
    RETURN (SELECT b.account_id FROM draftsman.bound_accounts b
             WHERE b.channel = bind_account.channel AND b.external_id = bind_account.external_id);
END $$;

-- Browsers ----------------------------------------------------------------------------------------

-- People create links for themselves, the owner of the schema for any person, and a bot for the
-- people of the configuration, in whose name it may open sessions as well.
CREATE OR REPLACE FUNCTION draftsman.create_sign_in_link(
    person text, digest text, seconds float8
) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    until timestamptz;
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (CASE draftsman.session_kind()
         WHEN 'person' THEN draftsman.person_of('cli', session_user::text) = person
         WHEN 'bot' THEN EXISTS (SELECT FROM draftsman.people p WHERE p.name = person) END)
       IS NOT TRUE THEN
        PERFORM draftsman.deny_access('people.create_sign_in_link', jsonb_build_object(
                    'person', person));
    END IF;
    IF (seconds > 0 AND seconds <= 3600) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('people.link_time');
    END IF;
    DELETE FROM draftsman.sign_in_links l WHERE l.expires_at <= draftsman.now();
    INSERT INTO draftsman.sign_in_links AS l (person, digest, expires_at)
    VALUES (create_sign_in_link.person, create_sign_in_link.digest,
            draftsman.now() + make_interval(secs => seconds))
        ON CONFLICT ON CONSTRAINT sign_in_links_pkey
           DO UPDATE SET digest = excluded.digest, created_at = excluded.created_at,
                         expires_at = excluded.expires_at
    RETURNING l.expires_at INTO until;
    RETURN until;
END $$;

-- The person of a link that can be used.
CREATE OR REPLACE FUNCTION draftsman.person_of_sign_in_link(digest text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_page_server();
    RETURN (SELECT l.person FROM draftsman.sign_in_links l
             WHERE l.digest = person_of_sign_in_link.digest AND l.expires_at > draftsman.now());
END $$;

-- Signs a person in: with `link`, the digest of a link, the person of that link, once; else the
-- person that a proxy or an identity provider named. Returns NULL for a link that cannot be used.
-- A person has at most 20 sessions; the oldest ends.
CREATE OR REPLACE FUNCTION draftsman.open_browser_session(
    link text, person text, method text, digest text, user_agent text, seconds float8
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := person;
BEGIN
    PERFORM draftsman.require_page_server();
    IF (seconds > 0 AND seconds <= 86400 * 90) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('people.session_time');
    END IF;
    IF link IS NOT NULL THEN
        DELETE FROM draftsman.sign_in_links l WHERE l.digest = link AND l.expires_at > draftsman.now()
        RETURNING l.person INTO name;
        IF name IS NULL THEN
            RETURN NULL;
        END IF;
    ELSIF method = 'link' THEN
        PERFORM draftsman.deny_access('people.link_needed');
    ELSIF draftsman.session_kind() <> 'owner'
          AND NOT EXISTS (SELECT FROM draftsman.people p WHERE p.name = person) THEN
        PERFORM draftsman.deny_access('people.unknown_person', jsonb_build_object(
                    'person', person));
    END IF;
    DELETE FROM draftsman.browser_sessions s
     WHERE s.expires_at <= draftsman.now()
        OR s.id IN (SELECT o.id FROM draftsman.browser_sessions o WHERE o.person = name
                     ORDER BY o.id DESC OFFSET 19);
    INSERT INTO draftsman.browser_sessions (person, method, digest, user_agent, expires_at)
    VALUES (name, method, digest, user_agent, draftsman.now() + make_interval(secs => seconds));
    RETURN name;
END $$;

CREATE OR REPLACE FUNCTION draftsman.find_browser_session(digest text) RETURNS TABLE (
    id bigint, person text, method text, user_agent text, created_at timestamptz,
    expires_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_page_server();
    RETURN QUERY
    SELECT s.id, s.person, s.method, s.user_agent, s.created_at, s.expires_at
      FROM draftsman.browser_sessions s
     WHERE s.digest = find_browser_session.digest AND s.expires_at > draftsman.now();
END $$;

CREATE OR REPLACE FUNCTION draftsman.close_browser_session(digest text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_page_server();
    DELETE FROM draftsman.browser_sessions s WHERE s.digest = close_browser_session.digest;
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION draftsman.list_browser_sessions(most int) RETURNS TABLE (
    id bigint, person text, method text, user_agent text, created_at timestamptz,
    expires_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.id, s.person, s.method, s.user_agent, s.created_at, s.expires_at
      FROM draftsman.browser_sessions s
     WHERE s.expires_at > draftsman.now() AND draftsman.controls_browser_session(s.person)
     ORDER BY s.person, s.id
     LIMIT most
$$;

-- Ends a session, or all sessions of a person; returns how many.
CREATE OR REPLACE FUNCTION draftsman.end_browser_sessions(session bigint, person text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ended bigint;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'person') THEN
        PERFORM draftsman.deny_access('people.end_browser_sessions');
    END IF;
    DELETE FROM draftsman.browser_sessions s
     WHERE (s.id = session OR s.person = end_browser_sessions.person)
       AND draftsman.controls_browser_session(s.person);
    GET DIAGNOSTICS ended = ROW_COUNT;
    RETURN ended;
END $$;

CREATE OR REPLACE FUNCTION draftsman.require_page_server() RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access('people.page_server');
    END IF;
END $$;

-- Sessions that this database session may see and end: people their own, operators and the owner
-- of the schema all.
CREATE OR REPLACE FUNCTION draftsman.controls_browser_session(person text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.session_kind() = 'owner' OR (draftsman.session_kind() = 'person' AND (
        draftsman.person_of('cli', session_user::text) = person
        OR draftsman.has_role(draftsman.person_of('cli', session_user::text), 'operator'))) IS TRUE
$$;

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_people() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.person_of(text, text), draftsman.person_of_target(text, text),
        draftsman.has_role(text, text),
        draftsman.acts_in_chat(text, text)');
    SELECT draftsman.grant_to('bot', 'EXECUTE ON FUNCTION
        draftsman.issue_link_code(draftsman.channel, text, text, text, float8),
        draftsman.person_of_sign_in_link(text),
        draftsman.open_browser_session(text, text, text, text, text, float8),
        draftsman.find_browser_session(text), draftsman.close_browser_session(text),
        draftsman.bind_account(draftsman.channel, text, text)');
    SELECT draftsman.grant_to('person', 'EXECUTE ON FUNCTION
        draftsman.link_identity(text, text, text),
        draftsman.unlink_identity(draftsman.channel, text), draftsman.list_browser_sessions(int),
        draftsman.end_browser_sessions(bigint, text)');
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION draftsman.target_of_person(text)');
    SELECT draftsman.grant_to('bot person', 'EXECUTE ON FUNCTION
        draftsman.create_sign_in_link(text, text, float8)');
    SELECT draftsman.grant_to('worker bot person reader', 'SELECT (channel, external_id,
        display_name, person, linked_by, linked_at) ON draftsman.identity_links');
$$;
