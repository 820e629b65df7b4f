"""Values as text for people: the same in terminals, dashboard, web pages and chat. Pure."""
