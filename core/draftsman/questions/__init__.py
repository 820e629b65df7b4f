"""Questions to people: asked, answered by people or rules, approved, expired and undone."""
