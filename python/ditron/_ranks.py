"""The ranks of one process as threads that run the same program, as processes do under torchrun.

A simulated world belongs to the thread that made it, here called home. Home starts a thread for each rank and then serves them: a
thread that launches a kernel hands the launch over and waits for it. A collective call is handed in by every rank and carried out once,
when the last has come. As home knows what every rank is doing, calls that can never meet are errors at once: different ones, and one that
a rank has left out by returning.
"""
import queue
import threading

from ._errors import InvalidArgumentError


class _Message:
    """What a rank's thread asks of home; the answer is (result, error)."""

    def __init__(self, rank, what, value, action):
        self.rank, self.what, self.value, self.action = rank, what, value, action
        self.answer = queue.SimpleQueue()


class RankThreads:
    """One run of a function on all ranks of this process."""

    def __init__(self, ranks):
        self.ranks = list(ranks)
        self.inbox = queue.SimpleQueue()
        self.waiting = {}  # rank: message of a collective call
        self.failure = None  # of the rank that failed first, (rank, exception)
        self.abandoned = None

    # Called in the threads.

    def at_home(self, rank, action):
        """Runs action() in the thread that owns the world."""
        return self._ask(_Message(rank, None, None, action))

    def meet(self, rank, what, value, action):
        """When all ranks have come with the same `what`, home runs action(values by rank); its results by rank are handed out."""
        return self._ask(_Message(rank, what, value, action))

    def _ask(self, message):
        if self.abandoned is not None:
            raise self.abandoned
        self.inbox.put(message)
        result, error = message.answer.get()
        if error is not None:
            raise error
        return result

    # Called at home.

    def run(self, start):
        """start(rank) in a thread for each rank; the results by rank. The error of the rank that failed first is raised."""
        results = {}

        def work(rank):
            try:
                results[rank] = start(rank)
            except BaseException as error:  # the thread that called run gets it
                if self.failure is None:
                    self.failure = rank, error
            self.inbox.put(_Message(rank, None, None, None))

        for rank in self.ranks:
            threading.Thread(target=work, args=(rank,), name=f"rank {rank}", daemon=True).start()
        try:
            self._serve()
        except BaseException as error:
            self.abandoned = InvalidArgumentError(f"the run of the ranks was given up: {type(error).__name__}")
            self._refuse(self.abandoned)
            raise
        if self.failure is not None:
            rank, error = self.failure
            if hasattr(error, "add_note"):
                error.add_note(f"on rank {rank}")
            raise error
        return [results[rank] for rank in self.ranks]

    def _serve(self):
        running = set(self.ranks)
        while running:
            message = self.inbox.get()
            if message.action is None:
                running.discard(message.rank)
            elif message.what is None:
                self._answer([message], lambda: [message.action()])
            else:
                self.waiting[message.rank] = message
            if self.failure is not None:
                rank, error = self.failure
                self._refuse(InvalidArgumentError(f"rank {rank} failed, for which the other ranks would wait: {error}"))
            elif self.waiting and self.waiting.keys() == running:
                self._meet(running)

    def _meet(self, running):
        messages = [self.waiting[rank] for rank in sorted(self.waiting)]
        ended = [str(rank) for rank in self.ranks if rank not in running]
        if ended:
            self._refuse(InvalidArgumentError(f"rank {', '.join(ended)} has returned and will not call what others wait in: {self._calls()}"))
        elif len({message.what for message in messages}) > 1:
            self._refuse(InvalidArgumentError(f"the ranks make different calls, which would wait for ever: {self._calls()}"))
        else:
            self.waiting = {}
            self._answer(messages, lambda: messages[0].action([message.value for message in messages]))

    def _calls(self):
        return "; ".join(f"rank {rank} {self.waiting[rank].what}" for rank in sorted(self.waiting))

    def _refuse(self, error):
        waiting, self.waiting = self.waiting, {}
        for message in waiting.values():
            message.answer.put((None, error))

    @staticmethod
    def _answer(messages, action):
        try:
            results = action()
        except Exception as error:
            for message in messages:
                message.answer.put((None, error))
            return
        for message, result in zip(messages, results if results is not None else [None] * len(messages)):
            message.answer.put((result, None))
