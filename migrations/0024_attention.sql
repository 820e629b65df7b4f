-- The time of people: first views of questions, acknowledgments and snoozes.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0024_attention') AS applied \gset
\if :applied \echo '0024_attention is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0024_attention');

-- A person who may answer the question opened it while it was open.
CREATE TABLE draftsman.question_views (
    job       bigint NOT NULL,
    question  int NOT NULL,
    person    text NOT NULL CHECK (person <> ''),
    channel   draftsman.channel NOT NULL,
    seen_at   timestamptz NOT NULL DEFAULT draftsman.now(),
    PRIMARY KEY (job, question, person),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);
CREATE TRIGGER question_views_immutable BEFORE UPDATE OR DELETE ON draftsman.question_views
    FOR EACH ROW EXECUTE FUNCTION draftsman.refuse_change('the first view is kept');
CREATE TRIGGER question_views_no_truncate BEFORE TRUNCATE ON draftsman.question_views
    EXECUTE FUNCTION draftsman.refuse_change('the first view is kept');

--   job_questions_asked   the questions of the last days, for figures
CREATE INDEX job_questions_asked ON draftsman.job_questions (asked_at);

-- The person whose figures the session may read, '' without one; NULL: those of all people.
CREATE FUNCTION draftsman.figures_of() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN k.kind IN ('owner', 'worker') THEN NULL
                WHEN k.kind = 'person' AND draftsman.has_role(p.name, 'operator') THEN NULL
                WHEN k.kind = 'person' THEN coalesce(p.name, '')
                ELSE '' END
      FROM (SELECT draftsman.session_kind() AS kind) k
     CROSS JOIN LATERAL (SELECT draftsman.person_of('cli', session_user::text) AS name) p
$$;
ALTER TABLE draftsman.question_views ENABLE ROW LEVEL SECURITY;
CREATE POLICY question_views_read ON draftsman.question_views FOR SELECT
    USING (coalesce(draftsman.figures_of() = person, true));

-- Records the first view of open questions. `person` counts in a session of the owner only; the person
-- of other sessions is that of their identity.
CREATE FUNCTION draftsman.record_views(
    jobs bigint[], questions int[], source draftsman.channel, actor_id text, person text
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind   text := draftsman.session_kind();
    viewer text := CASE WHEN kind = 'owner' THEN $5 ELSE draftsman.person_of($3::text, $4) END;
    added  bigint;
BEGIN
    IF kind = 'worker' OR NOT draftsman.may_act_as($3 || ':' || $4) THEN
        PERFORM draftsman.deny_access(format('%s cannot view as %s:%s', session_user, $3, $4));
    END IF;
    INSERT INTO draftsman.question_views (job, question, person, channel)
    SELECT q.job, q.ordinal, viewer, $3
      FROM unnest($1, $2) AS v (job, question)
      JOIN draftsman.job_questions q ON q.job = v.job AND q.ordinal = v.question
     WHERE q.status = 'open' AND viewer IS NOT NULL
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END $$;

-- A person works on the answer: all reminders of the question wait until then.
CREATE TABLE draftsman.question_acknowledgments (
    job         bigint NOT NULL,
    question    int NOT NULL,
    person      text NOT NULL CHECK (person <> ''),
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- A person gets no reminder of the question until then.
CREATE TABLE draftsman.question_snoozes (
    job         bigint NOT NULL,
    question    int NOT NULL,
    person      text NOT NULL CHECK (person <> ''),
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (job, question, person),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);

-- Whether a person may answer an open question, by the rules of `check_answer`.
CREATE FUNCTION draftsman.may_answer(job bigint, question int, person text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((
        SELECT q.status = 'open' AND CASE WHEN q.kind = 'approval' THEN
                   draftsman.has_role($3, 'approver')
                   AND draftsman.list_includes($3, q.approvers)
                   AND ($3 <> j.invoker_id
                        OR (SELECT p.self_approval FROM draftsman.approval_policy p)) IS TRUE
               ELSE j.invoker_id = $3 OR draftsman.has_role($3, 'responder')
                    OR draftsman.list_includes($3, q.approvers) END
          FROM draftsman.job_questions q
          JOIN draftsman.job_requests j ON j.number = q.job
         WHERE q.job = $1 AND q.ordinal = $2), false)
$$;

-- The person in whose name the session delays reminders of a question; raises an error without the
-- right. `person` counts in a session of the owner only.
CREATE FUNCTION draftsman.require_responder(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8
) RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := draftsman.session_kind();
    name text := CASE WHEN kind = 'owner' THEN $5 ELSE draftsman.person_of($3::text, $4) END;
BEGIN
    IF kind = 'worker' OR NOT draftsman.may_act_as($3 || ':' || $4) OR name IS NULL
       OR (kind <> 'owner' AND NOT draftsman.may_answer($1, $2, name)) THEN
        PERFORM draftsman.deny_access(
            format('%s:%s may not delay reminders of D-%s/%s', $3, $4, $1, $2));
    END IF;
    IF $6 <= 0 OR $6 > 86400 THEN
        PERFORM draftsman.deny_access('reminders can be delayed by more than 0 s and at most a day');
    END IF;
    RETURN name;
END $$;

-- Acknowledges a question, unless the acknowledgment of another person holds; returns the one that
-- holds afterwards.
CREATE FUNCTION draftsman.acknowledge_question(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8
) RETURNS TABLE (holder text, until timestamptz) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := draftsman.require_responder($1, $2, $3, $4, $5, $6);
BEGIN
    INSERT INTO draftsman.question_acknowledgments AS a (job, question, person, expires_at)
    VALUES ($1, $2, name, draftsman.now() + make_interval(secs => $6))
        ON CONFLICT ON CONSTRAINT question_acknowledgments_pkey DO UPDATE
           SET person = excluded.person, expires_at = excluded.expires_at
         WHERE a.person = excluded.person OR a.expires_at <= draftsman.now();
    IF FOUND THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        SELECT $1, 'question_acknowledged', $3 || ':' || $4,
               jsonb_build_object('question', $2, 'by', a.person, 'until', a.expires_at)
          FROM draftsman.question_acknowledgments a WHERE a.job = $1 AND a.question = $2;
    END IF;
    RETURN QUERY
    SELECT a.person, a.expires_at FROM draftsman.question_acknowledgments a
     WHERE a.job = $1 AND a.question = $2;
END $$;

-- Pauses the reminders of one person; a second snooze replaces the first.
CREATE FUNCTION draftsman.snooze_question(
    job bigint, question int, source draftsman.channel, actor_id text, person text, seconds float8
) RETURNS timestamptz LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO draftsman.question_snoozes AS s (job, question, person, expires_at)
    VALUES ($1, $2, draftsman.require_responder($1, $2, $3, $4, $5, $6),
            draftsman.now() + make_interval(secs => $6))
        ON CONFLICT ON CONSTRAINT question_snoozes_pkey DO UPDATE
           SET expires_at = excluded.expires_at
    RETURNING s.expires_at
$$;
