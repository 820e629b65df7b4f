-- Descriptions of job types.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0018_job_types') AS applied \gset
\if :applied \echo '0018_job_types is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0018_job_types');

-- What the code of a job type declares, as the workers that have it publish it. During a deploy,
-- workers serve several versions of a name: the one that was published last is valid.
CREATE TABLE draftsman.job_types (
    name          text NOT NULL CHECK (name ~ '^[A-Za-z][A-Za-z0-9_.:-]{0,99}$'),
    version       text NOT NULL CHECK (version ~ '^[0-9a-f]{64}$'),
    place         text NOT NULL CHECK (place <> ''),
    description   text NOT NULL,
    title         text CHECK (title <> ''),
    queue         text CHECK (queue ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'),
    concurrency   text CHECK (concurrency <> ''),
    parameters    json NOT NULL CHECK (json_typeof(parameters) = 'object'),  -- keeps their order
    payload_version int NOT NULL DEFAULT 1 CHECK (payload_version > 0),
    migrates      boolean NOT NULL DEFAULT false,
    limits        jsonb NOT NULL CHECK (jsonb_typeof(limits) = 'object'),
    aliases       text[] NOT NULL,
    schedules     json NOT NULL DEFAULT '[]' CHECK (json_typeof(schedules) = 'array'),
    app           text NOT NULL DEFAULT '',
    published_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    served_at     timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (name, version)
);

COMMENT ON TABLE draftsman.job_types IS
    'Descriptions of job types, which workers publish. Only `served_at` and `app` change.';
COMMENT ON COLUMN draftsman.job_types.name IS 'the job type';
COMMENT ON COLUMN draftsman.job_types.version IS 'SHA-256 of the description';
COMMENT ON COLUMN draftsman.job_types.place IS 'the module and the function: `company.jobs:weekly`';
COMMENT ON COLUMN draftsman.job_types.description IS 'the docstring of the function';
COMMENT ON COLUMN draftsman.job_types.title IS 'the title of its jobs, with parameters in braces';
COMMENT ON COLUMN draftsman.job_types.queue IS 'the queue of its jobs; empty: `default`';
COMMENT ON COLUMN draftsman.job_types.concurrency IS
    'the concurrency key of its jobs, with parameters in braces';
COMMENT ON COLUMN draftsman.job_types.parameters IS 'the JSON Schema of the payload';
COMMENT ON COLUMN draftsman.job_types.payload_version IS 'the version of the parameters';
COMMENT ON COLUMN draftsman.job_types.migrates IS
    'whether it migrates payloads of older versions when their jobs run';
COMMENT ON COLUMN draftsman.job_types.limits IS 'the limits that the code sets';
COMMENT ON COLUMN draftsman.job_types.aliases IS 'former names, whose jobs it runs';
COMMENT ON COLUMN draftsman.job_types.schedules IS
    'the schedules that it declares: `name`, `rule`, `zone` and `payload` of each';
COMMENT ON COLUMN draftsman.job_types.app IS
    'the app whose worker served it last: a module; empty: a worker without an app';
COMMENT ON COLUMN draftsman.job_types.published_at IS 'when a worker published it first';
COMMENT ON COLUMN draftsman.job_types.served_at IS 'when a worker that serves it started last';

SELECT draftsman.limit_sizes('job_types', '{"description": 20000}');
