"""Operations behind the listeners: jobs from labels, answers, boards and webhooks."""
