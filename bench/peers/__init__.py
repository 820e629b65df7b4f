"""Each queue that is measured, draftsman among them: one file with one class each."""
