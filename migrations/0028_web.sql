-- Sign-in links and sessions of the web inbox. Tokens are stored as SHA-256 only.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0028_web') AS applied \gset
\if :applied \echo '0028_web is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0028_web');

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

CREATE FUNCTION draftsman.require_web_server() RETURNS void LANGUAGE plpgsql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'bot') THEN
        PERFORM draftsman.deny_access(format('%s cannot use sessions of the web', session_user));
    END IF;
END $$;

-- People create links for themselves, the owner of the schema for any person, and a bot for the
-- people of the configuration, in whose name it may open sessions as well.
CREATE FUNCTION draftsman.create_web_link(person text, digest text, seconds float8)
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    until timestamptz;
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (CASE draftsman.session_kind()
         WHEN 'person' THEN draftsman.person_of('cli', session_user::text) = $1
         WHEN 'bot' THEN EXISTS (SELECT FROM draftsman.people p WHERE p.name = $1) END)
       IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('%s cannot create a link for %s', session_user, $1));
    END IF;
    IF ($3 > 0 AND $3 <= 3600) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('a link is valid for more than 0 s and at most an hour');
    END IF;
    DELETE FROM draftsman.web_links l WHERE l.expires_at <= draftsman.now();
    INSERT INTO draftsman.web_links AS l (person, digest, expires_at)
    VALUES ($1, $2, draftsman.now() + make_interval(secs => $3))
        ON CONFLICT ON CONSTRAINT web_links_pkey
           DO UPDATE SET digest = excluded.digest, created_at = excluded.created_at,
                         expires_at = excluded.expires_at
    RETURNING l.expires_at INTO until;
    RETURN until;
END $$;

-- The person of a link that can be used.
CREATE FUNCTION draftsman.person_of_web_link(digest text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_web_server();
    RETURN (SELECT l.person FROM draftsman.web_links l
             WHERE l.digest = $1 AND l.expires_at > draftsman.now());
END $$;

-- Signs a person in: with `link`, the digest of a link, the person of that link, once; else the
-- person that a proxy or an identity provider named. Returns NULL for a link that cannot be used.
-- A person has at most 20 sessions; the oldest ends.
CREATE FUNCTION draftsman.open_web_session(
    link text, person text, method text, digest text, user_agent text, seconds float8
) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := $2;
BEGIN
    PERFORM draftsman.require_web_server();
    IF ($6 > 0 AND $6 <= 86400 * 90) IS NOT TRUE THEN
        PERFORM draftsman.deny_access('a session lasts more than 0 s and at most 90 days');
    END IF;
    IF $1 IS NOT NULL THEN
        DELETE FROM draftsman.web_links l WHERE l.digest = $1 AND l.expires_at > draftsman.now()
        RETURNING l.person INTO name;
        IF name IS NULL THEN
            RETURN NULL;
        END IF;
    ELSIF $3 = 'link' THEN
        PERFORM draftsman.deny_access('a session of the method link needs a link');
    ELSIF draftsman.session_kind() <> 'owner'
          AND NOT EXISTS (SELECT FROM draftsman.people p WHERE p.name = $2) THEN
        PERFORM draftsman.deny_access(format('there is no person %s', $2));
    END IF;
    DELETE FROM draftsman.web_sessions s
     WHERE s.expires_at <= draftsman.now()
        OR s.id IN (SELECT o.id FROM draftsman.web_sessions o WHERE o.person = name
                     ORDER BY o.id DESC OFFSET 19);
    INSERT INTO draftsman.web_sessions (person, method, digest, user_agent, expires_at)
    VALUES (name, $3, $4, $5, draftsman.now() + make_interval(secs => $6));
    RETURN name;
END $$;

CREATE FUNCTION draftsman.find_web_session(digest text) RETURNS TABLE (
    id bigint, person text, method text, user_agent text, created_at timestamptz,
    expires_at timestamptz
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_web_server();
    RETURN QUERY
    SELECT s.id, s.person, s.method, s.user_agent, s.created_at, s.expires_at
      FROM draftsman.web_sessions s
     WHERE s.digest = $1 AND s.expires_at > draftsman.now();
END $$;

CREATE FUNCTION draftsman.close_web_session(digest text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.require_web_server();
    DELETE FROM draftsman.web_sessions s WHERE s.digest = $1;
    RETURN FOUND;
END $$;

-- Sessions that this database session may see and end: people their own, operators and the owner
-- of the schema all.
CREATE FUNCTION draftsman.controls_web_session(person text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.session_kind() = 'owner' OR (draftsman.session_kind() = 'person' AND (
        draftsman.person_of('cli', session_user::text) = $1
        OR draftsman.has_role(draftsman.person_of('cli', session_user::text), 'operator'))) IS TRUE
$$;

CREATE FUNCTION draftsman.list_web_sessions(most int) RETURNS TABLE (
    id bigint, person text, method text, user_agent text, created_at timestamptz,
    expires_at timestamptz
) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.id, s.person, s.method, s.user_agent, s.created_at, s.expires_at
      FROM draftsman.web_sessions s
     WHERE s.expires_at > draftsman.now() AND draftsman.controls_web_session(s.person)
     ORDER BY s.person, s.id
     LIMIT $1
$$;

-- Ends a session, or all sessions of a person; returns how many.
CREATE FUNCTION draftsman.end_web_sessions(session bigint, person text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ended bigint;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'person') THEN
        PERFORM draftsman.deny_access(format('%s cannot end sessions', session_user));
    END IF;
    DELETE FROM draftsman.web_sessions s
     WHERE (s.id = $1 OR s.person = $2) AND draftsman.controls_web_session(s.person);
    GET DIAGNOSTICS ended = ROW_COUNT;
    RETURN ended;
END $$;
