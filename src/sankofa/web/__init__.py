"""The web explorer: pages for people, rendered by the server from the operations behind REST and MCP."""
