-- A server that turns read-only for sessions that begin from now on, as managed servers do when
-- their disk is full.
ALTER DATABASE draftsman SET default_transaction_read_only = on;
