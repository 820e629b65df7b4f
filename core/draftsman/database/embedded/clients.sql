-- The programs that are connected now, with their numbers of connections. Who asks in the database
-- `postgres`, such as the watcher of an idle server, does not count.
SELECT coalesce(nullif(application_name, ''), 'unknown'), count(*)
  FROM pg_stat_activity
 WHERE backend_type IN ('client backend', 'walsender') AND datname IS DISTINCT FROM 'postgres'
 GROUP BY 1
 ORDER BY 2 DESC, 1
