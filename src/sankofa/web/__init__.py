"""The web explorer: pages for people, drawn by the server from the same operations that REST and MCP have."""
