"""What happened step by step: recorded, written to a file, and shown as a page."""
