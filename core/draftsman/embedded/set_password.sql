-- Run by `postgres --single`, which takes one statement a line; braces are filled in before.
ALTER ROLE draftsman PASSWORD '{verifier}'
