"""Draft: from places to copy from to the tokens that are worth verifying."""
