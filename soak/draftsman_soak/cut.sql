-- Ends a share of the clients' connections, as a network that fails does.
SELECT count(pg_terminate_backend(pid))
  FROM pg_stat_activity
 WHERE datname = 'draftsman' AND backend_type = 'client backend' AND pid <> pg_backend_pid()
   AND random() < %(share)s;
