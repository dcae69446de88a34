"""Verify: which of a draft's tokens the target model would have emitted. Knows torch, but no transformers."""
