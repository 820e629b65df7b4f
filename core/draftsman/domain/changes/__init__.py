"""Changes of a work: patches, their files, and differences between two patches."""
