"""Guardrails: which changes of an agent are denied or need an approval, and by whom. Pure."""
