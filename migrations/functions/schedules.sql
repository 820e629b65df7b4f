-- Templates of jobs, and schedules that submit them.

INSERT INTO draftsman.schema_functions (name) VALUES ('schedules')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Templates ---------------------------------------------------------------------------------------

-- The versions of a template have no gaps, and only an existing template is removed.
CREATE OR REPLACE FUNCTION draftsman.check_template() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.version > 1 AND NOT EXISTS (
        SELECT FROM draftsman.job_templates t
         WHERE t.name = NEW.name AND t.version = NEW.version - 1
           AND num_nonnulls(NEW.definition, t.definition) > 0) THEN
        PERFORM draftsman.refuse('DM003', 'schedules.version_gap', jsonb_build_object(
                    'template', NEW.name, 'version', NEW.version));
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER job_templates_versions BEFORE INSERT ON draftsman.job_templates
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_template();

-- Whether a job may be made from this version.
CREATE OR REPLACE FUNCTION draftsman.is_template(name text, version int) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE RETURN EXISTS (
    SELECT FROM draftsman.job_templates t
     WHERE t.name = is_template.name AND t.version = is_template.version
       AND t.definition IS NOT NULL);

-- Schedules ---------------------------------------------------------------------------------------

-- A person changes own schedules, and an operator those of others. The jobs of a schedule are
-- submitted in the name of the person who decided what it submits. A bot acts for people with an
-- account in a chat; its privileges exclude the definition of a stored schedule. A worker makes those
-- that job types declare, and no other.
CREATE OR REPLACE FUNCTION draftsman.check_schedule() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person    text;
    unchecked text[] := '{due_at,fire_at,last_job,paused_at,paused_by,pause_reason,updated_at}';
BEGIN
    IF draftsman.session_kind() = 'person' THEN
        person := draftsman.person_of('cli', session_user::text);
        IF NOT draftsman.has_role(person, 'operator') AND NOT (
            draftsman.has_role(person, 'invoker')
            AND (TG_OP = 'INSERT' OR OLD.created_by = person)) IS TRUE THEN
            PERFORM draftsman.deny_access('schedules.change', jsonb_build_object(
                        'schedule', CASE WHEN TG_OP = 'INSERT' THEN NEW.name ELSE OLD.name END));
        END IF;
        IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND
            (NEW.template, NEW.params, NEW.request, NEW.created_by)
            IS DISTINCT FROM (OLD.template, OLD.params, OLD.request, OLD.created_by)) THEN
            IF NEW.created_by IS DISTINCT FROM person OR NOT draftsman.has_role(person, 'invoker') THEN
                PERFORM draftsman.deny_access('schedules.author', jsonb_build_object(
                            'author', NEW.created_by));
            END IF;
        END IF;
    ELSIF draftsman.session_kind() = 'bot' THEN
        IF TG_OP = 'INSERT' AND NOT draftsman.acts_in_chat(NEW.created_by, 'invoker') THEN
            PERFORM draftsman.deny_access('schedules.author', jsonb_build_object(
                        'author', NEW.created_by));
        ELSIF TG_OP <> 'INSERT' AND NOT draftsman.is_controlled_in_chat(OLD.created_by)
           OR TG_OP = 'UPDATE' AND NEW.paused_by IS DISTINCT FROM OLD.paused_by
              AND NEW.paused_by IS NOT NULL
              AND NOT draftsman.acts_in_chat(NEW.paused_by, 'operator')
              AND NOT (NEW.paused_by = OLD.created_by
                       AND draftsman.acts_in_chat(NEW.paused_by, 'invoker')) THEN
            PERFORM draftsman.deny_access('schedules.change', jsonb_build_object(
                        'schedule', OLD.name));
        END IF;
    END IF;
    IF draftsman.session_kind() = 'worker' THEN
        IF TG_OP = 'INSERT' AND NOT draftsman.is_declared(NEW)
           OR TG_OP = 'UPDATE'
              AND to_jsonb(OLD) - unchecked <> to_jsonb(NEW) - unchecked
              AND NOT (OLD.origin = 'code' AND draftsman.is_declared(NEW)) IS TRUE
           OR TG_OP = 'UPDATE' AND OLD.paused_by IS DISTINCT FROM NEW.paused_by
              AND NOT (OLD.origin = 'code'
                       AND coalesce(OLD.paused_by, NEW.paused_by) = 'schedule:code') IS TRUE THEN
            PERFORM draftsman.deny_access('schedules.undeclared', jsonb_build_object(
                        'schedule', NEW.name));
        END IF;
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE OR REPLACE TRIGGER schedules_session BEFORE INSERT OR UPDATE OR DELETE ON draftsman.schedules
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_schedule();

-- Whether a description of a job type declares this schedule, in whose name no person is.
CREATE OR REPLACE FUNCTION draftsman.is_declared(schedule draftsman.schedules) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT schedule.origin = 'code' AND schedule.created_by = 'schedule:code'
       AND schedule.template IS NULL AND EXISTS (
           SELECT FROM draftsman.job_types t, json_array_elements(t.schedules) d
            WHERE d ->> 'name' = schedule.name AND d ->> 'rule' = schedule.rule
              AND d ->> 'zone' = schedule.timezone
              AND schedule.request = jsonb_build_object('type', t.name, 'payload',
                                                        (d -> 'payload')::jsonb))
$$;

-- Whether a bot may change a schedule: for its author, or for an operator.
CREATE OR REPLACE FUNCTION draftsman.is_controlled_in_chat(author text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.acts_in_chat(author, 'invoker') OR EXISTS (
           SELECT FROM draftsman.people p WHERE draftsman.acts_in_chat(p.name, 'operator'))
$$;

-- A person records only occurrences that own jobs ran, of schedules that were run by hand.
CREATE OR REPLACE FUNCTION draftsman.check_fire() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() = 'person' AND NOT EXISTS (
        SELECT FROM draftsman.job_requests r
         WHERE r.number = NEW.job AND NEW.status = 'fired' AND NEW.reason IS NOT NULL
           AND r.invoker_id = draftsman.person_of('cli', session_user::text)) THEN
        PERFORM draftsman.deny_access('schedules.fire');
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER schedule_fires_session BEFORE INSERT ON draftsman.schedule_fires
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.check_fire();

-- Whether a schedule may submit this job now: `schedule:ID:TIME` is the key of its occurrence.
CREATE OR REPLACE FUNCTION draftsman.is_scheduled(key text, invoker text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM draftsman.schedules s
         WHERE s.id::text = split_part(key, ':', 2) AND starts_with(key, 'schedule:')
           AND s.created_by = invoker AND s.paused_at IS NULL)
       AND (invoker = 'schedule:code' OR draftsman.has_role(invoker, 'invoker'))
$$;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER job_templates_immutable BEFORE UPDATE OR DELETE ON draftsman.job_templates
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('schedules.version_immutable');
CREATE OR REPLACE TRIGGER job_templates_no_truncate BEFORE TRUNCATE ON draftsman.job_templates
    EXECUTE FUNCTION draftsman.refuse_change('schedules.version_immutable');
CREATE OR REPLACE TRIGGER job_templates_operators BEFORE INSERT OR UPDATE OR DELETE
    ON draftsman.job_templates
    EXECUTE FUNCTION draftsman.require_operator();

CREATE OR REPLACE TRIGGER schedule_fires_immutable BEFORE UPDATE ON draftsman.schedule_fires
    FOR EACH ROW
    WHEN (OLD.status <> 'waiting' OR (OLD.schedule, OLD.due_at) <> (NEW.schedule, NEW.due_at))
    EXECUTE FUNCTION draftsman.refuse_change('schedules.single_outcome');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_schedules() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.is_template(text, int), draftsman.is_controlled_in_chat(text),
        draftsman.is_declared(draftsman.schedules)');
    SELECT draftsman.grant_to('person', 'INSERT
        ON draftsman.job_templates, draftsman.schedule_fires');
    SELECT draftsman.grant_to('worker', 'INSERT, UPDATE ON draftsman.schedules');
    SELECT draftsman.grant_to('bot', 'INSERT, DELETE, UPDATE (paused_at, paused_by, pause_reason,
        due_at, fire_at) ON draftsman.schedules');
    SELECT draftsman.grant_to('person', 'INSERT, UPDATE, DELETE ON draftsman.schedules');
    SELECT draftsman.grant_to('worker', 'INSERT, UPDATE, DELETE ON draftsman.schedule_fires');
$$;
