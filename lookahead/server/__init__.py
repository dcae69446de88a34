"""An OpenAI-compatible server for one model, decoding with lookahead."""
