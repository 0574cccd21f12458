"""Other people's APIs as translations of our operations: one module of this package each."""
