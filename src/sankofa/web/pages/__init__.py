"""The pages: each module declares some with `@page`."""
