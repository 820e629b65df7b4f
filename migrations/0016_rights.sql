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

-- Replaces everybody that is known; the caller is the owner, nobody else may write these tables.
CREATE FUNCTION draftsman.save_people(directory jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM draftsman.people_groups;
    DELETE FROM draftsman.person_identities;
    DELETE FROM draftsman.people
     WHERE name NOT IN (SELECT p ->> 'name' FROM jsonb_array_elements(directory -> 'people') p);
    INSERT INTO draftsman.people AS old (name, roles, quiet, timezone)
    SELECT p ->> 'name',
           ARRAY(SELECT jsonb_array_elements_text(p -> 'roles')), p ->> 'quiet', p ->> 'timezone'
      FROM jsonb_array_elements(directory -> 'people') p
        ON CONFLICT (name) DO UPDATE
           SET roles = excluded.roles, quiet = excluded.quiet, timezone = excluded.timezone,
               updated_at = excluded.updated_at, updated_by = excluded.updated_by
         WHERE (old.roles, old.quiet, old.timezone)
               IS DISTINCT FROM (excluded.roles, excluded.quiet, excluded.timezone);
    INSERT INTO draftsman.person_identities (channel, external_id, person)
    SELECT i.key::draftsman.channel, i.value, p ->> 'name'
      FROM jsonb_array_elements(directory -> 'people') p
     CROSS JOIN LATERAL jsonb_each_text(p -> 'ids') i;
    INSERT INTO draftsman.people_groups (name, member)
    SELECT g.key, m FROM jsonb_each(directory -> 'groups') g
     CROSS JOIN LATERAL (SELECT DISTINCT jsonb_array_elements_text(g.value) AS m) w;
    INSERT INTO draftsman.approval_policy (self_approval)
    VALUES ((directory ->> 'self_approval')::boolean)
        ON CONFLICT (single) DO UPDATE SET self_approval = excluded.self_approval;
END $$;

-- What a session may be, by its login role, and never by a setting. Who may create in the schema is
-- its owner. Bodies that are not text are parsed here, once: no search_path of a session bends them.
CREATE FUNCTION draftsman.session_kind() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN has_schema_privilege(session_user, 'draftsman', 'CREATE') THEN 'owner'
         WHEN pg_has_role(session_user, to_regrole('draftsman_worker')::oid, 'MEMBER') THEN 'worker'
         WHEN pg_has_role(session_user, to_regrole('draftsman_bot')::oid, 'MEMBER') THEN 'bot'
         WHEN pg_has_role(session_user, to_regrole('draftsman_person')::oid, 'MEMBER') THEN 'person'
         WHEN pg_has_role(session_user, to_regrole('draftsman_reader')::oid, 'MEMBER') THEN 'reader'
         ELSE 'none' END;

-- Whether a session may act under this name: the owner under any, a worker as itself or the system,
-- a bot for people of its channels, a person as their own database role.
CREATE FUNCTION draftsman.speaks_for(actor text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE draftsman.session_kind()
         WHEN 'owner' THEN true
         WHEN 'worker' THEN actor = 'system' OR actor ~ '^(worker|internal):'
         WHEN 'bot' THEN actor ~ '^(slack|trello):'
         WHEN 'person' THEN actor IN ('cli:' || session_user, 'tui:' || session_user,
                                      'api:' || session_user)
         ELSE false END;

-- The actor of what a session does; NULL where it named none, and the statement knows better.
CREATE FUNCTION draftsman.session_actor() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN coalesce(current_setting('draftsman.actor', true), '') = ''
         THEN CASE WHEN draftsman.session_kind() = 'person' THEN 'cli:' || session_user END
         WHEN draftsman.speaks_for(current_setting('draftsman.actor', true))
         THEN current_setting('draftsman.actor', true)
         WHEN draftsman.session_kind() = 'person' THEN 'cli:' || session_user
         WHEN draftsman.session_kind() = 'worker' THEN NULL
         ELSE draftsman.session_kind() || ':' || session_user END;

-- The shift of the clock: that of the session for the owner, else that of the database, which only
-- the owner can set.
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
CREATE OR REPLACE FUNCTION draftsman.now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE RETURN
    CASE WHEN coalesce(current_setting('draftsman.clock_offset', true), '') = ''
         THEN pg_catalog.now()
         ELSE pg_catalog.now() + draftsman.clock_offset() END;

-- The person that an identity leads to; NULL for nobody.
CREATE FUNCTION draftsman.person_of(channel text, id text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.name
      FROM (SELECT CASE WHEN $1 IN ('tui', 'api') THEN 'cli' ELSE $1 END AS channel) c
     CROSS JOIN LATERAL (
           SELECT i.person FROM draftsman.person_identities i
            WHERE i.channel::text = c.channel AND i.external_id = $2
            UNION ALL
           SELECT l.person FROM draftsman.identity_links l
            WHERE l.channel::text = c.channel AND l.external_id = $2 AND c.channel <> 'cli'
            LIMIT 1) f
      JOIN draftsman.people p ON p.name = f.person
$$;

CREATE FUNCTION draftsman.has_role(person text, role text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT $2 = ANY (p.roles) FROM draftsman.people p WHERE p.name = $1), false)
$$;

-- Whether a person is meant by a list of people and groups.
CREATE FUNCTION draftsman.is_named(person text, names text[]) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM draftsman.people_groups g
                    WHERE g.name = ANY ($2) AND g.member = $1)
        OR ($1 = ANY ($2) AND NOT EXISTS (SELECT FROM draftsman.people_groups g WHERE g.name = $1))
$$;

-- The person behind an actor, `slack:U012`, for whom the session may speak.
CREATE FUNCTION draftsman.person_behind(actor text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN draftsman.speaks_for($1) THEN draftsman.person_of(
           split_part($1, ':', 1), substr($1, strpos($1, ':') + 1)) END
$$;

CREATE FUNCTION draftsman.refuse_session(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', what USING ERRCODE = 'insufficient_privilege',
        DETAIL = format('role %s is %s', session_user, draftsman.session_kind());
END $$;

-- Refuses unless the actor may speak here and has the role, or is the person that asked for the job.
CREATE FUNCTION draftsman.check_control(job bigint, actor text, role text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text;
BEGIN
    IF draftsman.session_kind() = 'owner'
       OR (draftsman.session_kind() = 'worker' AND draftsman.speaks_for(actor)) THEN
        RETURN;
    END IF;
    person := draftsman.person_behind(actor);
    IF NOT draftsman.speaks_for(actor) OR NOT (
        draftsman.has_role(person, role) OR EXISTS (
            SELECT FROM draftsman.jobs j
             WHERE j.number = job AND j.invoker_id IN (person, actor))) THEN
        PERFORM draftsman.refuse_session(format('%s may not do that to D-%s', actor, job));
    END IF;
END $$;
