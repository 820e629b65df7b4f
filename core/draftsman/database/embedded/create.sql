-- Run by `postgres --single`, which takes a statement a line.
CREATE DATABASE draftsman
