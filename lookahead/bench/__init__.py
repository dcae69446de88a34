"""Tasks of real edits, replayed without a model: what drafting would gain."""
