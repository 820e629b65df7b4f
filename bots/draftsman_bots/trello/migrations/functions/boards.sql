-- Trello: the watched boards, the labels last seen on their cards, the position of each poll, and
-- the checklists and due dates of cards that show open questions.

-- Guards ------------------------------------------------------------------------------------------

CREATE OR REPLACE TRIGGER trello_board_configs_operators BEFORE INSERT OR UPDATE OR DELETE
    ON draftsman.trello_board_configs
    EXECUTE FUNCTION draftsman.require_operator();

CREATE OR REPLACE TRIGGER trello_labels_operators BEFORE INSERT OR UPDATE OR DELETE
    ON draftsman.trello_labels
    EXECUTE FUNCTION draftsman.require_operator();

CREATE OR REPLACE TRIGGER trello_poll_cursors_operators BEFORE INSERT OR UPDATE OR DELETE
    ON draftsman.trello_poll_cursors
    EXECUTE FUNCTION draftsman.require_operator();

-- Privileges --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION draftsman.grant_trello() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('bot person', 'INSERT, UPDATE, DELETE
        ON draftsman.trello_board_configs');
    SELECT draftsman.grant_to('bot person', 'INSERT, UPDATE
        ON draftsman.trello_labels, draftsman.trello_poll_cursors');
    SELECT draftsman.grant_to('bot', 'INSERT, UPDATE ON draftsman.trello_checklists');
    SELECT draftsman.grant_to('bot', 'INSERT, UPDATE, DELETE ON draftsman.trello_due_dates');
$$;
