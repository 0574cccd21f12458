"""The MCP surface: the operations as tools for agents."""
