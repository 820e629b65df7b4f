-- Permission rules: patterns of commands that agents may run without a question, ratified by people.

SELECT EXISTS (SELECT FROM draftsman.schema_migrations WHERE name = '0025_rules') AS applied \gset
\if :applied \echo '0025_rules is already applied' \quit \endif
INSERT INTO draftsman.schema_migrations (name) VALUES ('0025_rules');

-- Patterns -------------------------------------------------------------------------------------

-- Characters without a meaning to a shell; the same as in draftsman.domain.attention.command_pattern.
CREATE FUNCTION draftsman.are_plain_words(words text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT cardinality($1) BETWEEN 1 AND 30 AND array_position($1, NULL) IS NULL
       AND $1[1] ~ '^[A-Za-z0-9_][A-Za-z0-9_.+-]*$' COLLATE "C"
       AND (SELECT bool_and(word ~ '^[A-Za-z0-9_./:=@,+-]+$' COLLATE "C") FROM unnest($1) AS w (word))
$$;

-- A path without `..` and hidden files, and maybe names of tests in it.
CREATE FUNCTION draftsman.is_inner_path(path text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT $1 ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*(::[A-Za-z0-9_]+)*$'
                COLLATE "C"
$$;

-- A pattern has the words of a command; `DIR/*` stands for a file in a folder, `DIR/**` for a path
-- below it.
CREATE FUNCTION draftsman.is_pattern(pattern text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.are_plain_words(ARRAY(
               SELECT CASE WHEN n > 1 AND word ~ '/\*{1,2}$' AND word NOT LIKE '%::%'
                                AND draftsman.is_inner_path(rtrim(rtrim(word, '*'), '/'))
                      THEN rtrim(word, '*') ELSE word END
                 FROM unnest($1) WITH ORDINALITY AS w (word, n) ORDER BY n))
$$;

-- Whether a pattern matches the words of a command.
CREATE FUNCTION draftsman.matches_pattern(pattern text[], words text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT cardinality($1) = cardinality($2)
       AND (SELECT bool_and(CASE WHEN expected ~ '/\*{1,2}$'
                            THEN starts_with(word, rtrim(expected, '*'))
                                 AND draftsman.is_inner_path(path)
                                 AND (expected LIKE '%**' OR strpos(path, '/') = 0)
                            ELSE word = expected END)
              FROM unnest($1, $2) AS w (expected, word)
             CROSS JOIN LATERAL (
                   SELECT substr(word, length(rtrim(expected, '*')) + 1) AS path) p)
$$;

-- Tables --------------------------------------------------------------------------------------

-- The command that an agent asked to run, if it is plain and the question shows it.
CREATE TABLE draftsman.permission_requests (
    job       bigint NOT NULL,
    question  int NOT NULL,
    repo      text NOT NULL CHECK (repo <> ''),
    words     text[] NOT NULL CHECK (draftsman.are_plain_words(words)),
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal)
);
--   permission_requests_repo  the recorded decisions of a repository, newest first
CREATE INDEX permission_requests_repo ON draftsman.permission_requests (repo, job DESC);

-- `seconds` is how long it allows commands after a person ratified it. A rule that has expired stays
-- active until the same pattern is proposed again.
CREATE TYPE draftsman.rule_status AS ENUM ('proposed', 'active', 'revoked');
CREATE TABLE draftsman.permission_rules (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo         text NOT NULL CHECK (repo <> ''),
    pattern      text[] NOT NULL CHECK (draftsman.is_pattern(pattern)),
    status       draftsman.rule_status NOT NULL DEFAULT 'proposed',
    decisions    bigint NOT NULL CHECK (decisions >= 0),
    seconds      float8 NOT NULL CHECK (seconds > 0 AND seconds <= 366 * 86400),
    proposed_at  timestamptz NOT NULL DEFAULT draftsman.now(),
    proposed_by  text NOT NULL CHECK (proposed_by <> ''),
    ratified_at  timestamptz,
    ratified_by  text CHECK (ratified_by <> ''),
    expires_at   timestamptz,
    ended_at     timestamptz,
    ended_by     text CHECK (ended_by <> ''),
    end_reason   text CHECK (end_reason <> ''),
    CONSTRAINT permission_rules_ratified CHECK (
        (ratified_at IS NULL) = (ratified_by IS NULL) AND (ratified_at IS NULL) = (expires_at IS NULL)
        AND (status <> 'active' OR ratified_at IS NOT NULL)
        AND (status <> 'proposed' OR ratified_at IS NULL)),
    CONSTRAINT permission_rules_expiry CHECK (expires_at <= ratified_at + interval '367 days'),
    CONSTRAINT permission_rules_ended CHECK ((status = 'revoked') = (ended_at IS NOT NULL)
        AND (ended_at IS NULL) = (ended_by IS NULL) AND (ended_at IS NULL) = (end_reason IS NULL))
);
--   permission_rules_current  a single rule of a pattern is proposed or active
CREATE UNIQUE INDEX permission_rules_current ON draftsman.permission_rules (repo, pattern)
    WHERE status IN ('proposed', 'active');
CREATE TRIGGER permission_rules_immutable BEFORE UPDATE ON draftsman.permission_rules FOR EACH ROW
    WHEN (OLD.status = 'revoked' OR (OLD.repo, OLD.pattern, OLD.decisions, OLD.proposed_at, OLD.proposed_by)
             IS DISTINCT FROM (NEW.repo, NEW.pattern, NEW.decisions, NEW.proposed_at, NEW.proposed_by)
          OR (OLD.status = 'active' AND (NEW.status = 'proposed' OR
              (OLD.seconds, OLD.ratified_at, OLD.ratified_by, OLD.expires_at)
                  IS DISTINCT FROM (NEW.seconds, NEW.ratified_at, NEW.ratified_by, NEW.expires_at))))
    EXECUTE FUNCTION draftsman.refuse_change('a rule that ended and its pattern are kept');
CREATE TRIGGER permission_rules_no_delete BEFORE DELETE ON draftsman.permission_rules FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('rules are never deleted');
CREATE TRIGGER permission_rules_no_truncate BEFORE TRUNCATE ON draftsman.permission_rules
    EXECUTE FUNCTION draftsman.refuse_change('rules are never deleted');
CREATE TRIGGER permission_requests_immutable BEFORE UPDATE OR DELETE
    ON draftsman.permission_requests FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('permission requests are never deleted');
CREATE TRIGGER permission_requests_no_truncate BEFORE TRUNCATE ON draftsman.permission_requests
    EXECUTE FUNCTION draftsman.refuse_change('permission requests are never deleted');

-- Questions that a rule has answered.
CREATE TABLE draftsman.rule_uses (
    job       bigint NOT NULL,
    question  int NOT NULL,
    rule      bigint NOT NULL REFERENCES draftsman.permission_rules,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.permission_requests
);
--   rule_uses_rule  the questions that a rule answered
CREATE INDEX rule_uses_rule ON draftsman.rule_uses (rule, job, question);
CREATE TRIGGER rule_uses_immutable BEFORE UPDATE OR DELETE ON draftsman.rule_uses FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('uses of rules are never deleted');
CREATE TRIGGER rule_uses_no_truncate BEFORE TRUNCATE ON draftsman.rule_uses
    EXECUTE FUNCTION draftsman.refuse_change('uses of rules are never deleted');

-- Decisions of people on commands. Only those made in a chat, a terminal, the dashboard or on a forge
-- are evidence for a rule: an answer that came with the request, or of a program, is none. Denials count from
-- everywhere. Answers are immutable, whatever happens to their question. `press` identifies the click or
-- message, which may have answered several questions and is a single decision.
CREATE VIEW draftsman.permission_decisions AS
    SELECT p.job, p.question, p.repo, p.words, a.voter, a.created_at,
           coalesce(a.payload ->> 'value' IN ('allow once', 'allow for this job'), false) AS allowed,
           a.source IN ('slack', 'trello', 'tui', 'cli', 'forge') AS is_evidence,
           a.source || ':' || a.responder_id || ' ' || a.source_event_id AS press
      FROM draftsman.permission_requests p
      JOIN draftsman.job_answers a ON a.job = p.job AND a.question = p.question AND a.accepted;

-- Decisions ------------------------------------------------------------------------------------

-- Whether a question is a permission request with the usual choices that shows this command and no
-- other, so that people decide on what is recorded.
CREATE FUNCTION draftsman.shows_command(asked draftsman.job_questions, words text[]) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ($1).kind = 'input' AND ($1).status = 'open' AND ($1).on_expire = 'expire'
       AND NOT EXISTS (SELECT FROM draftsman.question_times t WHERE t.job = ($1).job
                          AND t.question = ($1).ordinal AND t.critical)
       AND (SELECT array_agg(ARRAY[c ->> 'value', c ->> 'label'] ORDER BY n)
              FROM jsonb_array_elements(($1).choices) WITH ORDINALITY AS e (c, n))
           = '{{allow once,allow once},{deny,deny},{allow for this job,allow for this job}}'
       AND NOT EXISTS (SELECT FROM jsonb_array_elements(($1).choices) c WHERE c ? 'emoji')  -- :x: for allow
       AND (SELECT array_agg(line) FROM regexp_split_to_table(
                ($1).text, E'[\n\r\u000B\u000C\u001C-\u001E\u0085\u2028\u2029]') AS line
             WHERE line ~ '^\s*\$\s') = ARRAY['$ ' || array_to_string($2, ' ')]
$$;

-- Serializes denials and proposals in a repository: a denial ends every rule that it matches, and
-- none is proposed afterwards.
CREATE FUNCTION draftsman.lock_rules(repo text) RETURNS void LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('draftsman.permission_rules ' || $1, 0))
$$;

-- Records the command of the question that the caller's transaction has asked, and returns the rule
-- that allows it; no row if people have to decide. The rule stays locked until the transaction ends: one that
-- is being revoked is waited for, and then allows nothing.
CREATE FUNCTION draftsman.decide_by_rule(job bigint, question int, words text[])
RETURNS TABLE (rule bigint, pattern text[]) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked   draftsman.job_questions;
    in_repo text;
    chosen  draftsman.permission_rules;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') THEN
        PERFORM draftsman.deny_access(format('%s cannot ask for commands', session_user));
    END IF;
    SELECT concat_ws('/', r.repo_host, r.repo_owner, r.repo_name) INTO in_repo
      FROM draftsman.job_requests r WHERE r.number = $1 AND r.repo_name <> '';
    SELECT q.* INTO asked FROM draftsman.job_questions q
     WHERE q.job = $1 AND q.ordinal = $2
       FOR NO KEY UPDATE;
    IF in_repo IS NULL OR draftsman.shows_command(asked, $3) IS NOT TRUE THEN
        RETURN;
    END IF;
    INSERT INTO draftsman.permission_requests (job, question, repo, words)
    VALUES ($1, $2, in_repo, $3);
    SELECT r.* INTO chosen FROM draftsman.permission_rules r
     WHERE r.repo = in_repo AND r.status = 'active' AND r.expires_at > draftsman.now()
       AND draftsman.matches_pattern(r.pattern, $3)
     ORDER BY r.id
     LIMIT 1
       FOR SHARE;
    IF FOUND THEN
        INSERT INTO draftsman.rule_uses (job, question, rule) VALUES ($1, $2, chosen.id);
        RETURN QUERY SELECT chosen.id, chosen.pattern;
    END IF;
END $$;

-- Whether a rule has answered a question so.
CREATE FUNCTION draftsman.is_allowed_by_rule(job bigint, question int, resolution jsonb)
RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT $3 = jsonb_build_object('outcome', 'answered', 'via', 'rule', 'value', 'allow once',
                                   'rule', r.id, 'reason', array_to_string(r.pattern, ' '))
      FROM draftsman.rule_uses u JOIN draftsman.permission_rules r ON r.id = u.rule
     WHERE u.job = $1 AND u.question = $2
$$;

-- A person denied a command: the rules that match it end at once.
CREATE FUNCTION draftsman.revoke_denied_rules() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    denied draftsman.permission_decisions;
BEGIN
    SELECT d.* INTO denied FROM draftsman.permission_decisions d
     WHERE d.job = NEW.job AND d.question = NEW.question AND NOT d.allowed;
    IF FOUND THEN
        PERFORM draftsman.lock_rules(denied.repo);
        UPDATE draftsman.permission_rules r
           SET status = 'revoked', ended_at = draftsman.now(), ended_by = NEW.voter,
               end_reason = format('%s denied D-%s/%s', NEW.voter, NEW.job, NEW.question)
         WHERE r.repo = denied.repo AND r.status IN ('proposed', 'active')
           AND draftsman.matches_pattern(r.pattern, denied.words);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_answers_denied AFTER INSERT ON draftsman.job_answers FOR EACH ROW
    WHEN (NEW.accepted AND NEW.kind = 'input'
          AND (NEW.payload ->> 'value' IN ('allow once', 'allow for this job')) IS NOT TRUE)
    EXECUTE FUNCTION draftsman.revoke_denied_rules();

-- Rules ---------------------------------------------------------------------------------------

-- Proposes a rule if people allowed matching commands at least `minimum` times since the last rule of
-- the pattern ended, and denied none. Returns its id, NULL if there is nothing to propose. The
-- system needs two decisions at least; a person needs none, since another decision ratifies.
CREATE FUNCTION draftsman.propose_rule(
    repo text, pattern text[], minimum bigint, seconds float8, actor text
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last_end  timestamptz;
    decisions bigint;
    denials   bigint;
    proposed  bigint;
BEGIN
    IF $5 = 'system' THEN
        IF draftsman.session_kind() NOT IN ('owner', 'worker') THEN
            PERFORM draftsman.deny_access(format('%s cannot act as %s', session_user, $5));
        END IF;
        minimum := greatest($3, 2);
    ELSE
        PERFORM draftsman.require_rule_editor($5);
    END IF;
    PERFORM draftsman.lock_rules($1);
    UPDATE draftsman.permission_rules r
       SET status = 'revoked', ended_at = r.expires_at, ended_by = 'system', end_reason = 'expired'
     WHERE r.repo = $1 AND r.pattern = $2 AND r.status = 'active' AND r.expires_at <= draftsman.now();
    SELECT max(r.ended_at) INTO last_end FROM draftsman.permission_rules r
     WHERE r.repo = $1 AND r.pattern = $2;
    SELECT count(DISTINCT d.press) FILTER (WHERE d.allowed AND d.is_evidence
                              AND d.created_at > coalesce(last_end, '-infinity')),
           count(*) FILTER (WHERE NOT d.allowed)
      INTO decisions, denials
      FROM draftsman.permission_decisions d
     WHERE d.repo = $1 AND draftsman.matches_pattern($2, d.words);
    IF denials = 0 AND decisions >= minimum THEN
        INSERT INTO draftsman.permission_rules (repo, pattern, decisions, seconds, proposed_by)
        VALUES ($1, $2, decisions, $4, coalesce(draftsman.person_of_actor($5), $5))
            ON CONFLICT DO NOTHING
        RETURNING id INTO proposed;
    END IF;
    RETURN proposed;
END $$;

-- Raises an error unless the session may change rules as this actor: an operator with a session of
-- their own, or in Slack, whose bot shows the buttons of a proposal. No other bot decides on rules.
CREATE FUNCTION draftsman.require_rule_editor(actor text) RETURNS void LANGUAGE plpgsql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.may_act_as($1)
       AND (draftsman.session_kind() = 'person'
            OR draftsman.session_kind() = 'bot' AND $1 LIKE 'slack:%')
       AND draftsman.has_role(draftsman.person_of_actor($1), 'operator')) IS NOT TRUE THEN
        PERFORM draftsman.deny_access(format('%s may not change rules', $1));
    END IF;
END $$;

-- Makes a proposed rule active for its time, or for `seconds`; false if it is not proposed any more.
-- A bot gives no time of its own.
CREATE FUNCTION draftsman.ratify_rule(rule bigint, actor text, person text, seconds float8)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := draftsman.session_kind();
BEGIN
    PERFORM draftsman.require_rule_editor($2);
    IF kind = 'bot' AND $4 IS NOT NULL THEN
        PERFORM draftsman.deny_access(format('%s may not change the time of a rule', $2));
    END IF;
    UPDATE draftsman.permission_rules r
       SET status = 'active', ratified_at = draftsman.now(), seconds = coalesce($4, r.seconds),
           ratified_by = CASE WHEN kind = 'owner' THEN $3 ELSE draftsman.person_of_actor($2) END,
           expires_at = draftsman.now() + make_interval(secs => coalesce($4, r.seconds))
     WHERE r.id = $1 AND r.status = 'proposed';
    RETURN FOUND;
END $$;

-- Ends a proposed or active rule; false if it has ended.
CREATE FUNCTION draftsman.revoke_rule(rule bigint, actor text, person text, reason text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := draftsman.session_kind();
BEGIN
    PERFORM draftsman.require_rule_editor($2);
    UPDATE draftsman.permission_rules r
       SET status = 'revoked', ended_at = draftsman.now(), end_reason = $4,
           ended_by = CASE WHEN kind = 'owner' THEN $3 ELSE draftsman.person_of_actor($2) END
     WHERE r.id = $1 AND r.status IN ('proposed', 'active');
    RETURN FOUND;
END $$;
