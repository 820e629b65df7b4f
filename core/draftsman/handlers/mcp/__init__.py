"""The Model Context Protocol: a server of tools, on standard output or on the gateway's port."""
