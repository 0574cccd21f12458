"""One file per endpoint: a typed function that is the REST route, the OpenAPI entry and the MCP tool."""
