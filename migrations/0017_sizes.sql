-- Limits of the size of texts and documents, and of times, in tables that people, bots and programs
-- of chats write. The programs refuse larger values with a message (draftsman.sizes); a
-- session with psql meets these constraints. Requests are checked by forged_column(), and tables
-- that a run writes have limits of their own: a constraint is prepared again for each statement.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0017_sizes') AS applied \gset
\if :applied \echo '0017_sizes is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0017_sizes');

-- Conditions of tables name this function; its text is in functions/database.sql.
CREATE FUNCTION draftsman.has_long_texts(texts text[], most int, characters int) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN false;

-- Adds the constraint `TABLE_sizes`. A text has at most 4,000 characters, a list at most 1,000
-- texts of this size, and a document a megabyte and 500 levels, except as `larger` says; a time is
-- in the years 1 to 9999, which programs can read. Packages of channels call it for their tables.
CREATE FUNCTION draftsman.limit_sizes(target text, larger jsonb DEFAULT '{}') RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    conditions text;
BEGIN
    SELECT string_agg(CASE format_type(a.atttypid, NULL)
               WHEN 'text' THEN format('char_length(%I) <= %s', a.attname,
                    coalesce(larger ->> a.attname, '4000'))
               WHEN 'text[]' THEN format('NOT draftsman.has_long_texts(%I, 1000, %s)', a.attname,
                    coalesce(larger ->> a.attname, '4000'))
               WHEN 'json' THEN format('octet_length(%I::text) <= %s', a.attname,
                    coalesce(larger ->> a.attname, '1048576'))
               WHEN 'jsonb' THEN format('octet_length(%1$I::text) <= %2$s
                    AND NOT jsonb_path_exists(%1$I, ''strict $.**{500}'')', a.attname,
                    coalesce(larger ->> a.attname, '1048576'))
               ELSE format('%I BETWEEN ''0001-01-02Z'' AND ''9999-12-30Z''', a.attname) END,
               ' AND ' ORDER BY a.attnum)
      INTO conditions
      FROM pg_attribute a
     WHERE a.attrelid = ('draftsman.' || target)::regclass AND a.attnum > 0 AND NOT a.attisdropped
       AND (format_type(a.atttypid, NULL) IN ('text', 'text[]', 'json', 'jsonb')
            OR format_type(a.atttypid, NULL) = 'timestamp with time zone'
               AND target <> 'channel_limits');  -- whose times begin with -infinity
    EXECUTE format('ALTER TABLE draftsman.%I ADD CONSTRAINT %I CHECK (%s)', target,
                   target || '_sizes', conditions);
END $$;

SELECT draftsman.limit_sizes(t.name, t.larger)
  FROM (VALUES
      ('people', '{}'::jsonb),
      ('person_identities', '{}'),
      ('identity_links', '{}'),
      ('bound_accounts', '{}'),
      ('people_groups', '{}'),
      ('job_targets', '{"thread_key": 9000}'),
      ('unique_keys', '{}'),
      ('job_answers', '{}'),
      ('refused_answers', '{}'),
      ('approval_tokens', '{}'),
      ('deliveries', '{"thread_key": 9000, "last_error": 100000}'),
      ('channel_limits', '{}'),
      ('repos', '{}'),
      ('repo_mappings', '{}'),
      ('repo_profiles', '{}'),
      ('queue_pauses', '{}'),
      ('queue_changes', '{}'),
      ('job_pauses', '{}'),
      ('dismissals', '{}'),
      ('leases', '{}'),
      ('job_templates', '{}'),
      ('schedules', '{}'),
      ('schedule_fires', '{}'),
      ('job_groups', '{}'),
      ('job_messages', '{"text": 100000}'),
      ('pending_decisions', '{}'),
      ('live_threads', '{}'),
      ('forge_events', '{"text": 100000}'),
      ('pull_requests', '{}'),
      ('permission_rules', '{}')) AS t (name, larger);
