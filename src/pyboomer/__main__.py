"""`python -m pyboomer` is the command `boomer`."""

import sys

from pyboomer.cli import main

if __name__ == "__main__":
    sys.exit(main())
