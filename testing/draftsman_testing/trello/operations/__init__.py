"""Actions of people on Trello: boards, cards, comments, labels."""
