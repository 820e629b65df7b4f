"""What is seen of one job.

    look   reads what may have changed, for the live source, and makes of it
    seen   one immutable value, of which pure functions make
    rows   what is drawn: the head, and the items of each part (timeline, ticket, log, …)

No Textual here but for the message that carries a value.
"""
