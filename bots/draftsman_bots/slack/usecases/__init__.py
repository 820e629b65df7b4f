"""Operations behind the listeners: jobs, commands, answers and access."""
