"""``python -m lookahead.cli`` is the script ``lookahead``."""

from . import main

main()
