-- What a request costs the database, made less.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0006_leaner');

-- A request as it is sent: what a batch shares is read once and completed by what each one has.
CREATE TYPE draftsman.request AS (
    id                    uuid,
    type                  text,
    idempotency_key       text,
    request_digest        text,
    queue                 text,
    priority              int,
    subject_key           text,
    mode                  draftsman.job_mode,
    source                draftsman.channel,
    source_type           draftsman.source_type,
    external_event_id     text,
    invoker_id            text,
    invoker_display_name  text,
    repo_owner            text,
    repo_name             text,
    ticket_url            text,
    ticket_title          text,
    ticket_text           text,
    payload               jsonb,
    overrides             jsonb,
    requested_skills      text[],
    tags                  text[],
    agent                 text,
    retry_of              bigint,
    chain_length          int,
    run_at                timestamptz,
    delay                 float8,
    max_attempts          int,
    max_retries           int,
    on_lost               draftsman.on_lost
);
