-- A question that nobody answers in time may go to others once: a new value has a file of its own.

INSERT INTO draftsman.schema_migrations (name) VALUES ('0008_escalate');

ALTER TYPE draftsman.on_expire ADD VALUE 'escalate';
