-- The number of starts and ends of runs so far.
SELECT count(*) FROM draftsman.event_stream
 WHERE to_status IS NOT NULL AND actor LIKE 'worker:%';
