-- Activity of agents: the newest rows of each job.

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
