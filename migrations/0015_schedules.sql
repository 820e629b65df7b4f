-- Templates and schedules of jobs.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0015_schedules') AS applied \gset
\if :applied \echo '0015_schedules is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0015_schedules');

-- A version never changes; the newest version of a name is the template. A version without a
-- definition removes the template: its jobs keep the version that they were made from.
CREATE TABLE draftsman.job_templates (
    name        text NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'),
    version     int NOT NULL CHECK (version > 0),
    definition  json CHECK (json_typeof(definition) = 'object'  -- keeps the order of parameters
                            AND octet_length(definition::text) <= 1048576),
    created_by  text NOT NULL CHECK (created_by <> ''),
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (name, version),
    CONSTRAINT job_templates_first CHECK (version > 1 OR definition IS NOT NULL)
);

-- The versions of a template have no gaps, and only an existing template is removed.
CREATE FUNCTION draftsman.check_template() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.version > 1 AND NOT EXISTS (
        SELECT FROM draftsman.job_templates t
         WHERE t.name = NEW.name AND t.version = NEW.version - 1
           AND num_nonnulls(NEW.definition, t.definition) > 0) THEN
        RAISE EXCEPTION 'template %: version % does not follow a version', NEW.name, NEW.version
            USING ERRCODE = 'DM003';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER job_templates_versions BEFORE INSERT ON draftsman.job_templates FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_template();
CREATE TRIGGER job_templates_immutable BEFORE UPDATE OR DELETE ON draftsman.job_templates
    FOR EACH ROW EXECUTE FUNCTION draftsman.refuse_change('a version of a template is immutable');
CREATE TRIGGER job_templates_no_truncate BEFORE TRUNCATE ON draftsman.job_templates
    EXECUTE FUNCTION draftsman.refuse_change('a version of a template is immutable');

-- Whether a job may be made from this version.
CREATE FUNCTION draftsman.is_template(name text, version int) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN EXISTS (
    SELECT FROM draftsman.job_templates t
     WHERE t.name = is_template.name AND t.version = is_template.version
       AND t.definition IS NOT NULL);

-- Schedules -----------------------------------------------------------------------------------

-- Submits a template or a request whenever its rule is due. `due_at` is the next occurrence, and
-- `fire_at` the same with its jitter; without them there is no further occurrence.
CREATE TABLE draftsman.schedules (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'),
    rule           text NOT NULL CHECK (rule <> ''),
    timezone       text NOT NULL CHECK (timezone <> ''),
    template       text CHECK (template <> ''),
    params         jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(params) = 'object'),
    request        jsonb CHECK (jsonb_typeof(request) = 'object'),
    misfire        text NOT NULL DEFAULT 'last' CHECK (misfire IN ('skip', 'last', 'all')),
    misfire_limit  int NOT NULL DEFAULT 10 CHECK (misfire_limit BETWEEN 1 AND 1000),
    jitter         int NOT NULL DEFAULT 0 CHECK (jitter BETWEEN 0 AND 86400),
    overlap        text NOT NULL DEFAULT 'skip'
                   CHECK (overlap IN ('skip', 'queue', 'cancel-running')),
    origin         text CHECK (origin <> ''),
    created_by     text NOT NULL CHECK (created_by <> ''),
    created_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    updated_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    paused_at      timestamptz,
    paused_by      text,
    pause_reason   text,
    due_at         timestamptz,
    fire_at        timestamptz,
    last_job       bigint,
    CONSTRAINT schedules_name UNIQUE (name),
    CONSTRAINT schedules_target CHECK (num_nonnulls(template, request) = 1),
    CONSTRAINT schedules_paused CHECK ((paused_at IS NULL) = (paused_by IS NULL)
        AND (pause_reason IS NULL OR paused_at IS NOT NULL)),
    CONSTRAINT schedules_due CHECK ((due_at IS NULL) = (fire_at IS NULL) AND fire_at >= due_at)
);
CREATE INDEX schedules_fire ON draftsman.schedules (fire_at)
    WHERE fire_at IS NOT NULL AND paused_at IS NULL;

-- The outcome of each occurrence. The primary key keeps two leaders, and a clock that was set back,
-- from firing an occurrence twice.
CREATE TABLE draftsman.schedule_fires (
    schedule     bigint NOT NULL REFERENCES draftsman.schedules ON DELETE CASCADE,
    due_at       timestamptz NOT NULL,
    status       text NOT NULL CHECK (status IN ('waiting', 'fired', 'skipped', 'refused')),
    job          bigint REFERENCES draftsman.job_requests,
    reason       text CHECK (reason <> ''),
    recorded_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (schedule, due_at),
    CONSTRAINT schedule_fires_fired CHECK ((job IS NOT NULL) = (status = 'fired')),
    CONSTRAINT schedule_fires_reason CHECK (
        status NOT IN ('skipped', 'refused') OR reason IS NOT NULL)
);
CREATE UNIQUE INDEX schedule_fires_job ON draftsman.schedule_fires (job) WHERE job IS NOT NULL;
CREATE INDEX schedule_fires_due ON draftsman.schedule_fires (due_at DESC);
CREATE INDEX schedule_fires_waiting ON draftsman.schedule_fires (schedule, due_at)
    WHERE status = 'waiting';
CREATE TRIGGER schedule_fires_immutable BEFORE UPDATE ON draftsman.schedule_fires FOR EACH ROW
    WHEN (OLD.status <> 'waiting' OR (OLD.schedule, OLD.due_at) <> (NEW.schedule, NEW.due_at))
    EXECUTE FUNCTION draftsman.refuse_change('an occurrence has a single outcome');

-- Whether a person has a role, and an account in a chat, for which the bots act.
CREATE FUNCTION draftsman.acts_in_chat(person text, role text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.has_role($1, $2) AND EXISTS (
           SELECT FROM draftsman.person_identities i
            WHERE i.person = $1 AND i.channel IN ('slack', 'trello')
            UNION ALL
           SELECT FROM draftsman.identity_links l
            WHERE l.person = $1 AND l.channel IN ('slack', 'trello'))
$$;

-- Whether a bot may change a schedule: for its author, or for an operator.
CREATE FUNCTION draftsman.is_controlled_in_chat(author text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.acts_in_chat($1, 'invoker') OR EXISTS (
           SELECT FROM draftsman.people p WHERE draftsman.acts_in_chat(p.name, 'operator'))
$$;

-- A person changes own schedules, and an operator those of others. The jobs of a schedule are
-- submitted in the name of the person who decided what it submits. A bot acts for people with an
-- account in a chat; its privileges exclude the definition of a stored schedule.
CREATE FUNCTION draftsman.check_schedule() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text;
BEGIN
    IF draftsman.session_kind() = 'person' THEN
        person := draftsman.person_of('cli', session_user::text);
        IF NOT draftsman.has_role(person, 'operator') AND NOT (
            draftsman.has_role(person, 'invoker')
            AND (TG_OP = 'INSERT' OR OLD.created_by = person)) IS TRUE THEN
            PERFORM draftsman.deny_access(
                format('%s may not change schedule %s', session_user,
                       CASE WHEN TG_OP = 'INSERT' THEN NEW.name ELSE OLD.name END));
        END IF;
        IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND
            (NEW.template, NEW.params, NEW.request, NEW.created_by)
            IS DISTINCT FROM (OLD.template, OLD.params, OLD.request, OLD.created_by)) THEN
            IF NEW.created_by IS DISTINCT FROM person THEN
                PERFORM draftsman.deny_access(format('%s cannot schedule jobs of %s',
                                                     session_user, NEW.created_by));
            END IF;
        END IF;
    ELSIF draftsman.session_kind() = 'bot' THEN
        IF TG_OP = 'INSERT' AND NOT draftsman.acts_in_chat(NEW.created_by, 'invoker') THEN
            PERFORM draftsman.deny_access(format('%s cannot schedule jobs of %s',
                                                 session_user, NEW.created_by));
        ELSIF TG_OP <> 'INSERT' AND NOT draftsman.is_controlled_in_chat(OLD.created_by)
           OR TG_OP = 'UPDATE' AND NEW.paused_by IS DISTINCT FROM OLD.paused_by
              AND NEW.paused_by IS NOT NULL
              AND NOT draftsman.acts_in_chat(NEW.paused_by, 'operator')
              AND NOT (NEW.paused_by = OLD.created_by
                       AND draftsman.acts_in_chat(NEW.paused_by, 'invoker')) THEN
            PERFORM draftsman.deny_access(
                format('%s may not change schedule %s', session_user, OLD.name));
        END IF;
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER schedules_session BEFORE INSERT OR UPDATE OR DELETE ON draftsman.schedules
    FOR EACH ROW EXECUTE FUNCTION draftsman.check_schedule();

-- A person records only occurrences that own jobs ran, of schedules that were run by hand.
CREATE FUNCTION draftsman.check_fire() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() = 'person' AND NOT EXISTS (
        SELECT FROM draftsman.job_requests r
         WHERE r.number = NEW.job AND NEW.status = 'fired' AND NEW.reason IS NOT NULL
           AND r.invoker_id = draftsman.person_of('cli', session_user::text)) THEN
        PERFORM draftsman.deny_access(format('%s did not run this schedule', session_user));
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER schedule_fires_session BEFORE INSERT ON draftsman.schedule_fires
    FOR EACH ROW EXECUTE FUNCTION draftsman.check_fire();

-- Whether a schedule may submit this job now: `schedule:ID:TIME` is the key of its occurrence.
CREATE FUNCTION draftsman.is_scheduled(key text, invoker text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM draftsman.schedules s
         WHERE s.id::text = split_part($1, ':', 2) AND starts_with($1, 'schedule:')
           AND s.created_by = $2 AND s.paused_at IS NULL)
       AND draftsman.has_role($2, 'invoker')
$$;
