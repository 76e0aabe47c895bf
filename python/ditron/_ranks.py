"""The ranks of one process as threads that run the same program, as processes do under torchrun.

A simulated world belongs to the thread that made it, here called home. Home starts a thread for each rank and then serves them: a
thread that launches a kernel hands the launch over and waits for it. A collective call is handed in by every rank and carried out once,
when the last has come. As home knows what every rank is doing, calls that can never meet are errors at once: different ones, and one that
a rank has left out by returning.

Threads of simulated ranks take turns: one runs until it asks for something. So a run is the same every time, and libraries that are not
made for threads (tracing in PyTorch is not) may be used. Threads of real GPUs run at the same time.
"""
import collections
import queue
import threading

from ._errors import InvalidArgumentError


class _Message:
    """What a rank's thread asks of home: to run an action, with all ranks if `what` names a collective call; or that it has ended. The
    answer is (result, error)."""

    def __init__(self, rank, what=None, value=None, action=None):
        self.rank, self.what, self.value, self.action = rank, what, value, action
        self.answer = queue.SimpleQueue()


class RankThreads:
    """One run of a function on all ranks of this process."""

    def __init__(self, ranks, takes_turns):
        self.ranks, self.takes_turns = list(ranks), takes_turns
        self.inbox = queue.SimpleQueue()
        self.answers = collections.deque()  # (message, answer), not given yet
        self.waiting = {}  # rank: message of a collective call
        self.failure = None  # of the rank that failed first, (rank, exception)
        self.abandoned = None

    # Called in the threads.

    def at_home(self, rank, action):
        """Runs action() in the thread that owns the world."""
        return self._ask(_Message(rank, None, None, lambda _: [action()]))

    def meet(self, rank, what, value, action):
        """When all ranks have come with the same `what`, home runs action(values by rank); its results by rank are handed out."""
        return self._ask(_Message(rank, what, value, action))

    def _ask(self, message):
        if self.abandoned is not None:
            raise self.abandoned
        self.inbox.put(message)
        return self._await(message)

    @staticmethod
    def _await(message):
        result, error = message.answer.get()
        if error is not None:
            raise error
        return result

    # Called at home.

    def run(self, start):
        """start(rank) in a thread for each rank; the results by rank. The error of the rank that failed first is raised."""
        results = {}

        def work(turn):
            try:
                self._await(turn)
                results[turn.rank] = start(turn.rank)
            except BaseException as error:  # the thread that called run gets it
                if self.failure is None:
                    self.failure = turn.rank, error
            self.inbox.put(_Message(turn.rank))

        for rank in self.ranks:
            turn = _Message(rank)
            self.answers.append((turn, (None, None)))
            threading.Thread(target=work, args=(turn,), name=f"rank {rank}", daemon=True).start()
        try:
            self._serve()
        except BaseException as error:
            self.abandoned = InvalidArgumentError(f"the run of the ranks was given up: {type(error).__name__}")
            self._refuse(self.abandoned)
            self._give_answers(len(self.answers))
            raise
        if self.failure is not None:
            rank, error = self.failure
            if hasattr(error, "add_note"):
                error.add_note(f"on rank {rank}")
            raise error
        return [results[rank] for rank in self.ranks]

    def _serve(self):
        running, busy = set(self.ranks), 0
        while running:
            busy += self._give_answers(len(self.answers) if not self.takes_turns else 0 if busy else 1)
            message = self.inbox.get()
            busy -= 1
            if message.action is None:
                running.discard(message.rank)
            elif message.what is None:
                self._carry_out([message])
            else:
                self.waiting[message.rank] = message
            if self.failure is not None:
                rank, error = self.failure
                self._refuse(InvalidArgumentError(f"rank {rank} failed, for which the other ranks would wait: {error}"))
            elif self.waiting and self.waiting.keys() == running:
                self._meet(running)

    def _meet(self, running):
        messages = [self.waiting[rank] for rank in sorted(self.waiting)]
        calls = "; ".join(f"rank {message.rank} {message.what}" for message in messages)
        ended = [str(rank) for rank in self.ranks if rank not in running]
        if ended:
            self._refuse(InvalidArgumentError(f"rank {', '.join(ended)} has returned and will not call what the others wait in: {calls}"))
        elif len({message.what for message in messages}) > 1:
            self._refuse(InvalidArgumentError(f"the ranks make different calls, which would wait for ever: {calls}"))
        else:
            self.waiting = {}
            self._carry_out(messages)

    def _carry_out(self, messages):
        try:
            results = messages[0].action([message.value for message in messages]) or [None] * len(messages)
            self.answers.extend((message, (result, None)) for message, result in zip(messages, results))
        except Exception as error:
            self.answers.extend((message, (None, error)) for message in messages)

    def _refuse(self, error):
        self.answers.extend((message, (None, error)) for message in self.waiting.values())
        self.waiting = {}

    def _give_answers(self, count):
        count = min(count, len(self.answers))
        for _ in range(count):
            message, answer = self.answers.popleft()
            message.answer.put(answer)
        return count
