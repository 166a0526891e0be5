"""`python -m sizing.measuring.simulated`: a simulated replica without Django, which starts faster."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import NoReturn

from sizing.measuring.simulated.serving import DESCRIPTION, CannotServe, add_arguments, serve

ERROR_EXIT = 2


class _OneLineParser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(ERROR_EXIT, f"{self.prog}: {' '.join(message.split())}\n")


def main() -> None:
    parser = _OneLineParser(prog="simulate_replica", description=DESCRIPTION)
    add_arguments(parser)
    try:
        serve(vars(parser.parse_args()), lambda text: print(text, flush=True))
    except CannotServe as error:
        sys.stderr.write(f"simulate_replica: {error}\n")
        sys.exit(ERROR_EXIT)


if __name__ == "__main__":
    main()
