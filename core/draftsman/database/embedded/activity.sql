-- Clients connected now, this session excluded, and sessions ever begun. Ask it in the database
-- `postgres`, so that asking does not count as a session.
SELECT
    (SELECT count(*) FROM pg_stat_activity
      WHERE backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()),
    (SELECT coalesce(sum(sessions), 0) FROM pg_stat_database WHERE datname <> 'postgres');
