"""Control of jobs: cancel, pause, retry and messages."""
