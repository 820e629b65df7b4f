"""What people do on Trello: boards, cards, comments, labels."""
