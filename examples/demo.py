"""The main job on a real model: rewrite a file under an instruction, first without lookahead, then with it.

Run ``make demo``, or ``python -m examples.demo --file FILE --instruction TEXT --model NAME_OR_FOLDER``; both are
``lookahead demo``.
"""

import sys

from lookahead.cli.app import app

if __name__ == "__main__":
    app(["demo", *sys.argv[1:]], prog_name="lookahead")
