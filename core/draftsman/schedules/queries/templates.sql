-- Versions of job templates.

-- The newest version of each template; a removed template is left out.
-- name: newest
SELECT t.name, t.version, t.definition, t.created_by, t.created_at
  FROM (SELECT DISTINCT ON (name) name, version, definition, created_by, created_at
          FROM draftsman.job_templates
         ORDER BY name, version DESC) t
 WHERE t.definition IS NOT NULL
 ORDER BY t.name
 LIMIT %(limit)s

-- The versions of a template, newest first; up to a version, if it is given.
-- name: versions
SELECT name, version, definition, created_by, created_at
  FROM draftsman.job_templates
 WHERE name = %(name)s AND version <= coalesce(%(version)s::int, 2147483647)
 ORDER BY version DESC
 LIMIT %(limit)s

-- The next version of a template; no row if another session has stored it meanwhile.
-- name: add
INSERT INTO draftsman.job_templates (name, version, definition, created_by)
VALUES (%(name)s, %(version)s, %(definition)s, %(actor)s)
    ON CONFLICT DO NOTHING
RETURNING name, version, definition, created_by, created_at
