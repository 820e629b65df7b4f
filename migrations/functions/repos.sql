-- Known repositories, the labels that are mapped to them, and their profiles.

INSERT INTO draftsman.schema_functions (name) VALUES ('repos')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER repos_operators BEFORE INSERT OR UPDATE OR DELETE ON draftsman.repos
    EXECUTE FUNCTION draftsman.require_operator();

CREATE OR REPLACE TRIGGER repo_mappings_operators BEFORE INSERT OR UPDATE OR DELETE
    ON draftsman.repo_mappings
    EXECUTE FUNCTION draftsman.require_operator();

CREATE OR REPLACE TRIGGER repo_profiles_operators BEFORE INSERT OR UPDATE OR DELETE
    ON draftsman.repo_profiles
    EXECUTE FUNCTION draftsman.require_operator();

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_repos() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('person', 'INSERT, UPDATE, DELETE
        ON draftsman.repos, draftsman.repo_mappings');
    SELECT draftsman.grant_to('person', 'INSERT, UPDATE ON draftsman.repo_profiles');
$$;
