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

-- Version -----------------------------------------------------------------------------------------

-- Counts a change in its transaction: who reads the number afterwards sees the change, too.
CREATE OR REPLACE FUNCTION draftsman.count_repo_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE draftsman.repo_catalog SET version = version + 1;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER repos_changed AFTER INSERT OR UPDATE OR DELETE ON draftsman.repos
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.count_repo_change();
CREATE OR REPLACE TRIGGER repo_mappings_changed AFTER INSERT OR UPDATE OR DELETE
    ON draftsman.repo_mappings
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.count_repo_change();
CREATE OR REPLACE TRIGGER repo_profiles_changed AFTER INSERT OR UPDATE OR DELETE
    ON draftsman.repo_profiles
    FOR EACH STATEMENT EXECUTE FUNCTION draftsman.count_repo_change();

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_repos() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('person', 'INSERT, UPDATE, DELETE
        ON draftsman.repos, draftsman.repo_mappings');
    SELECT draftsman.grant_to('person', 'INSERT, UPDATE ON draftsman.repo_profiles');
$$;
