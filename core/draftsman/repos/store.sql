-- Registered repositories, their label mappings, and their profiles.

-- name: catalog_version
SELECT version FROM draftsman.repo_catalog

-- name: all_repos
SELECT id, host, owner, name, remote_url, default_branch, is_default, added_by,
       created_at, updated_at
  FROM draftsman.repos
 ORDER BY lower(owner), lower(name), lower(host)
 LIMIT %(limit)s

-- name: mappings
SELECT id, label_id, label_name, repo, path, added_by, created_at
  FROM draftsman.repo_mappings
 ORDER BY id
 LIMIT %(limit)s

-- Folders with a profile.
-- name: profiled_folders
SELECT repo, path FROM draftsman.repo_profiles ORDER BY repo, path LIMIT %(limit)s

-- name: add
INSERT INTO draftsman.repos (host, owner, name, remote_url, default_branch, added_by)
VALUES (%(host)s, %(owner)s, %(name)s, %(remote_url)s, %(default_branch)s, %(actor)s)
    ON CONFLICT DO NOTHING
RETURNING id

-- The repositories with one of these URLs or names: those that prevent others from being added.
-- name: repos_at
SELECT id, host, owner, name, remote_url, default_branch, is_default, added_by,
       created_at, updated_at
  FROM draftsman.repos
 WHERE remote_url = ANY(%(urls)s)
    OR (lower(host), lower(owner), lower(name)) IN (
           SELECT lower(k.host), lower(k.owner), lower(k.name)
             FROM unnest(%(hosts)s::text[], %(owners)s::text[], %(names)s::text[])
                  AS k (host, owner, name))

-- name: remove
DELETE FROM draftsman.repos WHERE id = %(id)s RETURNING id

-- name: clear_default
UPDATE draftsman.repos SET is_default = false, updated_at = draftsman.now()
 WHERE is_default AND id IS DISTINCT FROM %(id)s
RETURNING id

-- name: set_default
UPDATE draftsman.repos SET is_default = true, updated_at = draftsman.now()
 WHERE id = %(id)s
RETURNING id

-- A label's id maps to a single repository: the newest mapping replaces the others.
-- name: map_id
INSERT INTO draftsman.repo_mappings (label_id, label_name, repo, path, added_by)
VALUES (%(label_id)s, %(label_name)s, %(repo)s, %(path)s, %(actor)s)
    ON CONFLICT (label_id)
       DO UPDATE SET label_name = excluded.label_name, repo = excluded.repo,
                     path = excluded.path, added_by = excluded.added_by
RETURNING id

-- name: map_name
INSERT INTO draftsman.repo_mappings (label_name, repo, path, added_by)
VALUES (%(label_name)s, %(repo)s, %(path)s, %(actor)s)
    ON CONFLICT (lower(label_name), repo, path) WHERE label_id IS NULL
       DO UPDATE SET added_by = excluded.added_by
RETURNING id

-- By the label's id or by its name; of a repository, or of all.
-- name: unmap
DELETE FROM draftsman.repo_mappings
 WHERE (label_id = %(label)s OR lower(label_name) = lower(%(label)s))
   AND (%(repo)s::bigint IS NULL OR repo = %(repo)s)
RETURNING id

-- name: save_profile
INSERT INTO draftsman.repo_profiles AS p (repo, path, profile_type, setup_commands,
       validation_commands, fix_commands, env, agent, network, agent_config, budget, path_allowlist,
       risky_paths, default_skills, check_files, ordinary_files, lfs, submodules, left_out, evidence, policy, git, ladders, max_iterations, max_runtime_seconds,
       max_files_changed, max_loc_delta, checked_at, checked_commit, checks, updated_by)
SELECT %(repo)s, f.path, f.profile_type, f.setup_commands, f.validation_commands, f.fix_commands,
       f.env, f.agent, f.network, f.agent_config, f.budget, f.path_allowlist, f.risky_paths,
       f.default_skills, f.check_files, f.ordinary_files, f.lfs, f.submodules, f.left_out, f.evidence, f.policy, f.git, f.ladders, f.max_iterations, f.max_runtime_seconds,
       f.max_files_changed, f.max_loc_delta,
       CASE WHEN %(commit)s::text IS NOT NULL THEN draftsman.now() END, %(commit)s, %(checks)s,
       %(actor)s
  FROM jsonb_populate_record(NULL::draftsman.repo_profiles, %(fields)s) f
    ON CONFLICT (repo, path)
       DO UPDATE SET profile_type = excluded.profile_type,
                     setup_commands = excluded.setup_commands,
                     validation_commands = excluded.validation_commands,
                     fix_commands = excluded.fix_commands, env = excluded.env,
                     agent = excluded.agent, network = excluded.network,
                     agent_config = excluded.agent_config, budget = excluded.budget,
                     path_allowlist = excluded.path_allowlist, risky_paths = excluded.risky_paths,
                     default_skills = excluded.default_skills,
                     check_files = excluded.check_files,
                     ordinary_files = excluded.ordinary_files, lfs = excluded.lfs,
                     submodules = excluded.submodules, left_out = excluded.left_out,
                     evidence = excluded.evidence, policy = excluded.policy, git = excluded.git,
                     ladders = excluded.ladders,
                     max_iterations = excluded.max_iterations,
                     max_runtime_seconds = excluded.max_runtime_seconds,
                     max_files_changed = excluded.max_files_changed,
                     max_loc_delta = excluded.max_loc_delta, checked_at = excluded.checked_at,
                     checked_commit = excluded.checked_commit, checks = excluded.checks,
                     updated_by = excluded.updated_by, updated_at = draftsman.now()
RETURNING id

-- name: profiles
SELECT p.path, p.profile_type, p.setup_commands, p.validation_commands, p.fix_commands, p.env,
       p.agent, p.network, p.agent_config, p.budget, p.path_allowlist, p.risky_paths,
       p.default_skills, p.check_files, p.ordinary_files, p.lfs, p.submodules, p.left_out, p.evidence, p.policy, p.git, p.ladders, p.max_iterations, p.max_runtime_seconds,
       p.max_files_changed, p.max_loc_delta, p.checked_at, p.checked_commit, p.checks, p.updated_by, p.updated_at
  FROM draftsman.repo_profiles p
 WHERE p.repo = %(repo)s AND (%(path)s::text IS NULL OR p.path = %(path)s)
 ORDER BY p.path
 LIMIT %(limit)s

-- name: save_check
UPDATE draftsman.repo_profiles
   SET checked_at = draftsman.now(), checked_commit = %(commit)s, checks = %(checks)s
 WHERE repo = %(repo)s AND path = %(path)s
RETURNING id

-- The repository of a job that was submitted without a repository.
-- name: assign
WITH owned AS (
    UPDATE draftsman.job_states SET updated_at = draftsman.now()
     WHERE number = %(job)s AND lease_token = %(token)s AND status = 'running'
       AND cancel_requested_at IS NULL
    RETURNING number
)
UPDATE draftsman.job_requests r SET repo_host = %(host)s, repo_owner = %(owner)s, repo_name = %(name)s
  FROM owned m
 WHERE r.number = m.number
RETURNING r.number
