"""What listens to and speaks in chat: one package a channel, none of which knows another.

Importing this package loads no chat library.
"""
