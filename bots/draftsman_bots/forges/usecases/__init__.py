"""Events of forges that concern people: requests, answers and their replies."""
