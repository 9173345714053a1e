"""Ctrl-C while a job runs: the job saves its work and stops."""

import signal


class interruptible:
    """A context in which the first Ctrl-C (or SIGTERM) asks the job to save and stop, and the second stops it at once.

    Entering it returns a function that says whether the job should stop.
    """

    def __enter__(self):
        self.asked = False
        self.handlers = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return lambda: self.asked

    def _ask(self, number, frame):
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *exception):
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
