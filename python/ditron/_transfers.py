"""Transfers whose sizes differ between the ranks of a world: AllToAllV, SendReceive; and the barrier on their streams."""
import weakref
from functools import partial

from . import _device, _native
from ._collectives import _count, _is_dense
from ._errors import InvalidArgumentError
from ._operators import canonical_dtype
from ._sizes import check_alignment, check_sizes
from ._tensors import is_tensor, pointer_of, type_name
from ._values import BY_SIGNATURE


class _Transfer:
    """An operator of all ranks behind a handle."""

    name = ""
    alignment = 1  # bytes, of addresses of what is not i32, if that is more than an element's

    def __init__(self, world, create, destroy, *options):
        if world.threads is not None and _device.of_thread.placed is not None and len(world.local_ranks) > 1:
            raise InvalidArgumentError(f"{self.name}: make it before world.run starts a thread for each rank, and use it in all of them")
        self.world = world
        self.handle = create(world.context.handle, *options)
        self._finalizer = weakref.finalize(self, destroy, self.handle)

    def each_rank(self, function):
        """On this thread's rank in world.run, else on all ranks of this process."""
        world = self.world
        ranks = [world.rank] if len(world.local_ranks) == 1 or _device.of_thread.placed is not None else world.local_ranks
        for rank in ranks:
            self.at(rank, function)

    def check_each(self, function):
        """each_rank of a check, which forgets what it tells: on all of them before the first one's error is raised."""
        errors = []

        def check(device):
            try:
                function(device)
            except InvalidArgumentError as error:
                errors.append(error)
        self.each_rank(check)
        if errors:
            raise errors[0]

    def at(self, rank, function):
        device = self.world.device(rank)
        device.keep((self,))
        device.at_home(function, device) if device.is_elsewhere else function(device)

    def at_each(self, checks):
        """Of pairs of a rank and check(device), which looks at what the rank is given and returns what is to be called then: no rank's call is made before those
        of all have been looked at, since a call that some ranks make and others do not ends the world."""
        if len(checks) == 1:
            (rank, check), = checks
            self.at(rank, lambda device: check(device)())
            return
        calls = []
        for rank, check in checks:
            self.at(rank, lambda device: calls.append((rank, check(device))))
        for rank, call in calls:
            self.at(rank, lambda device: call())

    def address(self, device, word, tensor, dtype):
        """Of a dense tensor of the type, which kernels of the device may touch from now on."""
        if type_name(tensor.dtype) != dtype:
            raise InvalidArgumentError(f"{self.name}: {word} is of type {tensor.dtype}; {dtype} is accepted")
        if not _is_dense(tensor):
            raise InvalidArgumentError(f"{self.name}: {word} has gaps or another order; accepted are contiguous tensors")
        pointer = pointer_of(tensor)
        check_alignment(self.name, word, pointer.address, _count(tensor), max(self.alignment if dtype != "i32" else 1, BY_SIGNATURE[dtype].itemsize))
        device.lend_tensor(pointer)
        return pointer.address


def _element_type(name, dtype):
    word = type_name(canonical_dtype(dtype))
    if word == "i1":
        raise InvalidArgumentError(f"{name}: elements of type bool; send them as uint8")
    return word


class AllToAllV(_Transfer):
    """An all-to-all of parts whose sizes stand on the device, where the kernel reads them.

        exchange = ditron.AllToAllV(world, max_rows=4096, dtype=torch.bfloat16, row_elements=7168, packed=True)
        exchange.prepare()        # before the first call anywhere
        exchange(x, send_counts, send_offsets, out, receive_counts, receive_offsets)
        exchange.check()          # waits, and raises if a size could not be

    Rank r gets send_counts[r] rows of x from row send_offsets[r] on; receive_counts becomes how many rows came from each rank, which are in
    out from row receive_offsets[r] on. These are given, or with `packed` a result: then parts follow each other. Counts and offsets are
    int64 [ranks], in rows of `row_elements`. A part of more than `max_rows`, or that does not lie in x or in out, is left out."""

    name = "all_to_all_v"

    def __init__(self, world, max_rows, dtype, row_elements=1, packed=False):
        check_sizes(self.name, max_rows=max_rows, row_elements=row_elements)
        self.type, self.row_elements = _element_type(self.name, dtype), row_elements
        super().__init__(world, _native.all_to_all_v_create, _native.all_to_all_v_destroy, BY_SIGNATURE[self.type].number, row_elements,
                         max_rows, packed)

    def prepare(self):
        """Compiles and loads what calls need, on all ranks of this process."""
        _native.all_to_all_v_prepare(self.handle)

    def __call__(self, x, send_counts, send_offsets, out, receive_counts, receive_offsets):
        """Lists of tensors by local rank, or single ones of this process's rank, in world.run of this thread's. Enqueued; gives `out`."""
        given = x, send_counts, send_offsets, out, receive_counts, receive_offsets
        if is_tensor(x):
            self.at_each([(self.world.rank, partial(self.checked, tensors=given))])
            return out
        ranks = self.world.local_ranks
        for word, each in zip(("x", "send_counts", "send_offsets", "out", "receive_counts", "receive_offsets"), given):
            if len(each) != len(ranks):
                raise InvalidArgumentError(f"{self.name}: this process has {len(ranks)} ranks; {word} are {len(each)} tensors")
        self.at_each([(rank, partial(self.checked, tensors=tensors)) for rank, tensors in zip(ranks, zip(*given))])
        return out

    def checked(self, device, tensors):
        """What makes one rank's part of a call, on the rank's current stream."""
        x, send_counts, send_offsets, out, receive_counts, receive_offsets = tensors
        words, addresses, rows = [], [], []
        for word, tensor in (("x", x), ("out", out)):
            count = _count(tensor)
            if count % self.row_elements:
                raise InvalidArgumentError(f"{self.name}: {word} has {count} elements, no multiple of the {self.row_elements} of a row")
            rows.append(count // self.row_elements)
            addresses.append(self.address(device, word, tensor, self.type))
        for word, tensor in (("send_counts", send_counts), ("send_offsets", send_offsets), ("receive_counts", receive_counts),
                             ("receive_offsets", receive_offsets)):
            if _count(tensor) != self.world.ranks:
                raise InvalidArgumentError(f"{self.name}: {word} has {_count(tensor)} elements; {self.world.ranks} are accepted, one for each rank")
            words.append(self.address(device, word, tensor, "i64"))
        return partial(_native.all_to_all_v_enqueue, self.handle, device.stream(), addresses[0], rows[0], words[0], words[1], addresses[1], rows[1], words[2], words[3])

    def check(self):
        """Waits for the work of all ranks of this process; InvalidArgumentError for the first size since the last check that could not be."""
        self.world.synchronize()
        self.check_each(lambda device: _native.all_to_all_v_check(self.handle, device.stream()))


class SendReceive(_Transfer):
    """Groups of messages between pairs of ranks, one kernel for a group.

        pairs = ditron.SendReceive(world, dtype=torch.bfloat16)
        pairs.prepare()
        pairs(sends=[(right, x)], receives=[(left, y)])     # on each rank that has a part in it
        pairs.check()                                       # waits, and raises if the sizes of two ends differed

    The i-th message that a rank sends another is the i-th that that one receives from it. Messages of a group make progress together."""

    name = "send_receive"

    def __init__(self, world, dtype):
        self.type = _element_type(self.name, dtype)
        super().__init__(world, _native.send_receive_create, _native.send_receive_destroy, BY_SIGNATURE[self.type].number)

    def prepare(self):
        """Compiles and loads what calls need, on all ranks of this process."""
        _native.send_receive_prepare(self.handle)

    def __call__(self, sends=(), receives=(), rank=None):
        """Pairs (peer, tensor): whole tensors, of any size. Of this process's rank, in world.run of this thread's, unless `rank` says which."""
        def enqueue(device):
            groups = [tuple((peer, self.address(device, word, tensor, self.type), _count(tensor)) for peer, tensor in messages)
                      for word, messages in (("a message to send", sends), ("a message to receive", receives))]
            _native.send_receive_enqueue(self.handle, device.stream(), *groups)
        self.at(self.world.rank if rank is None else rank, enqueue)

    def check(self):
        """Waits for the work of all ranks of this process; InvalidArgumentError for the first message of another size than was to be received."""
        self.world.synchronize()
        self.check_each(lambda device: _native.send_receive_check(self.handle, device.stream()))


class Barrier(_Transfer):
    """What is enqueued behind a call on a rank's stream begins when all ranks have come to theirs."""

    name = "barrier"

    def __init__(self, world):
        super().__init__(world, _native.barrier_create, _native.barrier_destroy)

    def prepare(self):
        """Compiles and loads the kernel, on all ranks of this process."""
        _native.barrier_prepare(self.handle)

    def __call__(self):
        """On all ranks of this process, in world.run on this thread's. Enqueued."""
        self.each_rank(lambda device: _native.barrier_enqueue(self.handle, device.stream()))
