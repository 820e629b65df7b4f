-- Known repositories, the labels that are mapped to them, and their profiles.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0008_repos') AS applied \gset
\if :applied \echo '0008_repos is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0008_repos');

-- The name of a repository is unique regardless of case. A URL with credentials is refused,
-- because it would be stored here forever.
CREATE TABLE draftsman.repos (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host             text NOT NULL DEFAULT '',
    owner            text NOT NULL DEFAULT '',
    name             text NOT NULL CHECK (name <> ''),
    remote_url       text NOT NULL CHECK (remote_url <> ''),
    default_branch   text CHECK (default_branch <> ''),
    is_default       boolean NOT NULL DEFAULT false,
    added_by         text NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT draftsman.now(),
    updated_at       timestamptz NOT NULL DEFAULT draftsman.now(),
    CONSTRAINT repos_url UNIQUE (remote_url),
    CONSTRAINT repos_no_secret CHECK (remote_url !~ '^[A-Za-z0-9+.-]+://[^/]*:[^/]*@'
        AND remote_url !~* '^https?://[^/]*@')
);
CREATE UNIQUE INDEX repos_named ON draftsman.repos (lower(host), lower(owner), lower(name));
CREATE UNIQUE INDEX repos_default ON draftsman.repos (is_default) WHERE is_default;

-- The repository of a card's label: by the id of the label, or by a name that several boards
-- share.
CREATE TABLE draftsman.repo_mappings (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    trello_label_id    text CHECK (trello_label_id <> ''),
    trello_label_name  text CHECK (trello_label_name <> ''),
    repo               bigint NOT NULL REFERENCES draftsman.repos ON DELETE CASCADE,
    path               text NOT NULL DEFAULT '',
    added_by           text NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT draftsman.now(),
    updated_at         timestamptz NOT NULL DEFAULT draftsman.now(),
    CONSTRAINT repo_mappings_label CHECK (num_nonnulls(trello_label_id, trello_label_name) > 0),
    CONSTRAINT repo_mappings_id UNIQUE (trello_label_id)
);
CREATE UNIQUE INDEX repo_mappings_name
    ON draftsman.repo_mappings (lower(trello_label_name), repo, path) WHERE trello_label_id IS NULL;
CREATE INDEX repo_mappings_repo ON draftsman.repo_mappings (repo);

-- Setup, validation and fix commands of a repository or of a folder in it.
CREATE TABLE draftsman.repo_profiles (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo                 bigint NOT NULL REFERENCES draftsman.repos ON DELETE CASCADE,
    path                 text NOT NULL DEFAULT '',
    profile_type         text NOT NULL DEFAULT 'unknown',
    setup_commands       jsonb NOT NULL DEFAULT '[]',
    validation_commands  jsonb NOT NULL DEFAULT '[]',
    fix_commands         jsonb NOT NULL DEFAULT '[]',
    env                  jsonb NOT NULL DEFAULT '{}',
    agent                text,
    network              jsonb NOT NULL DEFAULT 'true'
                         CHECK (jsonb_typeof(network) IN ('boolean', 'array')),
    agent_config         jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(agent_config) = 'array'),
    budget               jsonb NOT NULL DEFAULT '{}',
    path_allowlist       jsonb,
    risky_paths          jsonb,
    default_skills       jsonb NOT NULL DEFAULT '[]',
    max_iterations       int NOT NULL DEFAULT 5 CHECK (max_iterations > 0),
    max_runtime_seconds  int NOT NULL DEFAULT 900 CHECK (max_runtime_seconds > 0),
    max_files_changed    int NOT NULL DEFAULT 20 CHECK (max_files_changed > 0),
    max_loc_delta        int NOT NULL DEFAULT 500 CHECK (max_loc_delta > 0),
    evidence             jsonb CHECK (jsonb_typeof(evidence) = 'object'),
    policy               jsonb CHECK (jsonb_typeof(policy) = 'object'),
    ladders              jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(ladders) = 'object'),
    checked_at           timestamptz,
    checked_commit       text,
    checks               jsonb NOT NULL DEFAULT '[]',
    updated_by           text NOT NULL,
    created_at           timestamptz NOT NULL DEFAULT draftsman.now(),
    updated_at           timestamptz NOT NULL DEFAULT draftsman.now(),
    CONSTRAINT repo_profiles_path UNIQUE (repo, path),
    CONSTRAINT repo_profiles_checked CHECK ((checked_at IS NULL) = (checked_commit IS NULL))
);

-- The repository of a job without one may be found while it runs. Afterwards it never changes: the rules
-- and the identical questions of a repository, and its limits, are those of the job.
CREATE FUNCTION draftsman.check_repo_assignment() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.repo_name IS NOT NULL AND (OLD.repo_host, OLD.repo_owner, OLD.repo_name)
       IS DISTINCT FROM (NEW.repo_host, NEW.repo_owner, NEW.repo_name) THEN
        RAISE EXCEPTION 'D-% has a repository, which cannot change', NEW.number
            USING ERRCODE = 'DM002';
    END IF;
    PERFORM draftsman.refuse_change(s.number)
       FROM draftsman.job_states s WHERE s.number = NEW.number AND s.finished_at IS NOT NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER job_requests_repo BEFORE UPDATE OF repo_host, repo_owner, repo_name
    ON draftsman.job_requests FOR EACH ROW EXECUTE FUNCTION draftsman.check_repo_assignment();
