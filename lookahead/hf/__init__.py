"""The only room that knows transformers."""
