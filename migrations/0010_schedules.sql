-- Templates of jobs.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0010_schedules');

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
