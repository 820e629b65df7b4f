-- Run by `postgres --single`, which takes a statement a line; braces are filled in before.
ALTER ROLE draftsman PASSWORD '{verifier}'
