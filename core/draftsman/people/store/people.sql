-- Identity links, created with a code, and people.

-- A new code replaces the previous code; an existing link stays until the code is used.
-- name: create_link_code
SELECT draftsman.issue_link_code(%(channel)s::draftsman.channel, %(id)s::text, %(name)s::text,
                            %(hash)s::text, %(seconds)s::float8)

-- name: link
SELECT channel, external_id, display_name, person_name AS person, linked_by, linked_at
  FROM draftsman.link_identity(%(hash)s::text, %(person)s::text, %(actor)s::text)

-- name: unlink
SELECT draftsman.unlink_identity(%(channel)s::draftsman.channel, %(id)s::text)

-- name: bind_account
SELECT draftsman.bind_account(%(channel)s::draftsman.channel, %(id)s::text,
    %(account_id)s::text)

-- name: person
SELECT person FROM draftsman.identity_links WHERE channel = %(channel)s AND external_id = %(id)s

-- name: links
SELECT channel, external_id, display_name, person, linked_by, linked_at
  FROM draftsman.identity_links
 WHERE person IS NOT NULL
 ORDER BY person, channel, external_id
 LIMIT %(limit)s

-- All people, as a document.
-- name: directory
SELECT jsonb_build_object(
    'people', (SELECT jsonb_agg(jsonb_build_object(
            'name', p.name, 'roles', p.roles, 'quiet_hours', p.quiet_hours, 'timezone', p.timezone,
            'working_hours', p.working_hours, 'holidays', p.holidays,
            'accounts', (SELECT coalesce(jsonb_agg(jsonb_build_array(i.channel, i.external_id)
                                                   ORDER BY i.channel, i.place), '[]')
                           FROM draftsman.person_identities i
                          WHERE i.person = p.name)) ORDER BY p.name)
         FROM draftsman.people p),
    'groups', (SELECT jsonb_object_agg(g.name, g.members) FROM (
           SELECT name, jsonb_agg(member ORDER BY member) AS members
             FROM draftsman.people_groups GROUP BY name) g),
    'self_approval', coalesce((SELECT self_approval FROM draftsman.approval_policy), false))

-- name: save
SELECT draftsman.save_people(%(directory)s)
