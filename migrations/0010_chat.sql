-- What chat needs: whose thread a reply is in, and who somebody is whom no configuration names.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0010_chat');

--   job_targets_thread  the jobs that were asked for in a thread
--   deliveries_slack    the job of a message that was posted, by which a reply to it is known
CREATE INDEX job_targets_thread ON draftsman.job_targets (target, thread)
    WHERE thread IS NOT NULL;
CREATE INDEX deliveries_slack ON draftsman.deliveries (external_ref)
    WHERE channel = 'slack' AND external_ref IS NOT NULL;

-- Somebody's id in a channel, and the person that it was linked to with a code that counts once.
CREATE TABLE draftsman.identity_links (
    channel          draftsman.channel NOT NULL,
    external_id      text NOT NULL CHECK (external_id <> ''),
    display_name     text NOT NULL DEFAULT '',
    code_hash        text,
    code_expires_at  timestamptz,
    person           text CHECK (person <> ''),
    linked_by        text,
    linked_at        timestamptz,
    created_at       timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (channel, external_id),
    CONSTRAINT identity_links_code UNIQUE (code_hash),
    CONSTRAINT identity_links_expires CHECK ((code_hash IS NULL) = (code_expires_at IS NULL)),
    CONSTRAINT identity_links_linked CHECK ((person IS NULL) = (linked_at IS NULL)
        AND (person IS NULL) = (linked_by IS NULL))
);
