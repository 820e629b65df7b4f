"""Commands for setup and maintenance: configuration, database, doctor, people and archives."""
