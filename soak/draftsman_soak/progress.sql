-- The number of starts and ends of runs so far.
SELECT count(*) FROM draftsman.job_events
 WHERE to_status IS NOT NULL AND actor LIKE 'worker:%';
