"""Commands about questions: the inbox, answers and approvals."""
