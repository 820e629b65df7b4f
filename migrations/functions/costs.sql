-- Budgets of calls, jobs, repositories, people and all jobs: their use, reservations and raises,
-- and the costs of each day.

INSERT INTO draftsman.schema_functions (name) VALUES ('costs')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;

-- Configuration -----------------------------------------------------------------------------------

-- Replaces the configured budgets; false when they are the same.
CREATE OR REPLACE FUNCTION draftsman.set_budgets(
    budgets jsonb, timezone text, actor text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT draftsman.has_right(actor, NULL, '{worker}') THEN
        PERFORM draftsman.deny_access('costs.change_budgets', jsonb_build_object('actor', actor));
    END IF;
    LOCK TABLE draftsman.budget_changes IN SHARE ROW EXCLUSIVE MODE;
    IF coalesce((SELECT (c.budgets, c.timezone) FROM draftsman.budget_changes c
                  ORDER BY c.id DESC LIMIT 1),
                  ('[]'::jsonb, 'UTC'::text)) = (set_budgets.budgets, set_budgets.timezone) THEN
        RETURN false;
    END IF;
    DELETE FROM draftsman.budgets;
    INSERT INTO draftsman.budgets
    SELECT * FROM jsonb_populate_recordset(NULL::draftsman.budgets, budgets);
    INSERT INTO draftsman.budget_changes (budgets, timezone, actor)
    VALUES (budgets, timezone, actor);
    RETURN true;
END $$;

-- The current day in the configured time zone.
CREATE OR REPLACE FUNCTION draftsman.budget_day() RETURNS date
LANGUAGE sql STABLE AS $$
    SELECT (draftsman.now() AT TIME ZONE coalesce((
               SELECT timezone FROM draftsman.budget_changes
                ORDER BY id DESC LIMIT 1), 'UTC'))::date
$$;

-- Seconds until the end of a day in the configured time zone.
CREATE OR REPLACE FUNCTION draftsman.seconds_left(day date) RETURNS float8
LANGUAGE sql STABLE AS $$
    SELECT extract(epoch FROM (day + 1)::timestamp AT TIME ZONE coalesce((
               SELECT timezone FROM draftsman.budget_changes ORDER BY id DESC LIMIT 1), 'UTC')
           - draftsman.now())::float8
$$;

-- The amounts of the budget of this name; `own` replaces the amounts that it has.
CREATE OR REPLACE FUNCTION draftsman.budget_of(name text, own jsonb)
RETURNS TABLE (measure text, amount numeric)
LANGUAGE sql STABLE AS $$
    SELECT m.measure, coalesce(m.own, m.configured)
      FROM (SELECT split_part(name, ':', 1) AS scope,
                   substr(name, strpos(name, ':') + 1) AS value) n
      LEFT JOIN LATERAL (
           SELECT * FROM draftsman.budgets b
            WHERE b.scope = n.scope
              AND b.value = ANY (draftsman.configured_names(n.scope, n.value))
            ORDER BY array_position(draftsman.configured_names(n.scope, n.value), b.value)
            LIMIT 1) b ON true
     CROSS JOIN LATERAL (VALUES
           ('cost_usd', (budget_of.own ->> 'cost_usd')::numeric, b.cost_usd),
           ('input_tokens', (budget_of.own ->> 'input_tokens')::numeric, b.input_tokens::numeric),
           ('output_tokens', (budget_of.own ->> 'output_tokens')::numeric,
                             b.output_tokens::numeric))
        AS m (measure, own, configured)
     WHERE num_nonnulls(m.own, m.configured) > 0
$$;

-- Calls -------------------------------------------------------------------------------------------

-- Reserves the maximum use of a call in each budget of its job. It starts while none is used up,
-- and it fits in with the other running calls; without others it may be larger than the rest. The
-- row says `reserved`, or why not: `price` (unknown, but a budget is in money), `call` (more than a
-- call may use), `used` or `wait` (for other calls). No row after a lost lease. Without a call,
-- only `used` is checked.
CREATE OR REPLACE FUNCTION draftsman.reserve_budgets(
    job bigint, token bigint, call uuid, cost numeric, input bigint, output bigint, own jsonb
) RETURNS SETOF draftsman.budget_state
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    today date := draftsman.budget_day();
    names text[] := draftsman.lock_budgets(job, token, today, own);
    worst draftsman.budget_state;
BEGIN
    IF names IS NULL THEN
        RETURN;
    END IF;
    DELETE FROM draftsman.budget_reservations r
     USING (SELECT d.call, d.name FROM draftsman.budget_reservations d
             WHERE d.name = ANY (names) AND NOT draftsman.is_reserving(d.job, d.lease_token)
               FOR UPDATE OF d SKIP LOCKED) dead
     WHERE r.call = dead.call AND r.name = dead.name;
    SELECT s.outcome, s.name, s.day, s.measure, s.used, s.reserved, s.budget, s.added INTO worst
      FROM (
           SELECT CASE WHEN b.measure = 'cost_usd' AND cost IS NULL THEN 'price'
                       WHEN b.amount < e.amount THEN 'call' END AS outcome,
                  'call:*' AS name, NULL::date AS day, b.measure, e.amount AS used,
                  0::numeric AS reserved, b.amount AS budget, 0::numeric AS added
             FROM draftsman.budget_of('call:*', NULL) b
             JOIN (VALUES ('cost_usd', cost), ('input_tokens', input), ('output_tokens', output))
                  AS e (measure, amount) USING (measure)
            WHERE call IS NOT NULL
            UNION ALL
           SELECT CASE WHEN b.used >= b.budget THEN 'used'
                       WHEN call IS NULL THEN NULL
                       WHEN b.measure = 'cost_usd' AND cost IS NULL THEN 'price'
                       WHEN b.reserved > 0 AND b.used + b.reserved + e.amount > b.budget THEN 'wait'
                  END, b.name, b.day, b.measure, b.used, b.reserved, b.budget, b.added
             FROM draftsman.budget_uses u
            CROSS JOIN LATERAL draftsman.budget_states(u, call) b
             JOIN (VALUES ('cost_usd', cost), ('input_tokens', input), ('output_tokens', output))
                  AS e (measure, amount) USING (measure)
            WHERE u.name = ANY (names) AND u.day IN (today, '-infinity')) s
     WHERE s.outcome IS NOT NULL
     ORDER BY array_position('{price,call,used,wait}'::text[], s.outcome), s.name, s.measure
     LIMIT 1;
    IF FOUND THEN
        RETURN NEXT worst;
        RETURN;
    END IF;
    INSERT INTO draftsman.budget_reservations
           (call, name, day, job, lease_token, cost_usd, input_tokens, output_tokens)
    SELECT call, n, CASE WHEN n LIKE 'job:%' THEN '-infinity' ELSE today END, job, token,
           coalesce(cost, 0), input, output
      FROM unnest(names) n
     WHERE call IS NOT NULL
        ON CONFLICT DO NOTHING;
    worst.outcome := 'reserved';
    RETURN NEXT worst;
END $$;

-- Records the usage of a run so far. The increase counts for its budgets and for the costs of the
-- day; for a call, it is the day of its reservation, which ends; also after the run has parked. The
-- first row says `recorded`, unless the lease was lost; each further row is a budget that is used
-- up.
CREATE OR REPLACE FUNCTION draftsman.record_usage(
    job bigint, token bigint, usage jsonb, model text, call uuid, own jsonb
) RETURNS SETOF draftsman.budget_state
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    today   date := coalesce((SELECT r.day FROM draftsman.budget_reservations r
                               WHERE r.call = record_usage.call
                                 AND r.name = 'all:*'), draftsman.budget_day());
    names   text[] := draftsman.lock_budgets(job, token, today, own, true);
    before  jsonb;
    program text;
    cost    numeric;
    input   bigint;
    output  bigint;
BEGIN
    IF names IS NULL THEN
        RETURN;
    END IF;
    SELECT r.usage, r.params_snapshot ->> 'agent' INTO before, program
      FROM draftsman.job_runs r WHERE r.job = record_usage.job AND r.lease_token = token;
    cost := draftsman.usage_growth(before, usage, 'cost_usd');
    input := draftsman.usage_growth(before, usage, 'input_tokens');
    output := draftsman.usage_growth(before, usage, 'output_tokens');
    UPDATE draftsman.job_runs r SET usage = record_usage.usage
     WHERE r.job = record_usage.job AND r.lease_token = token;
    DELETE FROM draftsman.budget_reservations r WHERE r.call = record_usage.call;
    IF cost > 0 OR input > 0 OR output > 0 THEN
        UPDATE draftsman.budget_uses u
           SET cost_usd = u.cost_usd + cost, input_tokens = u.input_tokens + input,
               output_tokens = u.output_tokens + output
         WHERE u.name = ANY (names) AND u.day IN (today, '-infinity');
        INSERT INTO draftsman.daily_costs AS c
               (day, repo, person, agent, model, calls, cost_usd, input_tokens, output_tokens)
        SELECT today, draftsman.repo_of(r), r.invoker_id,
               coalesce(program, r.agent, ''), coalesce(record_usage.model, ''),
               1, cost, input, output
          FROM draftsman.job_requests r WHERE r.number = job
            ON CONFLICT ON CONSTRAINT daily_costs_pkey DO UPDATE
               SET calls = c.calls + 1, cost_usd = c.cost_usd + excluded.cost_usd,
                   input_tokens = c.input_tokens + excluded.input_tokens,
                   output_tokens = c.output_tokens + excluded.output_tokens;
    END IF;
    RETURN NEXT ROW('recorded', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::draftsman.budget_state;
    RETURN QUERY
    SELECT 'used', b.name, b.day, b.measure, b.used, b.reserved, b.budget, b.added
      FROM draftsman.budget_uses u
     CROSS JOIN LATERAL draftsman.budget_states(u, NULL) b
     WHERE u.name = ANY (names) AND u.day IN (today, '-infinity') AND b.used >= b.budget
     ORDER BY b.name, b.measure;
END $$;

-- Locks a job by its lease, then the uses of its budgets in sorted order, so that two sessions
-- cannot deadlock. Returns the names; NULL after a lost lease. `or_parked`: also for a run that
-- parked.
CREATE OR REPLACE FUNCTION draftsman.lock_budgets(
    job bigint, token bigint, today date, own jsonb, or_parked boolean DEFAULT false
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    names text[];
BEGIN
    PERFORM FROM draftsman.job_states s
      WHERE s.number = job AND (s.lease_token = token AND s.status = 'running' OR or_parked)
        FOR NO KEY UPDATE;
    IF NOT FOUND OR (or_parked AND NOT EXISTS (
        SELECT FROM draftsman.job_runs r
         WHERE r.job = lock_budgets.job AND r.lease_token = token
           AND r.status IN ('running', 'parked'))) THEN
        RETURN NULL;
    END IF;
    SELECT array_remove(ARRAY['all:*', 'job:' || r.number, 'person:' || nullif(r.invoker_id, ''),
               'repo:' || nullif(draftsman.repo_of(r), '')], NULL)
      INTO names FROM draftsman.job_requests r WHERE r.number = job;
    INSERT INTO draftsman.budget_uses (name, day)
    SELECT n, CASE WHEN n LIKE 'job:%' THEN '-infinity' ELSE today END
      FROM unnest(names) n ORDER BY n
        ON CONFLICT DO NOTHING;
    PERFORM FROM draftsman.budget_uses u
      WHERE u.name = ANY (names) AND u.day IN (today, '-infinity')
      ORDER BY u.name FOR NO KEY UPDATE;
    UPDATE draftsman.budget_uses u SET budget = own
     WHERE u.name = 'job:' || job AND u.day = '-infinity' AND own <> coalesce(u.budget, '{}');
    RETURN names;
END $$;

-- An amount of a usage; 0 for anything else than a number.
CREATE OR REPLACE FUNCTION draftsman.usage_amount(usage jsonb, measure text) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    CASE WHEN jsonb_typeof(usage -> measure) = 'number'
         THEN round(least(greatest((usage ->> measure)::numeric, 0), 1e15),
                    CASE WHEN measure = 'cost_usd' THEN 9 ELSE 0 END)
         ELSE 0 END;

CREATE OR REPLACE FUNCTION draftsman.usage_growth(
    before jsonb, after jsonb, measure text
) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN greatest(
    draftsman.usage_amount(after, measure)
    - draftsman.usage_amount(coalesce(before, '{}'), measure), 0);

-- The use and the reservations of each amount of a budget, and the part that people added.
CREATE OR REPLACE FUNCTION draftsman.budget_states(
    u draftsman.budget_uses, except_call uuid
) RETURNS SETOF draftsman.budget_state
LANGUAGE sql STABLE AS $$
    SELECT NULL, u.name, u.day, b.measure,
           CASE b.measure WHEN 'cost_usd' THEN u.cost_usd WHEN 'input_tokens' THEN u.input_tokens
           ELSE u.output_tokens END,
           CASE b.measure WHEN 'cost_usd' THEN r.cost_usd WHEN 'input_tokens' THEN r.input_tokens
           ELSE r.output_tokens END,
           b.amount + a.amount, a.amount
      FROM draftsman.budget_of(u.name, u.budget) b
     CROSS JOIN LATERAL (
           SELECT coalesce(sum(r.cost_usd), 0) AS cost_usd,
                  coalesce(sum(r.input_tokens), 0) AS input_tokens,
                  coalesce(sum(r.output_tokens), 0) AS output_tokens
             FROM draftsman.budget_reservations r
            WHERE r.name = u.name AND r.day = u.day AND r.call IS DISTINCT FROM except_call
              AND draftsman.is_reserving(r.job, r.lease_token)) r
     CROSS JOIN LATERAL (
           SELECT coalesce(sum(a.amount), 0) AS amount FROM draftsman.budget_raises a
            WHERE a.name = u.name AND a.day = u.day AND a.measure = b.measure) a
$$;

-- Whether the calls of a run reserve: it has its lease, or its agent waits in a grace period, or
-- has half a minute after it to exit.
CREATE OR REPLACE FUNCTION draftsman.is_reserving(job bigint, token bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM draftsman.job_states s
                    WHERE s.number = job AND s.lease_token = token)
        OR EXISTS (SELECT FROM draftsman.grace_periods g
                    WHERE g.job = is_reserving.job AND g.lease_token = token
                      AND g.ends_at > draftsman.now() - interval '30 seconds')
$$;

-- The reply to a call: the columns of the state that the worker reads.
CREATE OR REPLACE FUNCTION draftsman.budget_reply(s draftsman.budget_state) RETURNS TABLE (
    outcome text, name text, day date, measure text, used float8, reserved float8, budget float8,
    added float8, seconds_left float8
)
LANGUAGE sql STABLE AS $$
    SELECT s.outcome, coalesce(s.name, ''), nullif(s.day, '-infinity'),
           coalesce(s.measure, 'cost_usd'), coalesce(s.used, 0)::float8,
           coalesce(s.reserved, 0)::float8, coalesce(s.budget, 0)::float8,
           coalesce(s.added, 0)::float8,
           CASE WHEN s.day > '-infinity' THEN draftsman.seconds_left(s.day) END
$$;

-- Raises ------------------------------------------------------------------------------------------

-- Adds the amount of an answer to the budget that its question names, once; NULL after a lost
-- lease.
CREATE OR REPLACE FUNCTION draftsman.raise_budget(
    job bigint, token bigint, question int, amount numeric
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked draftsman.job_questions;
    run   int;
BEGIN
    SELECT s.run_count INTO run FROM draftsman.job_states s
     WHERE s.number = job AND s.lease_token = token AND s.status = 'running' FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO asked FROM draftsman.job_questions q
     WHERE q.job = raise_budget.job AND q.ordinal = question AND q.key = 'agent:budget'
       AND q.status = 'answered'
       AND q.resolution ->> 'via' = 'person';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM FROM draftsman.budget_uses u
      WHERE u.name = asked.action ->> 'budget' AND u.day = (asked.action ->> 'day')::date
        FOR NO KEY UPDATE;
    INSERT INTO draftsman.budget_raises (job, question, name, day, measure, amount)
    VALUES (job, question, asked.action ->> 'budget', (asked.action ->> 'day')::date,
            asked.action ->> 'measure', amount)
        ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO draftsman.job_events (job, run, kind, actor, payload)
    VALUES (job, run, 'budget_raised', 'system', asked.action || jsonb_build_object(
                'question', question, 'added', amount, 'by', asked.resolution -> 'by'));
    RETURN true;
END $$;

-- Only an operator decides on a budget, and never by an answer that came with the request.
CREATE OR REPLACE FUNCTION draftsman.check_budget_answer() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := draftsman.session_kind();
BEGIN
    IF kind <> 'owner' AND EXISTS (
           SELECT FROM draftsman.job_questions q
            WHERE q.job = NEW.job AND q.ordinal = NEW.question AND q.key = 'agent:budget')
       AND (kind = 'worker' OR draftsman.has_role(
                draftsman.person_of(NEW.source::text, NEW.responder_id),
                'operator') IS NOT TRUE) THEN
        PERFORM draftsman.deny_access('costs.decide_on_budget', jsonb_build_object(
                    'voter', NEW.voter));
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER job_answers_spending BEFORE INSERT ON draftsman.job_answers FOR EACH ROW
    WHEN (NEW.accepted)
    EXECUTE FUNCTION draftsman.check_budget_answer();

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER budget_raises_immutable BEFORE UPDATE OR DELETE ON draftsman.budget_raises
    FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('costs.raise_kept');

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_costs() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('worker', 'EXECUTE ON FUNCTION
        draftsman.set_budgets(jsonb, text, text),
        draftsman.reserve_budgets(bigint, bigint, uuid, numeric, bigint, bigint, jsonb),
        draftsman.record_usage(bigint, bigint, jsonb, text, uuid, jsonb),
        draftsman.raise_budget(bigint, bigint, int, numeric)');
    SELECT draftsman.grant_to('worker bot person reader', 'EXECUTE ON FUNCTION
        draftsman.budget_day(), draftsman.seconds_left(date), draftsman.budget_of(text, jsonb),
        draftsman.budget_states(draftsman.budget_uses, uuid),
        draftsman.is_reserving(bigint, bigint), draftsman.budget_reply(draftsman.budget_state)');
    SELECT draftsman.grant_to('worker', 'DELETE, UPDATE (created_at)
        ON draftsman.budget_reservations');
$$;
