"""`draftsman soak`: draftsman on a server of its own, and everything that can happen to it.

    load ── jobs ──> workers <── faults        handlers ── effects ──> outside
    crowd ── answers, cancels, retries ──>     ledger: what was acknowledged
    world (all that is there at the end) + ledger ──> verdict

A `seed` decides what is asked for, answered and broken, and in which order; not the timing. `trial`
runs one seed, `report` says what came of all.
"""
