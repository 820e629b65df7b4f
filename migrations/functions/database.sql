-- Sessions and the actors that they may act as, the clock, guards of rows that never change, and
-- the privileges of the group roles.

INSERT INTO draftsman.schema_functions (name) VALUES ('database')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Advisory locks have the number 1146242644, which is "DRFT" in ASCII, and the next two:
--   (1146242644, id)    the process with this id has a session: is_connected()
--   1146242645          a migration
--   (1146242645, slot)  concurrency keys: lock_keys()
--   1146242646          the archive of a month; seed of the hashes that lock the order of a queue

-- Sessions ----------------------------------------------------------------------------------------

-- The kind of a session depends on its login role only, never on a setting. A role that may create
-- objects in the schema is an owner. SQL-standard bodies are parsed here, once, so that no
-- search_path of a session can change their meaning.
CREATE OR REPLACE FUNCTION draftsman.session_kind() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN has_schema_privilege(session_user, 'draftsman', 'CREATE') THEN 'owner'
         WHEN pg_has_role(session_user, to_regrole('draftsman_worker')::oid, 'MEMBER') THEN 'worker'
         WHEN pg_has_role(session_user, to_regrole('draftsman_bot')::oid, 'MEMBER') THEN 'bot'
         WHEN pg_has_role(session_user, to_regrole('draftsman_person')::oid, 'MEMBER') THEN 'person'
         WHEN pg_has_role(session_user, to_regrole('draftsman_reader')::oid, 'MEMBER') THEN 'reader'
         ELSE 'none' END;

-- Whether this transaction applies a pending decision of this actor.
CREATE OR REPLACE FUNCTION draftsman.applies_decision(actor text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM draftsman.pending_decisions p
                    WHERE p.taken_by = pg_current_xact_id_if_assigned()
                      AND p.source || ':' || p.actor_id = actor);
END $$;

-- Whether people of the channel of this actor act by the role of bots.
CREATE OR REPLACE FUNCTION draftsman.has_bot(actor text) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN strpos(actor, ':') > 0 AND EXISTS (
        SELECT FROM draftsman.channels c WHERE c.name = split_part(actor, ':', 1) AND c.has_bot);
END $$;

-- Whether the session may act as this actor (`channel:id`): the owner as any, a worker as itself,
-- the system or the person whose decision it applies, a bot as users of its channels, a person as
-- their own database role.
CREATE OR REPLACE FUNCTION draftsman.may_act_as(actor text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE draftsman.session_kind()
         WHEN 'owner' THEN true
         WHEN 'worker' THEN actor = 'system' OR actor ~ '^(worker|internal|schedule):'
                            OR draftsman.applies_decision(actor)
         WHEN 'bot' THEN draftsman.has_bot(actor)
         WHEN 'person' THEN actor IN ('cli:' || session_user, 'tui:' || session_user,
                                      'api:' || session_user)
         ELSE false END;

-- The actor of the session's writes. NULL: none is set, and the statement has a better default.
CREATE OR REPLACE FUNCTION draftsman.session_actor() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN coalesce(current_setting('draftsman.actor', true), '') = ''
         THEN CASE WHEN draftsman.session_kind() = 'person' THEN 'cli:' || session_user END
         WHEN draftsman.may_act_as(current_setting('draftsman.actor', true))
         THEN current_setting('draftsman.actor', true)
         WHEN draftsman.session_kind() = 'person' THEN 'cli:' || session_user
         WHEN draftsman.session_kind() = 'worker' THEN NULL
         ELSE draftsman.session_kind() || ':' || session_user END;

-- The person of an actor (`cli:anna`) that the session may act as.
CREATE OR REPLACE FUNCTION draftsman.person_of_actor(actor text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN draftsman.may_act_as(actor) THEN draftsman.person_of(
           split_part(actor, ':', 1), substr(actor, strpos(actor, ':') + 1)) END
$$;

-- The person of an actor, else the name of its account.
CREATE OR REPLACE FUNCTION draftsman.name_of_actor(actor text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT coalesce(draftsman.person_of_actor(actor), substr(actor, strpos(actor, ':') + 1))
$$;

-- Sentences ---------------------------------------------------------------------------------------

-- The name of a sentence for people, as `jobs.paused`, and its values; the sentence itself is in
-- the module `sentences` of its package. It is the payload of a notice, or as a text a reason.
CREATE OR REPLACE FUNCTION draftsman.sentence(name text, names jsonb DEFAULT '{}') RETURNS jsonb
LANGUAGE sql STABLE RETURN jsonb_build_object('sentence', name, 'values', names);

-- Refusals ----------------------------------------------------------------------------------------

-- Refuses a statement: with an SQLSTATE, the rule that it breaks, as `questions.closed`, and the
-- values of a sentence about it, which is in the module `sentences` of the rule's package.
--   DM001  a change that the state of its row does not allow
--   DM002  a change of a row that never changes
--   DM003  rows that would contradict each other
--   DM004  a request that is not allowed now
--   42501  a session without the right (deny_access)
--   23514  a rule of the columns of a row, as of a CHECK constraint
CREATE OR REPLACE FUNCTION draftsman.refuse(state text, rule text, names jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = rule, DETAIL = names::text,
        SCHEMA = 'draftsman', TABLE = coalesce(names ->> 'table', ''),
        CONSTRAINT = coalesce(names ->> 'constraint', '');
END $$;

-- Refuses a statement for lack of a right; `role` and `session` are those of the session.
CREATE OR REPLACE FUNCTION draftsman.deny_access(rule text, names jsonb DEFAULT '{}') RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM draftsman.refuse('42501', rule, names || jsonb_build_object(
                'role', session_user, 'session', draftsman.session_kind()));
END $$;

-- Clock -------------------------------------------------------------------------------------------

-- Test offset of the clock: the owner's session setting, for other roles the setting of the
-- database, which only its owner can change.
CREATE OR REPLACE FUNCTION draftsman.clock_offset() RETURNS interval
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
CREATE OR REPLACE FUNCTION draftsman.now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN coalesce(current_setting('draftsman.clock_offset', true), '') = ''
         THEN pg_catalog.now()
         ELSE pg_catalog.now() + draftsman.clock_offset() END;

-- Limits of texts ---------------------------------------------------------------------------------

-- Whether a list has more texts, or a longer text, than so many; NULL is a text that it must not
-- have.
CREATE OR REPLACE FUNCTION draftsman.has_long_texts(
    texts text[], most int, characters int
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    array_ndims(texts) > 1 OR cardinality(texts) > most OR array_position(texts, NULL) IS NOT NULL
    OR EXISTS (SELECT FROM unnest(texts) AS t (text) WHERE char_length(text) > characters);

-- Whether a document is an object with at most so many bytes as text, that programs can read: a
-- parser gives up at a thousand levels.
CREATE OR REPLACE FUNCTION draftsman.is_document(document jsonb, bytes int) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    jsonb_typeof(document) = 'object' AND octet_length(document::text) <= bytes
    AND NOT jsonb_path_exists(document, 'strict $.**{500}');

-- Guards ------------------------------------------------------------------------------------------

-- Trigger function for rows that must not change; the argument is the rule.
CREATE OR REPLACE FUNCTION draftsman.refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM draftsman.refuse('DM002', TG_ARGV[0], jsonb_build_object(
                'table', TG_TABLE_NAME, 'operation', lower(TG_OP)));
    RETURN NULL;
END $$;

-- Tables that a person's session may change only as an operator.
CREATE OR REPLACE FUNCTION draftsman.require_operator() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() = 'person'
       AND NOT has_schema_privilege(current_user, 'draftsman', 'CREATE')  -- a trigger's own writes
       AND NOT draftsman.has_role(
        draftsman.person_of('cli', session_user::text), 'operator') THEN
        PERFORM draftsman.deny_access('database.operator');
    END IF;
    RETURN NULL;
END $$;

-- Privileges --------------------------------------------------------------------------------------

-- Grants the privileges of the four group roles, creating missing roles where this session may; the
-- privileges of a capability are in its own file, and those of a channel in the function
-- grant_CHANNEL() of its package. Returns the statements that a DBA has to run for
-- the roles that are still missing, else nothing. Safe to repeat, and to run after a restore.
CREATE OR REPLACE FUNCTION draftsman.grant_roles() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    role       text;
    missing    text := '';
    readable   text;
    privileges regprocedure;
BEGIN
    REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA draftsman FROM PUBLIC;
    SELECT string_agg(format('draftsman.%I', c.relname), ', ') INTO readable
      FROM pg_class c
     WHERE c.relnamespace = 'draftsman'::regnamespace AND c.relkind IN ('r', 'p', 'v')
       AND c.relname NOT IN ('identity_links', 'sign_in_links', 'browser_sessions');
    FOREACH role IN ARRAY '{worker,bot,person,reader}'::text[] LOOP
        IF to_regrole('draftsman_' || role) IS NULL THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', 'draftsman_' || role);
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN NULL;  -- from another database
                WHEN insufficient_privilege THEN NULL;
            END;
        END IF;
        IF to_regrole('draftsman_' || role) IS NULL THEN
            missing := missing || format('CREATE ROLE %I NOLOGIN; ', 'draftsman_' || role);
        END IF;
    END LOOP;
    PERFORM draftsman.grant_to('worker bot person reader', 'USAGE ON SCHEMA draftsman'),
            draftsman.grant_to('worker bot person reader', 'SELECT ON ' || readable),
            draftsman.grant_to('worker bot person', 'USAGE ON ALL SEQUENCES IN SCHEMA draftsman');
    PERFORM draftsman.grant_database(), draftsman.grant_people(), draftsman.grant_jobs(),
            draftsman.grant_events(), draftsman.grant_queues(), draftsman.grant_limits(),
            draftsman.grant_schedules(), draftsman.grant_workflows(), draftsman.grant_questions(),
            draftsman.grant_workers(), draftsman.grant_deliveries(), draftsman.grant_attention(),
            draftsman.grant_rules(), draftsman.grant_repos(), draftsman.grant_forges(),
            draftsman.grant_costs(), draftsman.grant_job_types();
    FOR privileges IN SELECT to_regprocedure(format('draftsman.%I()',
                                 'grant_' || replace(c.name, '-', '_')))
                        FROM draftsman.channels c LOOP
        IF privileges IS NOT NULL THEN
            EXECUTE format('SELECT %s()', privileges::regproc);
        END IF;
    END LOOP;
    RETURN missing;
END $$;

-- Grants a privilege to those of these group roles that exist.
CREATE OR REPLACE FUNCTION draftsman.grant_to(roles text, privilege text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY string_to_array(roles, ' ') LOOP
        IF to_regrole('draftsman_' || role) IS NOT NULL THEN
            EXECUTE format('GRANT %s TO %I', privilege, 'draftsman_' || role);
        END IF;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION draftsman.grant_database() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.session_kind(), draftsman.applies_decision(text), draftsman.has_bot(text), draftsman.may_act_as(text),
        draftsman.person_of_actor(text),
        draftsman.sentence(text, jsonb), draftsman.refuse(text, text, jsonb),
        draftsman.deny_access(text, jsonb),
        draftsman.clock_offset(), draftsman.now(),
        draftsman.has_long_texts(text[], int, int)');
$$;
