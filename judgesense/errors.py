"""The one exception that means "you can mend this": bad input, bad usage, a missing thing.

The command line turns it into one line on stderr and exit code 2; everything else that is
raised is a defect of ours and keeps its traceback.
"""


class JudgeSenseError(ValueError):
    """Bad input or usage: says what was wrong, where (file, row, column) and what to do next."""


class MissingExtraError(JudgeSenseError, ImportError):
    """A feature was asked for whose optional packages are not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f'install it with: pip install "judgesense[{extra}]"'
        )
