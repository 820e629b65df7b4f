"""What draftsman costs, beside what the same statements cost without it: `make bench`."""
