"""Events of the alerts of questions."""
