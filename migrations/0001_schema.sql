-- The schema, the record of applied migrations, the clock, and the kinds of sessions.
--
-- Apply the files in the order of their names, each in a transaction: `draftsman migrate`, or
-- `psql -1 -f`.

CREATE SCHEMA IF NOT EXISTS draftsman;

CREATE TABLE IF NOT EXISTS draftsman.schema_migrations (
    name        text PRIMARY KEY,
    checksum    text,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Each file records itself first. Applied a second time by psql, it stops here and changes nothing;
-- draftsman leaves out these commands of psql, and applies pending files only.
SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0001_schema') AS applied \gset
\if :applied \echo '0001_schema is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0001_schema');

-- Sessions ------------------------------------------------------------------------------------

-- The kind of a session depends on its login role only, never on a setting. A role that may create
-- objects in the schema is an owner. SQL-standard bodies are parsed here, once, so that no
-- search_path of a session can change their meaning.
CREATE FUNCTION draftsman.session_kind() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN has_schema_privilege(session_user, 'draftsman', 'CREATE') THEN 'owner'
         WHEN pg_has_role(session_user, to_regrole('draftsman_worker')::oid, 'MEMBER') THEN 'worker'
         WHEN pg_has_role(session_user, to_regrole('draftsman_bot')::oid, 'MEMBER') THEN 'bot'
         WHEN pg_has_role(session_user, to_regrole('draftsman_person')::oid, 'MEMBER') THEN 'person'
         WHEN pg_has_role(session_user, to_regrole('draftsman_reader')::oid, 'MEMBER') THEN 'reader'
         ELSE 'none' END;

-- Whether this transaction applies a pending decision of this actor.
CREATE FUNCTION draftsman.applies_decision(actor text) RETURNS boolean LANGUAGE plpgsql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM draftsman.pending_decisions p
                    WHERE p.taken_by = pg_current_xact_id_if_assigned()
                      AND p.source || ':' || p.actor_id = $1);
END $$;

-- Whether the session may act as this actor (`channel:id`): the owner as any, a worker as itself,
-- the system or the person whose decision it applies, a bot as users of its channels, a person as
-- their own database role.
CREATE FUNCTION draftsman.may_act_as(actor text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE draftsman.session_kind()
         WHEN 'owner' THEN true
         WHEN 'worker' THEN actor = 'system' OR actor ~ '^(worker|internal|schedule):'
                            OR draftsman.applies_decision(actor)
         WHEN 'bot' THEN actor ~ '^(slack|trello|forge|web|pager):'
         WHEN 'person' THEN actor IN ('cli:' || session_user, 'tui:' || session_user,
                                      'api:' || session_user)
         ELSE false END;

-- The actor of the session's writes. NULL: none is set, and the statement has a better default.
CREATE FUNCTION draftsman.session_actor() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN coalesce(current_setting('draftsman.actor', true), '') = ''
         THEN CASE WHEN draftsman.session_kind() = 'person' THEN 'cli:' || session_user END
         WHEN draftsman.may_act_as(current_setting('draftsman.actor', true))
         THEN current_setting('draftsman.actor', true)
         WHEN draftsman.session_kind() = 'person' THEN 'cli:' || session_user
         WHEN draftsman.session_kind() = 'worker' THEN NULL
         ELSE draftsman.session_kind() || ':' || session_user END;

CREATE FUNCTION draftsman.deny_access(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', what USING ERRCODE = 'insufficient_privilege',
        DETAIL = format('role %s is %s', session_user, draftsman.session_kind());
END $$;

-- Clock ---------------------------------------------------------------------------------------

-- Test offset of the clock: the owner's session setting, for other roles the setting of the
-- database, which only its owner can change.
CREATE FUNCTION draftsman.clock_offset() RETURNS interval
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN draftsman.session_kind() = 'owner'
         THEN current_setting('draftsman.clock_offset', true)
         ELSE coalesce((SELECT nullif(split_part(c, '=', 2), '')
                          FROM pg_db_role_setting s
                         CROSS JOIN LATERAL unnest(s.setconfig) c
                          JOIN pg_database d ON d.oid = s.setdatabase
                         WHERE d.datname = current_database() AND s.setrole = 0
                           AND c LIKE 'draftsman.clock\_offset=%'), '0') END::interval;

-- The clock for leases, expiry and due times.
CREATE FUNCTION draftsman.now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN coalesce(current_setting('draftsman.clock_offset', true), '') = ''
         THEN pg_catalog.now()
         ELSE pg_catalog.now() + draftsman.clock_offset() END;

-- Limits of texts -----------------------------------------------------------------------------

-- Whether a list has more texts, or a longer text, than so many; NULL is a text that it must not have.
CREATE FUNCTION draftsman.has_long_texts(texts text[], most int, characters int) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    array_ndims(texts) > 1 OR cardinality(texts) > most OR array_position(texts, NULL) IS NOT NULL
    OR EXISTS (SELECT FROM unnest(texts) AS t (text) WHERE char_length(text) > characters);

-- Whether a document is an object with at most so many bytes as text, that programs can read: a parser
-- gives up at a thousand levels.
CREATE FUNCTION draftsman.is_document(document jsonb, bytes int) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    jsonb_typeof(document) = 'object' AND octet_length(document::text) <= bytes
    AND NOT jsonb_path_exists(document, 'strict $.**{500}');

-- Guards --------------------------------------------------------------------------------------

-- Trigger function for rows that must not change; the argument is the reason.
CREATE FUNCTION draftsman.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: % is not allowed; %', TG_TABLE_NAME, lower(TG_OP), TG_ARGV[0]
        USING ERRCODE = 'DM002';
END $$;
