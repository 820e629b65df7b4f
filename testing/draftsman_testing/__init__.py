"""Tools for tests of draftsman and its plugins: fakes of other services, jobs in any state."""
