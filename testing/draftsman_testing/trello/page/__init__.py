"""The page of the fake Trello in the browser: a board, its cards, comments and checklists."""
