-- What people and bots do to questions, tokens and jobs: each answer says who vouches for it, and a
-- question is resolved by the answers that are kept.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0017_roles');

-- Who vouches for an answer: the kind and the name of the session's role, whatever the row says.
ALTER TABLE draftsman.job_answers ADD COLUMN vouched_by text NOT NULL DEFAULT 'owner:before';
ALTER TABLE draftsman.job_answers ALTER COLUMN vouched_by SET DEFAULT '';

-- An answer that counts comes from a session that may vouch for its channel, in the name of the
-- person that its identity leads to, and that person may give it.
CREATE FUNCTION draftsman.vouch_for_answer() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind    text := draftsman.session_kind();
    asker   text;
    answers jsonb;
    person  text;
    asked   draftsman.job_questions;
    fits    boolean;
BEGIN
    NEW.vouched_by := kind || ':' || session_user;
    IF kind = 'owner' THEN
        RETURN NEW;
    END IF;
    SELECT j.invoker_id, j.overrides -> 'answers' INTO asker, answers
      FROM draftsman.jobs j WHERE j.number = NEW.job;
    SELECT * INTO asked FROM draftsman.job_questions q
     WHERE q.job = NEW.job AND q.ordinal = NEW.question;
    IF NOT draftsman.speaks_for(NEW.source || ':' || NEW.responder_id)
       OR (kind = 'worker' AND (NEW.kind = 'input' AND NEW.responder_id = asker
                                AND answers ? asked.key) IS NOT TRUE) THEN
        PERFORM draftsman.refuse_session(format('%s cannot vouch for an answer of %s:%s',
                                                session_user, NEW.source, NEW.responder_id));
    END IF;
    person := CASE WHEN kind = 'worker' THEN asker
              ELSE draftsman.person_of(NEW.source::text, NEW.responder_id) END;
    NEW.voter := coalesce(person, NEW.source || ':' || NEW.responder_id);
    IF NEW.accepted THEN
        fits := asked.kind = 'approval' AND NEW.payload ->> 'decision' IN ('approve', 'deny')
            AND draftsman.has_role(person, 'approver') AND draftsman.is_named(person, asked.approvers)
            AND (person <> asker
                 OR (SELECT p.self_approval FROM draftsman.approval_policy p)) IS TRUE
             OR asked.kind = 'input'
            AND (asker IN (NEW.voter, NEW.source || ':' || NEW.responder_id)
                 OR draftsman.has_role(person, 'responder')
                 OR draftsman.is_named(person, asked.approvers));
        IF NEW.kind <> asked.kind OR asked.status <> 'open' OR fits IS NOT TRUE
           OR (asked.expires_at <= draftsman.now() AND (asked.on_expire <> 'escalate' OR EXISTS (
               SELECT FROM draftsman.question_times t WHERE t.job = NEW.job
                  AND t.question = NEW.question AND t.escalated_at IS NOT NULL))) THEN
            PERFORM draftsman.refuse_session(format('%s may not decide D-%s/%s',
                                                    NEW.voter, NEW.job, NEW.question));
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER job_answers_vouched BEFORE INSERT ON draftsman.job_answers FOR EACH ROW
    EXECUTE FUNCTION draftsman.vouch_for_answer();

-- Whether the answers that are kept bear this resolution of a question.
CREATE FUNCTION draftsman.is_borne_out(
    asked draftsman.job_questions, after draftsman.question_status, how jsonb
) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN $2 = 'canceled' THEN true
        WHEN $2 = 'expired' OR $3 ->> 'via' = 'policy' THEN
            ($1).expires_at <= draftsman.now()
            AND (($1).on_expire = 'default') = ($2 = 'answered')
            AND (($1).on_expire <> 'default' OR $3 ->> 'value' = ($1).default_value)
            AND $3 - '{outcome,via,value}'::text[] = '{}'
            AND (($1).on_expire <> 'escalate' OR EXISTS (
                SELECT FROM draftsman.question_times t WHERE t.job = ($1).job
                   AND t.question = ($1).ordinal AND t.escalated_at IS NOT NULL))
        WHEN $2 <> 'answered' OR $3 ->> 'via' IS DISTINCT FROM 'person' THEN false
        WHEN ($1).kind = 'input' THEN $3 ->> 'outcome' = 'answered' AND EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = ($1).job AND a.question = ($1).ordinal AND a.accepted
               AND a.payload ->> 'value' IS NOT DISTINCT FROM $3 ->> 'value'
               AND a.payload ->> 'text' IS NOT DISTINCT FROM $3 ->> 'text'
               AND $3 -> 'by' = jsonb_build_array(a.voter))
        WHEN $3 ->> 'outcome' = 'denied' THEN EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = ($1).job AND a.question = ($1).ordinal AND a.accepted
               AND a.payload ->> 'decision' = 'deny' AND $3 -> 'by' = jsonb_build_array(a.voter)
               AND coalesce($3 ->> 'reason', '') = coalesce(a.payload ->> 'reason', ''))
        WHEN $3 ->> 'outcome' = 'approved' THEN (
            SELECT count(DISTINCT a.voter) >= ($1).quorum
                   AND $3 -> 'by' <@ jsonb_agg(a.voter) AND jsonb_agg(a.voter) <@ ($3 -> 'by')
                   AND (coalesce($3 ->> 'reason', '') = ''
                        OR $3 -> 'reason' <@ jsonb_agg(a.payload -> 'reason'))
              FROM draftsman.job_answers a
             WHERE a.job = ($1).job AND a.question = ($1).ordinal AND a.accepted
               AND a.payload ->> 'decision' = 'approve')
        ELSE false END
$$;

-- Every change of a question by others than the owner: people and bots through functions alone,
-- workers as their sweeps and runs do.
CREATE FUNCTION draftsman.guard_question() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind  text := draftsman.session_kind();
    to_be text;
BEGIN
    IF kind = 'owner' THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'open' THEN
            PERFORM draftsman.refuse_session('a question is asked open');
        END IF;
        RETURN NEW;
    END IF;
    IF kind <> 'worker' AND NOT has_schema_privilege(current_user, 'draftsman', 'CREATE') THEN
        PERFORM draftsman.refuse_session('questions are changed by functions alone');
    END IF;
    IF OLD.status = 'open' AND NEW.status <> 'open' THEN
        IF draftsman.is_borne_out(OLD, NEW.status, NEW.resolution) IS NOT TRUE THEN
            PERFORM draftsman.refuse_session(format(
                'the answers to D-%s/%s do not bear %s', NEW.job, NEW.ordinal, NEW.resolution));
        END IF;
    ELSIF kind = 'worker' AND OLD.status = 'open' THEN
        SELECT t.escalate_to INTO to_be FROM draftsman.question_times t
         WHERE t.job = OLD.job AND t.question = OLD.ordinal AND t.escalated_at IS NULL;
        IF (OLD.on_expire = 'escalate' AND OLD.expires_at <= draftsman.now()
            AND NEW.approvers = array_append(array_remove(OLD.approvers, to_be), to_be)) IS NOT TRUE
        THEN
            PERFORM draftsman.refuse_session('an open question is escalated when its time is over');
        END IF;
    ELSIF OLD.status <> 'open' AND (NEW.approvers, NEW.expires_at, NEW.answered_at, NEW.resolution)
          IS DISTINCT FROM (OLD.approvers, OLD.expires_at, OLD.answered_at,
                            '{"outcome": "superseded", "via": "system"}'::jsonb) THEN
        PERFORM draftsman.refuse_session('a closed question may be superseded, and nothing else');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER job_questions_guarded BEFORE INSERT OR UPDATE ON draftsman.job_questions FOR EACH ROW
    EXECUTE FUNCTION draftsman.guard_question();

-- Closes a question and moves its job, both locked by the caller.
CREATE FUNCTION draftsman.resolve_question(
    job bigint, ordinal int, status draftsman.question_status, resolution jsonb,
    job_status draftsman.job_status, actor text, detail text, kind text, error text
) RETURNS TABLE (moved draftsman.job_status, told text) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked draftsman.job_questions;
BEGIN
    IF NOT draftsman.speaks_for(actor) THEN
        PERFORM draftsman.refuse_session(format('%s cannot speak for %s', session_user, actor));
    END IF;
    PERFORM set_config('draftsman.actor', actor, true), set_config('draftsman.detail', detail, true);
    UPDATE draftsman.job_questions q
       SET status = $3, resolution = $4,
           answered_at = CASE WHEN $3 = 'answered' THEN draftsman.now() END
     WHERE q.job = $1 AND q.ordinal = $2 AND q.status = 'open'
    RETURNING q.* INTO asked;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF draftsman.session_kind() <> 'owner' AND NOT EXISTS (
        SELECT FROM draftsman.job_answers a WHERE a.job = $1 AND a.question = $2 AND a.accepted
           AND a.source || ':' || a.responder_id = $6) THEN
        PERFORM draftsman.refuse_session(format('%s did not answer D-%s/%s', $6, $1, $2));
    END IF;
    IF draftsman.session_kind() <> 'owner' AND ($8 <> 'answer_received'
       OR $3 <> 'answered' OR $5 <> CASE WHEN $4 ->> 'outcome' = 'denied' AND asked.on_deny = 'fail'
                        THEN 'failed' ELSE 'resumed' END::draftsman.job_status) THEN
        PERFORM draftsman.refuse_session('an answer resolves its question, and fails or resumes the job');
    END IF;
    IF draftsman.session_kind() <> 'owner' THEN
        error := CASE WHEN job_status = 'failed' THEN error END;
        detail := (jsonb_build_object('question', ordinal, 'key', asked.key)
                   || asked.resolution)::text;
        PERFORM set_config('draftsman.detail', detail, true);
    END IF;
    INSERT INTO draftsman.job_events (job, kind, actor, payload) VALUES ($1, $8, $6, $7::jsonb);
    RETURN QUERY
    UPDATE draftsman.jobs j
       SET status = $5, version = j.version + 1, updated_at = draftsman.now(),
           last_error = coalesce($9, j.last_error),
           error_class = CASE WHEN $9 IS NULL THEN j.error_class
                         ELSE 'PERMANENT' END::draftsman.error_class,
           queued_at = CASE WHEN $5 = 'resumed' THEN draftsman.now() ELSE j.queued_at END,
           finished_at = CASE WHEN $5 <> 'resumed' THEN draftsman.now() END
     WHERE j.number = $1 AND j.status IN ('waiting_for_input', 'waiting_for_approval')
    RETURNING j.status,
              CASE WHEN j.status = 'resumed' THEN pg_notify('draftsman_jobs', j.queue)::text END;
END $$;

CREATE FUNCTION draftsman.extend_question(
    job bigint, ordinal int, seconds float8, actor text
) RETURNS TABLE (expires_at timestamptz) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.check_control($1, $4, 'operator');
    IF draftsman.session_kind() = 'worker' THEN
        PERFORM draftsman.refuse_session('people extend questions');
    END IF;
    IF $3 <= 0 OR $3 > 366 * 86400 THEN
        PERFORM draftsman.refuse_session('a question is extended by more than 0 s, at most 366 days');
    END IF;
    RETURN QUERY
    UPDATE draftsman.job_questions q
       SET expires_at = CASE WHEN $3 IS NULL THEN NULL
           ELSE greatest(q.expires_at, draftsman.now()) + make_interval(secs => $3) END
     WHERE q.job = $1 AND q.ordinal = $2 AND q.status = 'open'
       AND (coalesce(q.expires_at > draftsman.now(), true)
            OR (q.on_expire = 'escalate' AND NOT EXISTS (
                SELECT FROM draftsman.question_times t
                 WHERE t.job = q.job AND t.question = q.ordinal AND t.escalated_at IS NOT NULL)))
    RETURNING q.expires_at;
END $$;

-- A running job is asked to stop.
CREATE FUNCTION draftsman.request_cancel(job bigint, by text, reason text, detail jsonb)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.check_control($1, $2, 'operator');
    UPDATE draftsman.jobs j
       SET cancel_requested_at = draftsman.now(), cancel_requested_by = $2, cancel_reason = $3,
           updated_at = draftsman.now()
     WHERE j.number = $1 AND j.status = 'running' AND j.cancel_requested_at IS NULL;
    IF FOUND THEN
        INSERT INTO draftsman.job_events (job, kind, actor, payload)
        VALUES ($1, 'cancel_requested', $2, $4);
        PERFORM pg_notify('draftsman_runs', $1::text);
        RETURN true;
    END IF;
    RETURN false;
END $$;

-- Ends a job that is not finished, its open question and its open run with it.
CREATE FUNCTION draftsman.cancel_job(job bigint, by text, reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM draftsman.check_control($1, $2, 'operator');
    PERFORM set_config('draftsman.actor', $2, true), set_config('draftsman.detail', '', true);
    UPDATE draftsman.job_questions q SET status = 'canceled', resolution = jsonb_build_object(
               'outcome', 'canceled', 'via', 'person', 'by', jsonb_build_array($2))
     WHERE q.job = $1 AND q.status = 'open';
    UPDATE draftsman.job_runs r SET status = 'canceled', finished_at = draftsman.now()
     WHERE r.job = $1 AND r.status = 'running';
    UPDATE draftsman.jobs j
       SET status = 'canceled', claimed_from = NULL, worker_id = NULL, lease_token = NULL,
           next_retry_at = NULL, finished_at = draftsman.now(), updated_at = draftsman.now(),
           cancel_requested_at = coalesce(j.cancel_requested_at, draftsman.now()),
           cancel_requested_by = coalesce(j.cancel_requested_by, $2),
           cancel_reason = coalesce(j.cancel_reason, $3), version = j.version + 1
     WHERE j.number = $1 AND j.finished_at IS NULL;
    IF FOUND THEN
        PERFORM pg_notify('draftsman_runs', $1::text);
    END IF;
    RETURN FOUND;
END $$;

-- An approver's newest token replaces the older one.
CREATE FUNCTION draftsman.mint_token(
    token_hash text, job bigint, question int, approver text, minted_by text
) RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    person text := draftsman.person_of('cli', session_user::text);
BEGIN
    IF draftsman.session_kind() <> 'owner' AND NOT (
        draftsman.session_kind() = 'person' AND person = $4 AND $5 = $4
        AND draftsman.has_role(person, 'approver') AND EXISTS (
            SELECT FROM draftsman.job_questions q JOIN draftsman.jobs j ON j.number = q.job
             WHERE q.job = $2 AND q.ordinal = $3 AND draftsman.is_named(person, q.approvers)
               AND (j.invoker_id <> person
                    OR (SELECT p.self_approval FROM draftsman.approval_policy p)))) IS TRUE THEN
        PERFORM draftsman.refuse_session(format('%s cannot mint a token for %s', session_user, $4));
    END IF;
    RETURN QUERY
    INSERT INTO draftsman.approval_tokens AS t (token_hash, job, question, approver, minted_by)
    SELECT $1, q.job, q.ordinal, $4, $5
      FROM draftsman.job_questions q
     WHERE q.job = $2 AND q.ordinal = $3 AND q.status = 'open' AND q.kind = 'approval'
        ON CONFLICT ON CONSTRAINT approval_tokens_job_question_approver_key DO UPDATE
           SET token_hash = excluded.token_hash, minted_by = excluded.minted_by,
               created_at = draftsman.now()
         WHERE t.used_at IS NULL
    RETURNING t.approver;
END $$;

-- A token is spent with the answer that its approver has just given.
CREATE FUNCTION draftsman.use_token(token_hash text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE draftsman.approval_tokens t SET used_at = draftsman.now()
     WHERE t.token_hash = $1 AND t.used_at IS NULL
       AND (draftsman.session_kind() = 'owner' OR EXISTS (
            SELECT FROM draftsman.job_answers a
             WHERE a.job = t.job AND a.question = t.question AND a.accepted AND a.voter = t.approver
               AND draftsman.speaks_for(a.source || ':' || a.responder_id)));
    RETURN FOUND;
END $$;

-- Who somebody in a channel is: the bot offers a code there, the person enters it here.
CREATE FUNCTION draftsman.offer_link(
    channel draftsman.channel, external_id text, display_name text, code_hash text, seconds float8
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND NOT (draftsman.session_kind() = 'bot'
       AND draftsman.speaks_for($1 || ':' || $2)) THEN
        PERFORM draftsman.refuse_session(format('%s cannot offer a code to %s', session_user, $2));
    END IF;
    INSERT INTO draftsman.identity_links AS l
           (channel, external_id, display_name, code_hash, code_expires_at)
    VALUES ($1, $2, $3, $4, draftsman.now() + make_interval(secs => $5))
        ON CONFLICT ON CONSTRAINT identity_links_pkey
           DO UPDATE SET display_name = excluded.display_name, code_hash = excluded.code_hash,
                         code_expires_at = excluded.code_expires_at;
END $$;

CREATE FUNCTION draftsman.link_identity(code_hash text, person text, actor text) RETURNS TABLE (
    channel draftsman.channel, external_id text, display_name text, person_name text,
    linked_by text, linked_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.session_kind() = 'person'
       AND draftsman.person_of('cli', session_user::text) = $2
       AND draftsman.speaks_for($3)) IS NOT TRUE THEN
        PERFORM draftsman.refuse_session(format('%s cannot link to %s', session_user, $2));
    END IF;
    RETURN QUERY
    UPDATE draftsman.identity_links AS l
       SET person = $2, linked_by = $3, linked_at = draftsman.now(), code_hash = NULL,
           code_expires_at = NULL
     WHERE l.code_hash = $1 AND l.code_expires_at > draftsman.now()
    RETURNING l.channel, l.external_id, l.display_name, l.person, l.linked_by, l.linked_at;
END $$;

CREATE FUNCTION draftsman.unlink_identity(channel draftsman.channel, external_id text)
RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    whose text := (SELECT l.person FROM draftsman.identity_links l
                    WHERE l.channel = $1 AND l.external_id = $2);
    me    text := draftsman.person_of('cli', session_user::text);
BEGIN
    IF draftsman.session_kind() <> 'owner' AND (draftsman.session_kind() = 'person'
       AND (me = whose OR draftsman.has_role(me, 'operator'))) IS NOT TRUE THEN
        PERFORM draftsman.refuse_session(format('%s cannot unlink %s', session_user, $2));
    END IF;
    RETURN QUERY
    UPDATE draftsman.identity_links AS l
       SET person = NULL, linked_by = NULL, linked_at = NULL, code_hash = NULL,
           code_expires_at = NULL
     WHERE l.channel = $1 AND l.external_id = $2 AND l.person IS NOT NULL
    RETURNING whose;
END $$;

-- The newest checkpoint and its work bundle go to the retry, as those of a run before its first.
CREATE FUNCTION draftsman.inherit_checkpoint(old bigint, new bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latest draftsman.job_checkpoints;
    copied bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM draftsman.jobs j
                    WHERE j.number = $2 AND j.retry_of = $1 AND j.run_count = 0)
       OR EXISTS (SELECT FROM draftsman.job_checkpoints c WHERE c.job = $2) THEN
        RETURN false;
    END IF;
    SELECT * INTO latest FROM draftsman.job_checkpoints c
     WHERE c.job = $1
       AND (c.bundle IS NULL
            OR (SELECT a.kind FROM draftsman.artifacts a WHERE a.id = c.bundle) = 'bundle')
     ORDER BY c.id DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.artifacts (job, run, name, kind, size, sha256)
    SELECT $2, 0, a.name, a.kind, a.size, a.sha256
      FROM draftsman.artifacts a WHERE a.id = latest.bundle
    RETURNING id INTO copied;
    INSERT INTO draftsman.artifact_chunks (artifact, seq, data)
    SELECT copied, k.seq, k.data FROM draftsman.artifact_chunks k WHERE k.artifact = latest.bundle;
    INSERT INTO draftsman.job_checkpoints (job, run, data, bundle)
    VALUES ($2, 0, latest.data, copied);
    RETURN true;
END $$;
