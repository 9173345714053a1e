"""The two kinds of errors. The exit status of the command line tells them apart."""


class NramError(Exception):
    """The work failed: exit status 1. The message says what happened and what to do next."""

    exit_status = 1


class UsageError(NramError):
    """The request is wrong: exit status 2. The message says what to change."""

    exit_status = 2
