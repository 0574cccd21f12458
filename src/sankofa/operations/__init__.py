"""The endpoints by subject: each is one function, the REST route, the OpenAPI entry and the MCP tool."""
