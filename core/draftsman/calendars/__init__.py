"""Calendars of holidays and on-call schedules, read in a child process."""
