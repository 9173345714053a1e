"""The two ways a request can fail, told apart by the exit status of the command line."""


class NramError(Exception):
    """The work failed: exit status 1. The message says what happened and what to do next."""

    exit_status = 1


class UsageError(NramError):
    """The request cannot be carried out as it stands: exit status 2. The message says what to change."""

    exit_status = 2
