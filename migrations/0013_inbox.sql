-- Open questions are walked through in the order of their expiry, page by page, however many share one
-- or never expire.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0013_inbox');

DROP INDEX draftsman.job_questions_expiry;
CREATE INDEX job_questions_expiry ON draftsman.job_questions (expires_at, job, ordinal)
    WHERE status = 'open';
