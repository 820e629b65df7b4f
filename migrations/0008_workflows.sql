-- Jobs that wait until others have ended, and groups of jobs that run at the same time or one after
-- another.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0008_workflows') AS applied \gset
\if :applied \echo '0008_workflows is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0008_workflows');

-- How a parent has to end. Every end that is not `completed` is a failure.
CREATE TYPE draftsman.dependency_condition AS ENUM ('success', 'failure', 'any');

-- A job and a parent that it waits for. Parents are older than their children, so there are no
-- cycles. A job that was spawned by a run is younger than the job that gathers it, except that a
-- retry takes over the completed jobs of the job that it retries: `met` is NULL only while that
-- waits; `spawn_key` is the key under which the run spawned it. Only functions write this table;
-- they check that both jobs exist.
CREATE TABLE draftsman.job_dependencies (
    job        bigint NOT NULL,
    parent     bigint NOT NULL,
    ordinal    int NOT NULL CHECK (ordinal > 0),
    condition  draftsman.dependency_condition NOT NULL,
    met        boolean,
    spawned    boolean NOT NULL DEFAULT false,
    spawn_key  text,
    PRIMARY KEY (job, parent),
    CONSTRAINT job_dependencies_older CHECK (CASE WHEN spawned THEN parent <> job
                                                  ELSE parent < job END),
    CONSTRAINT job_dependencies_spawned CHECK (spawned = (spawn_key IS NOT NULL))
) WITH (fillfactor = 70);

COMMENT ON TABLE draftsman.job_dependencies IS
    'A job and a parent that it waits for: the job starts when all its parents have ended as '
    'their conditions say (docs/workflows.md).';
COMMENT ON COLUMN draftsman.job_dependencies.job IS 'the job that waits';
COMMENT ON COLUMN draftsman.job_dependencies.parent IS
    'the job that has to end first; always older';
COMMENT ON COLUMN draftsman.job_dependencies.ordinal IS 'the order of the parents in the request';
COMMENT ON COLUMN draftsman.job_dependencies.condition IS
    'how the parent has to end: `success` (completed), `failure` (any other end) or `any`';
COMMENT ON COLUMN draftsman.job_dependencies.met IS
    'whether the parent ended as the condition says; NULL: it has not ended';
COMMENT ON COLUMN draftsman.job_dependencies.spawned IS
    'whether a run of the job spawned the other job, which is younger';
COMMENT ON COLUMN draftsman.job_dependencies.spawn_key IS
    'the key under which it was spawned; a job spawns a single job under each';

--   job_dependencies_pkey    the parents of a job
--   job_dependencies_parent  the children of a job
--   job_dependencies_unmet   the parents that a job waits for, and those that ended otherwise
--   job_dependencies_keys    the jobs that a job spawned: one under each key
CREATE INDEX job_dependencies_parent ON draftsman.job_dependencies (parent, job);
CREATE INDEX job_dependencies_unmet ON draftsman.job_dependencies (job, met) WHERE met IS NOT TRUE;
CREATE UNIQUE INDEX job_dependencies_keys ON draftsman.job_dependencies (job, spawn_key)
    WHERE spawned;

-- New jobs that wait for parents, of sessions other than the owner's, until their transaction ends:
-- without a parent that has not ended, a job would wait for ever.
CREATE TABLE draftsman.unlinked_jobs (
    job  bigint PRIMARY KEY
);

COMMENT ON TABLE draftsman.unlinked_jobs IS
    'Jobs that the current transaction submitted to wait for parents; each is removed at its end.';
COMMENT ON COLUMN draftsman.unlinked_jobs.job IS 'the job, which must have a parent by then';

-- Jobs that a person has canceled with a tree or a group of more than 1,000 jobs, and that the
-- leader cancels in batches.
CREATE TABLE draftsman.pending_cancels (
    job     bigint PRIMARY KEY,
    actor   text NOT NULL CHECK (actor <> ''),
    reason  text,
    due_at  timestamptz NOT NULL DEFAULT draftsman.now()
);

COMMENT ON TABLE draftsman.pending_cancels IS
    'Jobs that a person has canceled with a tree or a group of more than 1,000 jobs, until the '
    'leader cancels them.';
COMMENT ON COLUMN draftsman.pending_cancels.job IS 'the job';
COMMENT ON COLUMN draftsman.pending_cancels.actor IS 'the person';
COMMENT ON COLUMN draftsman.pending_cancels.reason IS 'the reason given';
COMMENT ON COLUMN draftsman.pending_cancels.due_at IS
    'when the leader cancels it; a second later if another transaction has locked it';

CREATE INDEX pending_cancels_due ON draftsman.pending_cancels (due_at);

-- The row of a group is locked by additions, by a cancel, and by the end of a member that stops it.
CREATE TABLE draftsman.job_groups (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'),
    kind           text NOT NULL CHECK (kind IN ('parallel', 'sequential')),
    on_failure     text NOT NULL CHECK (on_failure IN ('stop', 'continue')),
    created_by     text NOT NULL CHECK (created_by <> ''),
    created_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    canceled_at    timestamptz,
    canceled_by    text,
    cancel_reason  text CHECK (cancel_reason <> ''),
    CONSTRAINT job_groups_name UNIQUE (name),
    CONSTRAINT job_groups_canceled CHECK ((canceled_at IS NULL) = (canceled_by IS NULL)
        AND (cancel_reason IS NULL OR canceled_at IS NOT NULL))
);

COMMENT ON TABLE draftsman.job_groups IS
    'Groups of jobs, which run at the same time or one after another (docs/workflows.md#groups).';
COMMENT ON COLUMN draftsman.job_groups.id IS 'the number that its members refer to';
COMMENT ON COLUMN draftsman.job_groups.name IS 'the name, which no other group has';
COMMENT ON COLUMN draftsman.job_groups.kind IS
    '`parallel`, or `sequential`: each job waits for the job before it';
COMMENT ON COLUMN draftsman.job_groups.on_failure IS
    '`stop`: the jobs that have not started are canceled if a job ends otherwise than completed; '
    'or `continue`';
COMMENT ON COLUMN draftsman.job_groups.created_by IS 'the person who created it';
COMMENT ON COLUMN draftsman.job_groups.created_at IS 'when it was created';
COMMENT ON COLUMN draftsman.job_groups.canceled_at IS
    'when it was canceled; jobs that are added later are canceled at once';
COMMENT ON COLUMN draftsman.job_groups.canceled_by IS 'the person who canceled it';
COMMENT ON COLUMN draftsman.job_groups.cancel_reason IS 'the reason';

-- A job is in a single group. A retry has the ordinal of its job; the newest job of an ordinal
-- counts. `skipped_by` is the member whose end canceled a job of a parallel group before its start.
-- Jobs without a group have no row: only functions write this table.
CREATE TABLE draftsman.job_group_members (
    job         bigint PRIMARY KEY,
    group_id    bigint NOT NULL REFERENCES draftsman.job_groups,
    ordinal     int NOT NULL CHECK (ordinal > 0),
    skipped_by  bigint,
    CONSTRAINT job_group_members_skipped CHECK (skipped_by <> job)
);

COMMENT ON TABLE draftsman.job_group_members IS
    'The jobs of groups, each in a single group. A job without a group has no row.';
COMMENT ON COLUMN draftsman.job_group_members.job IS 'the job';
COMMENT ON COLUMN draftsman.job_group_members.group_id IS 'its group';
COMMENT ON COLUMN draftsman.job_group_members.ordinal IS
    'its place in the group; a retry has the place of its job, and the newest job of a place '
    'counts';
COMMENT ON COLUMN draftsman.job_group_members.skipped_by IS
    'the job of a parallel group whose end canceled this job before its start';

--   job_group_members_pkey   the group of a job
--   job_group_members_order  the jobs of a group
--   job_group_members_skips  the jobs that were skipped because of a job
CREATE UNIQUE INDEX job_group_members_order
    ON draftsman.job_group_members (group_id, ordinal, job DESC);
CREATE INDEX job_group_members_skips ON draftsman.job_group_members (skipped_by)
    WHERE skipped_by IS NOT NULL;
