"""Pagers: alerts of critical questions, and the receiver of their webhooks."""
