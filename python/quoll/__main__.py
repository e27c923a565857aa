"""python -m quoll TOOL ...: the programs of the package."""
import os
import sys

from . import __version__
from ._core import Error
from ._tools import tool_path, tools


def main() -> int:
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print(f"quoll {__version__}\nusage: python -m quoll TOOL ...    TOOL --help says what it takes\ntools: {' '.join(tools()) or 'none'}")
        return 0 if words else 2
    if words[0] == "--version":
        print(__version__)
        return 0
    try:
        path = tool_path(words[0])
    except Error as error:
        print(f"quoll: {error}", file=sys.stderr)
        return 2
    sys.stdout.flush()
    os.execv(path, [words[0], *words[1:]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
