-- Permission rules: patterns of commands that agents may run without a question, ratified by
-- people.

INSERT INTO draftsman.schema_functions (name) VALUES ('rules')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Patterns ----------------------------------------------------------------------------------------

-- Characters without a meaning to a shell; the same as in
-- draftsman.questions.permission_rules.command_pattern.
CREATE OR REPLACE FUNCTION draftsman.are_plain_words(words text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT cardinality(words) BETWEEN 1 AND 30 AND array_position(words, NULL) IS NULL
       AND words[1] ~ '^[A-Za-z0-9_][A-Za-z0-9_.+-]*$' COLLATE "C"
       AND (SELECT bool_and(word ~ '^[A-Za-z0-9_./:=@,+-]+$' COLLATE "C")
              FROM unnest(words) AS w (word))
$$;

-- A path without `..` and hidden files, and maybe names of tests in it.
CREATE OR REPLACE FUNCTION draftsman.is_inner_path(path text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT path ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*(::[A-Za-z0-9_]+)*$'
                COLLATE "C"
$$;

-- A pattern has the words of a command; `DIR/*` stands for a file in a folder, `DIR/**` for a path
-- below it.
CREATE OR REPLACE FUNCTION draftsman.is_pattern(pattern text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT draftsman.are_plain_words(ARRAY(
               SELECT CASE WHEN n > 1 AND word ~ '/\*{1,2}$' AND word NOT LIKE '%::%'
                                AND draftsman.is_inner_path(rtrim(rtrim(word, '*'), '/'))
                      THEN rtrim(word, '*') ELSE word END
                 FROM unnest(pattern) WITH ORDINALITY AS w (word, n) ORDER BY n))
$$;

-- Whether a pattern matches the words of a command.
CREATE OR REPLACE FUNCTION draftsman.matches_pattern(pattern text[], words text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT cardinality(pattern) = cardinality(words)
       AND (SELECT bool_and(CASE WHEN expected ~ '/\*{1,2}$'
                            THEN starts_with(word, rtrim(expected, '*'))
                                 AND draftsman.is_inner_path(path)
                                 AND (expected LIKE '%**' OR strpos(path, '/') = 0)
                            ELSE word = expected END)
              FROM unnest(pattern, words) AS w (expected, word)
             CROSS JOIN LATERAL (
                   SELECT substr(word, length(rtrim(expected, '*')) + 1) AS path) p)
$$;

-- Questions about commands ------------------------------------------------------------------------

-- Decisions of people on commands. Only those made in a chat, a terminal, the dashboard or on a
-- forge are evidence for a rule: an answer that came with the request, or of a program, is none.
-- Denials count from everywhere. Answers are immutable, whatever happens to their question. `press`
-- identifies the click or message, which may have answered several questions and is a single
-- decision.
CREATE OR REPLACE VIEW draftsman.permission_decisions AS
    SELECT p.job, p.question, p.repo, p.words, a.voter, a.created_at,
           coalesce(a.payload ->> 'value' IN ('allow once', 'allow for this job'), false)
               AS allowed,
           coalesce(c.is_evidence, false) AS is_evidence,
           a.source || ':' || a.responder_id || ' ' || a.source_event_id AS press
      FROM draftsman.permission_requests p
      JOIN draftsman.job_answers a ON a.job = p.job AND a.question = p.question AND a.accepted
      LEFT JOIN draftsman.channels c ON c.name = a.source;

-- Records the command of the question that the caller's transaction has asked, and returns the rule
-- that allows it; no row if people have to decide. The rule stays locked until the transaction
-- ends: one that is being revoked is waited for, and then allows nothing.
CREATE OR REPLACE FUNCTION draftsman.decide_by_rule(job bigint, question int, words text[])
RETURNS TABLE (rule bigint, pattern text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked   draftsman.job_questions;
    in_repo text;
    chosen  draftsman.permission_rules;
BEGIN
    IF draftsman.session_kind() NOT IN ('owner', 'worker') THEN
        PERFORM draftsman.deny_access('questions.workers_ask_for_commands');
    END IF;
    SELECT draftsman.repo_of(r) INTO in_repo
      FROM draftsman.job_requests r WHERE r.number = job AND r.repo_name <> '';
    SELECT q.* INTO asked FROM draftsman.job_questions q
     WHERE q.job = decide_by_rule.job AND q.ordinal = question
       FOR NO KEY UPDATE;
    IF in_repo IS NULL OR draftsman.shows_command(asked, words) IS NOT TRUE THEN
        RETURN;
    END IF;
    INSERT INTO draftsman.permission_requests (job, question, repo, words)
    VALUES (job, question, in_repo, words);
    SELECT r.* INTO chosen FROM draftsman.permission_rules r
     WHERE r.repo = in_repo AND r.status = 'active' AND r.expires_at > draftsman.now()
       AND draftsman.matches_pattern(r.pattern, words)
     ORDER BY r.id
     LIMIT 1
       FOR SHARE;
    IF FOUND THEN
        INSERT INTO draftsman.rule_uses (job, question, rule) VALUES (job, question, chosen.id);
        RETURN QUERY SELECT chosen.id, chosen.pattern;
    END IF;
END $$;

-- Whether a question is a permission request with the usual choices that shows this command and no
-- other, so that people decide on what is recorded.
CREATE OR REPLACE FUNCTION draftsman.shows_command(
    asked draftsman.job_questions, words text[]
) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT asked.kind = 'input' AND asked.status = 'open' AND asked.on_expire = 'expire'
       AND NOT EXISTS (SELECT FROM draftsman.question_times t WHERE t.job = asked.job
                          AND t.question = asked.ordinal AND t.critical)
       AND (SELECT array_agg(ARRAY[c ->> 'value', c ->> 'label'] ORDER BY n)
              FROM jsonb_array_elements(asked.choices) WITH ORDINALITY AS e (c, n))
           = '{{allow once,allow once},{deny,deny},{allow for this job,allow for this job}}'
       -- :x: for allow
       AND NOT EXISTS (SELECT FROM jsonb_array_elements(asked.choices) c WHERE c ? 'emoji')
       AND (SELECT array_agg(line) FROM regexp_split_to_table(
                asked.text, E'[\n\r\u000B\u000C\u001C-\u001E\u0085\u2028\u2029]') AS line
             WHERE line ~ '^\s*\$\s') = ARRAY['$ ' || array_to_string(words, ' ')]
$$;

-- Whether a rule has answered a question so.
CREATE OR REPLACE FUNCTION draftsman.is_allowed_by_rule(
    job bigint, question int, resolution jsonb
) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT resolution = jsonb_build_object('outcome', 'answered', 'via', 'rule',
                                           'value', 'allow once',
                                   'rule', r.id, 'reason', array_to_string(r.pattern, ' '))
      FROM draftsman.rule_uses u JOIN draftsman.permission_rules r ON r.id = u.rule
     WHERE u.job = is_allowed_by_rule.job AND u.question = is_allowed_by_rule.question
$$;

-- A person denied a command: the rules that match it end at once.
CREATE OR REPLACE FUNCTION draftsman.revoke_denied_rules() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    denied draftsman.permission_decisions;
BEGIN
    SELECT d.* INTO denied FROM draftsman.permission_decisions d
     WHERE d.job = NEW.job AND d.question = NEW.question AND NOT d.allowed;
    IF FOUND THEN
        PERFORM draftsman.lock_rules(denied.repo);
        UPDATE draftsman.permission_rules r
           SET status = 'revoked', ended_at = draftsman.now(), ended_by = NEW.voter,
               end_reason = draftsman.sentence('questions.rule_denied', jsonb_build_object(
                   'voter', NEW.voter, 'job', NEW.job, 'question', NEW.question))::text
         WHERE r.repo = denied.repo AND r.status IN ('proposed', 'active')
           AND draftsman.matches_pattern(r.pattern, denied.words);
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_answers_denied AFTER INSERT ON draftsman.job_answers FOR EACH ROW
    WHEN (NEW.accepted AND NEW.kind = 'input'
          AND (NEW.payload ->> 'value' IN ('allow once', 'allow for this job')) IS NOT TRUE)
    EXECUTE FUNCTION draftsman.revoke_denied_rules();

-- Serializes denials and proposals in a repository: a denial ends every rule that it matches, and
-- none is proposed afterwards.
CREATE OR REPLACE FUNCTION draftsman.lock_rules(repo text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('draftsman.permission_rules ' || repo, 0))
$$;

-- Rules -------------------------------------------------------------------------------------------

-- Proposes a rule if people allowed matching commands at least `minimum` times since the last rule
-- of the pattern ended, and denied none. Returns its id, NULL if there is nothing to propose. The
-- system needs two decisions at least; a person needs none, since another decision ratifies.
CREATE OR REPLACE FUNCTION draftsman.propose_rule(
    repo text, pattern text[], minimum bigint, seconds float8, actor text
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last_end  timestamptz;
    decisions bigint;
    denials   bigint;
    proposed  bigint;
BEGIN
    repo := lower(repo);
    IF actor = 'system' THEN
        IF NOT draftsman.has_right(actor, NULL, '{worker}') THEN
            PERFORM draftsman.deny_access('database.actor', jsonb_build_object('actor', actor));
        END IF;
        minimum := greatest(minimum, 2);
    ELSE
        PERFORM draftsman.require_rule_editor(actor);
    END IF;
    PERFORM draftsman.lock_rules(repo);
    UPDATE draftsman.permission_rules r
       SET status = 'revoked', ended_at = r.expires_at, ended_by = 'system', end_reason = 'expired'
     WHERE r.repo = propose_rule.repo AND r.pattern = propose_rule.pattern AND r.status = 'active'
       AND r.expires_at <= draftsman.now();
    SELECT max(r.ended_at) INTO last_end FROM draftsman.permission_rules r
     WHERE r.repo = propose_rule.repo AND r.pattern = propose_rule.pattern;
    SELECT count(DISTINCT d.press) FILTER (WHERE d.allowed AND d.is_evidence
                              AND d.created_at > coalesce(last_end, '-infinity')),
           count(*) FILTER (WHERE NOT d.allowed)
      INTO decisions, denials
      FROM draftsman.permission_decisions d
     WHERE d.repo = propose_rule.repo AND draftsman.matches_pattern(pattern, d.words);
    IF denials = 0 AND decisions >= minimum THEN
        INSERT INTO draftsman.permission_rules (repo, pattern, decisions, seconds, proposed_by)
        VALUES (repo, pattern, decisions, seconds,
                coalesce(draftsman.person_of_actor(actor), actor))
            ON CONFLICT DO NOTHING
        RETURNING id INTO proposed;
    END IF;
    RETURN proposed;
END $$;

-- Makes a proposed rule active for its time, or for `seconds`; false if it is not proposed any
-- more. A bot gives no time of its own.
CREATE OR REPLACE FUNCTION draftsman.ratify_rule(
    rule bigint, actor text, person text, seconds float8
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := draftsman.session_kind();
BEGIN
    PERFORM draftsman.require_rule_editor(actor);
    IF kind = 'bot' AND seconds IS NOT NULL THEN
        PERFORM draftsman.deny_access('questions.rule_time', jsonb_build_object('actor', actor));
    END IF;
    UPDATE draftsman.permission_rules r
       SET status = 'active', ratified_at = draftsman.now(),
           seconds = coalesce(ratify_rule.seconds, r.seconds),
           ratified_by = CASE WHEN kind = 'owner' THEN person
                              ELSE draftsman.person_of_actor(actor) END,
           expires_at = draftsman.now() + make_interval(
               secs => coalesce(ratify_rule.seconds, r.seconds))
     WHERE r.id = rule AND r.status = 'proposed';
    RETURN FOUND;
END $$;

-- Ends a proposed or active rule; false if it has ended.
CREATE OR REPLACE FUNCTION draftsman.revoke_rule(
    rule bigint, actor text, person text, reason text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := draftsman.session_kind();
BEGIN
    PERFORM draftsman.require_rule_editor(actor);
    UPDATE draftsman.permission_rules r
       SET status = 'revoked', ended_at = draftsman.now(), end_reason = reason,
           ended_by = CASE WHEN kind = 'owner' THEN person ELSE draftsman.person_of_actor(actor) END
     WHERE r.id = rule AND r.status IN ('proposed', 'active');
    RETURN FOUND;
END $$;

-- Raises an error unless the session may change rules as this actor: an operator with a session of
-- their own, or in a channel whose bot shows the buttons of a proposal.
CREATE OR REPLACE FUNCTION draftsman.require_rule_editor(actor text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT draftsman.has_right(actor, 'operator', CASE WHEN EXISTS (
               SELECT FROM draftsman.channels c
                WHERE c.name = split_part(actor, ':', 1) AND c.changes_rules)
               THEN '{person,bot}' ELSE '{person}' END::text[]) THEN
        PERFORM draftsman.deny_access('questions.change_rules', jsonb_build_object('actor', actor));
    END IF;
END $$;

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER permission_requests_immutable BEFORE UPDATE OR DELETE
    ON draftsman.permission_requests FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions.permission_requests_kept');
CREATE OR REPLACE TRIGGER permission_requests_no_truncate BEFORE TRUNCATE
    ON draftsman.permission_requests
    EXECUTE FUNCTION draftsman.refuse_change('questions.permission_requests_kept');

CREATE OR REPLACE TRIGGER permission_rules_immutable BEFORE UPDATE ON draftsman.permission_rules
    FOR EACH ROW
    WHEN (OLD.status = 'revoked'
          OR (OLD.repo, OLD.pattern, OLD.decisions, OLD.proposed_at, OLD.proposed_by)
             IS DISTINCT FROM
             (NEW.repo, NEW.pattern, NEW.decisions, NEW.proposed_at, NEW.proposed_by)
          OR (OLD.status = 'active' AND (NEW.status = 'proposed' OR
              (OLD.seconds, OLD.ratified_at, OLD.ratified_by, OLD.expires_at)
                  IS DISTINCT FROM
                  (NEW.seconds, NEW.ratified_at, NEW.ratified_by, NEW.expires_at))))
    EXECUTE FUNCTION draftsman.refuse_change('questions.rule_immutable');
CREATE OR REPLACE TRIGGER permission_rules_no_delete BEFORE DELETE ON draftsman.permission_rules
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions.rules_kept');
CREATE OR REPLACE TRIGGER permission_rules_no_truncate BEFORE TRUNCATE ON draftsman.permission_rules
    EXECUTE FUNCTION draftsman.refuse_change('questions.rules_kept');

CREATE OR REPLACE TRIGGER rule_uses_immutable BEFORE UPDATE OR DELETE ON draftsman.rule_uses
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions.rule_uses_kept');
CREATE OR REPLACE TRIGGER rule_uses_no_truncate BEFORE TRUNCATE ON draftsman.rule_uses
    EXECUTE FUNCTION draftsman.refuse_change('questions.rule_uses_kept');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_rules() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.are_plain_words(text[]), draftsman.is_inner_path(text),
        draftsman.is_pattern(text[]),
        draftsman.is_allowed_by_rule(bigint, int, jsonb)');
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.decide_by_rule(bigint, int, text[])');
    SELECT draftsman.grant_to('worker person', 'EXECUTE ON FUNCTION
        draftsman.propose_rule(text, text[], bigint, float8, text)');
    SELECT draftsman.grant_to('bot person', 'EXECUTE ON FUNCTION
        draftsman.ratify_rule(bigint, text, text, float8),
        draftsman.revoke_rule(bigint, text, text, text)');
$$;
