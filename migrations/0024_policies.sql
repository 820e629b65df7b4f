-- Policies: the keys of a repository that differ from the policy of the configuration.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0024_policies') AS applied \gset
\if :applied \echo '0024_policies is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0024_policies');

ALTER TABLE draftsman.repo_profiles ADD COLUMN policy jsonb
    CONSTRAINT repo_profiles_policy_check CHECK (jsonb_typeof(policy) = 'object');
