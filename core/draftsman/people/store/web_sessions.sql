-- Sign-in links and sessions of the web inbox.

-- name: create_link
SELECT draftsman.create_web_link(%(person)s::text, %(digest)s::text, %(seconds)s::float8)

-- name: person_of_link
SELECT draftsman.person_of_web_link(%(digest)s::text)

-- name: open_session
SELECT draftsman.open_web_session(%(link)s::text, %(person)s::text, %(method)s::text,
           %(digest)s::text, %(user_agent)s::text, %(seconds)s::float8)

-- name: find
SELECT id, person, method, user_agent, created_at, expires_at
  FROM draftsman.find_web_session(%(digest)s::text)

-- name: close
SELECT draftsman.close_web_session(%(digest)s::text)

-- name: sessions
SELECT id, person, method, user_agent, created_at, expires_at
  FROM draftsman.list_web_sessions(%(limit)s::int)

-- name: end
SELECT draftsman.end_web_sessions(%(session)s::bigint, %(person)s::text)
