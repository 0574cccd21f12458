"""Build, check, switch; and the read side of a published snapshot."""
