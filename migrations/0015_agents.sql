-- What only a worker may write of its agents' work, which tree a gate was asked about, and quotas.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0015_agents');

-- Steps of the worker itself, such as the branch that it published, have keys of their own. A worker
-- of an earlier version names no owner: the key tells it.
ALTER TABLE draftsman.job_steps ADD COLUMN owner text;
UPDATE draftsman.job_steps
   SET owner = CASE WHEN key ~ '^(agent|sleep):' THEN 'worker' ELSE 'handler' END;
ALTER TABLE draftsman.job_steps ALTER COLUMN owner SET NOT NULL;
ALTER TABLE draftsman.job_steps ADD CONSTRAINT job_steps_owner
    CHECK (owner = CASE WHEN key ~ '^(agent|sleep):' THEN 'worker' ELSE 'handler' END);
CREATE FUNCTION draftsman.own_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.owner := CASE WHEN NEW.key ~ '^(agent|sleep):' THEN 'worker' ELSE 'handler' END;
    RETURN NEW;
END $$;
CREATE TRIGGER job_steps_owned BEFORE INSERT ON draftsman.job_steps FOR EACH ROW
    WHEN (NEW.owner IS NULL) EXECUTE FUNCTION draftsman.own_step();

-- A patch and a work bundle have names of their own, and no other file has one of them. Rows that
-- are there already may break that: readers go by the kind.
ALTER TABLE draftsman.artifacts ADD CONSTRAINT artifacts_reserved
    CHECK ((kind = 'patch') = (name = 'changes.patch')
           AND (kind = 'bundle') = (name = 'checkpoint.bundle')) NOT VALID;

-- The patch of the tree that the run had saved when it asked; NULL: there was none.
-- Beside the question: the first release reads whole rows of job_questions.
ALTER TABLE draftsman.question_times ADD COLUMN patch_sha256 text
    CONSTRAINT question_times_patch CHECK (patch_sha256 ~ '^[0-9a-f]{64}$');
CREATE VIEW draftsman.asked_questions AS
    SELECT q.job, q.ordinal, q.run, q.key, q.kind, q.status, q.text, q.choices, q.freeform_allowed,
           q.context_snippet, q.approvers, q.quorum, q.on_expire, q.default_value, q.on_deny,
           q.digest, q.action, q.resolution, q.asked_at, q.expires_at, q.answered_at,
           coalesce(t.reminders, 0) AS reminders, t.escalate_to, t.escalated_at, t.patch_sha256
      FROM draftsman.job_questions q
      LEFT JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal;

-- What the runs of a job used up of its quotas. A row is made with the first use.
CREATE TABLE draftsman.job_quotas (
    job    bigint NOT NULL REFERENCES draftsman.jobs,
    quota  text NOT NULL CHECK (quota IN ('events', 'steps', 'artifacts', 'checkpoints',
                                          'questions', 'log')),
    count  bigint NOT NULL CHECK (count >= 0),
    bytes  bigint NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (job, quota)
) WITH (fillfactor = 70);
