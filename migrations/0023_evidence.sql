-- Evidence: which tests prove a change, and the signed statement of a job's work.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0023_evidence') AS applied \gset
\if :applied \echo '0023_evidence is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0023_evidence');

ALTER TABLE draftsman.repo_profiles ADD COLUMN evidence jsonb
    CONSTRAINT repo_profiles_evidence_check CHECK (jsonb_typeof(evidence) = 'object');

-- The statement has a reserved name, as the patch has, so that no agent can write one.
ALTER TABLE draftsman.artifacts DROP CONSTRAINT artifacts_kind_check,
    ADD CONSTRAINT artifacts_kind_check CHECK (kind IN ('patch', 'report', 'file', 'bundle',
                                                        'transcript', 'evidence')),
    DROP CONSTRAINT artifacts_reserved,
    ADD CONSTRAINT artifacts_reserved CHECK ((kind = 'patch') = (name = 'changes.patch')
        AND (kind = 'bundle') = (name = 'checkpoint.bundle')
        AND (kind = 'transcript') = (name = 'transcript.jsonl')
        AND (kind = 'evidence') = (name = 'evidence.json'));
