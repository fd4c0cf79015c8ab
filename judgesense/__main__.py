"""``python -m judgesense``."""

from judgesense.cli import main

main()
