-- Refuses the end of a run that is active now; returns its job.
INSERT INTO soak.refused
SELECT number FROM draftsman.job_states WHERE status = 'running' ORDER BY random() LIMIT 1
RETURNING job;
