-- Who approved a gate may still deny it while it is open: one accepted vote of each kind a person.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0005_denials');

DROP INDEX draftsman.job_answers_vote;
CREATE UNIQUE INDEX job_answers_vote
    ON draftsman.job_answers (job, question, voter, (payload ->> 'decision'))
    NULLS NOT DISTINCT WHERE accepted AND kind = 'approval';
