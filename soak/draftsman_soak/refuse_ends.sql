-- Lets the database refuse the end of some runs with an error that says nothing about their results,
-- such as a count of another table that is wrong.
CREATE SCHEMA soak;
CREATE TABLE soak.refused (job bigint PRIMARY KEY);
CREATE FUNCTION soak.refuse_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM soak.refused WHERE job = NEW.number) THEN
        RAISE EXCEPTION 'D-%: the soak test refuses the end of this run', NEW.number
            USING ERRCODE = 'check_violation', SCHEMA = 'soak', TABLE = 'refused',
                  CONSTRAINT = 'refused_job';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER soak_refuses_ends BEFORE UPDATE OF status ON draftsman.job_states FOR EACH ROW
    WHEN (OLD.status = 'running' AND NEW.status <> 'running') EXECUTE FUNCTION soak.refuse_end();
