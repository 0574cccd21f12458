"""Small protocols and their drivers. A URL picks one; driver imports live only here."""
