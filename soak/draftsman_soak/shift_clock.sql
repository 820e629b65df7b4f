-- The statement that shifts the clock of every session that begins from now on.
SELECT format('ALTER DATABASE draftsman SET draftsman.clock_offset = %%L', %(offset)s::text);
