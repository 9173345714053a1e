"""The command `nram`, installed or as `python -m nram`."""

import sys

from nram.process import prepare


def main() -> int:
    prepare()
    from nram.cli import main  # after `prepare`, so that a signal during this import shows no traceback

    return main()


if __name__ == "__main__":
    sys.exit(main())
