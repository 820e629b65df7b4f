"""Attention of people: ladders, reminders, digests and on-call schedules."""
