-- Activity of agents: the newest rows of each job, and transcripts of runs as artifacts.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0020_activity') AS applied \gset
\if :applied \echo '0020_activity is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0020_activity');

CREATE TABLE draftsman.run_activity (
    job         bigint NOT NULL,
    run         int NOT NULL,
    seq         int NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('message', 'thought', 'tool', 'file', 'plan', 'usage',
                                              'note')),
    state       text CHECK (state IN ('pending', 'running', 'completed', 'failed', 'created',
                                      'changed', 'deleted')),
    key         text CHECK (length(key) <= 500),
    text        text NOT NULL CHECK (length(text) <= 16000),
    detail      jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(detail::text) <= 131072),
    continues   boolean NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, run, seq)
);

ALTER TABLE draftsman.artifacts DROP CONSTRAINT artifacts_kind_check,
    ADD CONSTRAINT artifacts_kind_check
        CHECK (kind IN ('patch', 'report', 'file', 'bundle', 'transcript')),
    DROP CONSTRAINT artifacts_reserved,
    ADD CONSTRAINT artifacts_reserved CHECK ((kind = 'patch') = (name = 'changes.patch')
        AND (kind = 'bundle') = (name = 'checkpoint.bundle')
        AND (kind = 'transcript') = (name = 'transcript.jsonl'));

-- Workers write activity as they write logs. `grant_roles` is changed in place, so that the
-- privileges of other migrations stay as they are.
DO $$
DECLARE
    before text := pg_get_functiondef('draftsman.grant_roles()'::regprocedure);
    after  text := replace(before, 'draftsman.run_log_chunks TO draftsman_worker',
                           'draftsman.run_log_chunks, draftsman.run_activity TO draftsman_worker');
BEGIN
    IF after = before THEN
        RAISE EXCEPTION 'grant_roles() has no privileges on run_log_chunks';
    END IF;
    EXECUTE after;
END $$;
SELECT draftsman.grant_roles();
