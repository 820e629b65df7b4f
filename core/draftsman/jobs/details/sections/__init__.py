"""The details of a job in sections, without the markup of a medium. Pure."""
