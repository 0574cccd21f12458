"""What a release in the Open Contracting Data Standard may hold."""
