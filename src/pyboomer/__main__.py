"""The command `boomer`, as `python -m pyboomer`."""

from pyboomer.cli import main

if __name__ == "__main__":
    main()
