"""Conversation with people in any chat: answers, comments and controls."""
