-- Descriptions of job types.

INSERT INTO draftsman.schema_functions (name) VALUES ('job_types')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER job_types_immutable BEFORE UPDATE ON draftsman.job_types
    FOR EACH ROW
    WHEN (to_jsonb(OLD) - '{served_at,app}'::text[] <> to_jsonb(NEW) - '{served_at,app}'::text[])
    EXECUTE FUNCTION draftsman.refuse_change('job_types.description_immutable');
CREATE OR REPLACE TRIGGER job_types_kept BEFORE DELETE ON draftsman.job_types
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('job_types.description_immutable');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_job_types() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker', 'INSERT, UPDATE (served_at, app) ON draftsman.job_types');
$$;
