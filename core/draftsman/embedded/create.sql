-- Run by `postgres --single`, which takes one statement a line.
CREATE DATABASE draftsman
