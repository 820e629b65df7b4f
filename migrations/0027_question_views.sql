-- The first view of each question by each person, from which the figures of people are computed.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0027_question_views') AS applied \gset
\if :applied \echo '0027_question_views is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0027_question_views');

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

ALTER FUNCTION draftsman.grant_roles() RENAME TO grant_roles_before_views;
CREATE FUNCTION draftsman.grant_roles() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    missing text := draftsman.grant_roles_before_views();
    role    text;
BEGIN
    FOREACH role IN ARRAY '{draftsman_worker,draftsman_bot,draftsman_person,draftsman_reader}'::text[]
    LOOP
        CONTINUE WHEN to_regrole(role) IS NULL;
        EXECUTE format('GRANT EXECUTE ON FUNCTION draftsman.figures_of() TO %I', role);
        CONTINUE WHEN role NOT IN ('draftsman_bot', 'draftsman_person');
        EXECUTE format('GRANT EXECUTE ON FUNCTION draftsman.record_views(
            bigint[], int[], draftsman.channel, text, text) TO %I', role);
    END LOOP;
    RETURN missing;
END $$;
