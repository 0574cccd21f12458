"""One file per dataset of an edition: what it holds under which key, in which order."""
