"""The MCP server, which lets coding agents ask people and submit jobs."""
