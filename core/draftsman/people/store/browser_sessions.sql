-- Sign-in links, and sessions of browsers.

-- name: create_link
SELECT draftsman.create_sign_in_link(%(person)s::text, %(digest)s::text, %(seconds)s::float8)

-- name: person_of_link
SELECT draftsman.person_of_sign_in_link(%(digest)s::text)

-- name: open_session
SELECT draftsman.open_browser_session(%(link)s::text, %(person)s::text, %(method)s::text,
           %(digest)s::text, %(user_agent)s::text, %(seconds)s::float8)

-- name: find
SELECT id, person, method, user_agent, created_at, expires_at
  FROM draftsman.find_browser_session(%(digest)s::text)

-- name: close
SELECT draftsman.close_browser_session(%(digest)s::text)

-- name: sessions
SELECT id, person, method, user_agent, created_at, expires_at
  FROM draftsman.list_browser_sessions(%(limit)s::int)

-- name: end
SELECT draftsman.end_browser_sessions(%(session)s::bigint, %(person)s::text)
