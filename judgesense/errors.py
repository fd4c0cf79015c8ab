"""The exception for errors that the user can fix: bad input, bad usage, a missing package.

The command line prints it as one line on stderr and exits with code 2. Any other exception is a bug
in JudgeSense and keeps its traceback.
"""


class JudgeSenseError(ValueError):
    """Bad input or usage; the message names the fault, its place (file, row, column) and a fix."""


class MissingExtraError(JudgeSenseError, ImportError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f'install it with: pip install "judgesense[{extra}]"'
        )
