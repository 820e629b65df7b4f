"""Job screen content.

    loader      reads what may have changed, and creates
    snapshot    an immutable value, from which pure functions create
    row_layout  rows: the header, and the items of each tab (timeline, request, log, …)

Only the message that carries a snapshot uses Textual.
"""
