-- Reminders of open questions, and their escalation to others.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0009_reminders');

ALTER TABLE draftsman.job_questions DROP CONSTRAINT job_questions_gate;
ALTER TABLE draftsman.job_questions ADD CONSTRAINT job_questions_gate CHECK (kind = 'input'
    OR (choices = '[]' AND NOT freeform_allowed AND on_expire IN ('expire', 'escalate')));

-- What follows from a question's time. A table of its own: a version that reads whole rows of
-- job_questions goes on beside this one.
CREATE TABLE draftsman.question_times (
    job           bigint NOT NULL,
    question      int NOT NULL,
    since         timestamptz NOT NULL DEFAULT draftsman.now(),
    remind_at     timestamptz,
    reminders     int NOT NULL DEFAULT 0,
    escalate_to   text CHECK (escalate_to <> ''),
    escalated_at  timestamptz,
    PRIMARY KEY (job, question),
    FOREIGN KEY (job, question) REFERENCES draftsman.job_questions (job, ordinal),
    CONSTRAINT question_times_few CHECK (reminders BETWEEN 0 AND 3
        AND (reminders < 3 OR remind_at IS NULL)),
    CONSTRAINT question_times_escalated CHECK (escalated_at IS NULL OR escalate_to IS NOT NULL)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

--   question_times_due   the sweep `remind`, and the leader's timer: open questions alone are in it
CREATE INDEX question_times_due ON draftsman.question_times (remind_at)
    WHERE remind_at IS NOT NULL;

CREATE TRIGGER question_times_once BEFORE UPDATE OF escalated_at ON draftsman.question_times
    FOR EACH ROW WHEN (OLD.escalated_at IS NOT NULL
                       AND NEW.escalated_at IS DISTINCT FROM OLD.escalated_at)
    EXECUTE FUNCTION draftsman.refuse_change('a question is escalated once');
CREATE TRIGGER question_times_kept BEFORE DELETE ON draftsman.question_times FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_change('questions are kept for ever');
CREATE TRIGGER question_times_kept_all BEFORE TRUNCATE ON draftsman.question_times
    EXECUTE FUNCTION draftsman.refuse_change('questions are kept for ever');

-- Half and 90 % of a time, whichever comes next; NULL after both, and for a time without an end.
-- Counted in seconds: a day is no longer where the session's clocks change.
CREATE FUNCTION draftsman.next_reminder(began timestamptz, ends timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT min(p.at)
      FROM unnest(ARRAY[0.5, 0.9]) AS part
     CROSS JOIN LATERAL (
           SELECT began + make_interval(secs => (extract(epoch FROM ends - began) * part)::float8)
                  AS at) p
     WHERE p.at > draftsman.now()
$$;

-- A question was asked, got another end, or closed, whoever did it.
CREATE FUNCTION draftsman.time_question() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status <> 'open' THEN
        UPDATE draftsman.question_times SET remind_at = NULL
         WHERE job = NEW.job AND question = NEW.ordinal AND remind_at IS NOT NULL;
    ELSE
        INSERT INTO draftsman.question_times AS t (job, question, remind_at)
        VALUES (NEW.job, NEW.ordinal, draftsman.next_reminder(draftsman.now(), NEW.expires_at))
            ON CONFLICT (job, question) DO UPDATE
               SET since = excluded.since,
                   remind_at = CASE WHEN t.reminders < 3 THEN excluded.remind_at END;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_questions_asked AFTER INSERT ON draftsman.job_questions FOR EACH ROW
    EXECUTE FUNCTION draftsman.time_question();
CREATE TRIGGER job_questions_timed AFTER UPDATE OF status, expires_at ON draftsman.job_questions
    FOR EACH ROW
    WHEN (OLD.status = 'open'
          AND (NEW.status <> 'open' OR NEW.expires_at IS DISTINCT FROM OLD.expires_at))
    EXECUTE FUNCTION draftsman.time_question();

INSERT INTO draftsman.question_times (job, question, since, remind_at)
SELECT job, ordinal, asked_at, draftsman.next_reminder(asked_at, expires_at)
  FROM draftsman.job_questions
 WHERE status = 'open';

-- Questions as this version reads them. A later one that needs more makes a view of its own.
CREATE VIEW draftsman.questions AS
    SELECT q.job, q.ordinal, q.run, q.key, q.kind, q.status, q.text, q.choices, q.freeform_allowed,
           q.context_snippet, q.approvers, q.quorum, q.on_expire, q.default_value, q.on_deny,
           q.digest, q.action, q.resolution, q.asked_at, q.expires_at, q.answered_at,
           coalesce(t.reminders, 0) AS reminders, t.escalate_to, t.escalated_at
      FROM draftsman.job_questions q
      LEFT JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal;
