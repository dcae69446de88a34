"""The index: one token stream, what its end matches, and where its passages came from."""
