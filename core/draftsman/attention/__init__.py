"""Attention of people: ladders, reminders, digests, on-call schedules and pagers."""
