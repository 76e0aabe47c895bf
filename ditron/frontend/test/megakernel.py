# RUN: ditron-import %s:mega --signature "*i32, i32, *i32, constexpr BLOCK=64" | FileCheck %s
# Aggregates as Triton-distributed uses them: tasks of a queue, a recorder that every arm of a chain of ifs may replace, views
# with chained calls, constructors that are plain Python.
import triton
import triton.language as tl
from triton.language.core import to_tensor

NUM_BITS = 11

@tl.core._aggregate
class View:
    base: tl.tensor

    def __init__(self, base):
        self.base = base

    @triton.jit
    def data_ptr(self, dtype):
        words = self.base.to(tl.pointer_type(tl.uint64))
        p = tl.load(words).to(tl.pointer_type(dtype))
        return tl.multiple_of(p, 16)

    @triton.jit
    def size(self, i, multiple=tl.constexpr(1)):
        return tl.multiple_of(tl.load(self.base + i + 2), multiple).to(tl.int32)

@tl.core._aggregate
class Task:
    table: tl.tensor
    kind: tl.tensor
    tile: tl.tensor
    RANK: tl.constexpr
    STEP: tl.constexpr
    tiled: tl.constexpr

    def __init__(self, table, kind, tile, RANK, tiled=tl.constexpr(True)):
        self.table = table
        self.kind = kind
        self.tile = tile
        self.RANK = RANK
        self.tiled = tiled
        self.STEP = self.RANK + 2

    @triton.jit
    def get_tensor(self, idx):
        return View(self.table + idx * self.STEP)

@tl.core._aggregate
class Recorder:
    buffer: tl.tensor
    stride: tl.tensor
    leader: tl.tensor
    group: tl.tensor
    ENABLED: tl.constexpr
    BITS: tl.constexpr

    @triton.jit
    def create(buffer, group, leader=True, blocks=None, ENABLED=True):
        if blocks is None:
            blocks = tl.num_programs(0)
        return Recorder(buffer + tl.program_id(0), blocks, to_tensor(group), leader, ENABLED)

    def __init__(self, buffer, stride, group, leader, ENABLED):
        """Documentation."""
        self.group = group
        self.stride = stride
        self.buffer = buffer
        self.leader = leader
        self.ENABLED = ENABLED
        self.BITS = tl.constexpr(NUM_BITS)

    @triton.jit
    def record(self, is_start, kind):
        if self.ENABLED:
            if self.leader:
                tl.store(self.buffer, (kind << self.BITS) | is_start)
            self.buffer += self.stride
        return self

@triton.jit
def fetch(queue, cur, RANK: tl.constexpr):
    return Task(queue, tl.load(queue + cur * 2), tl.load(queue + cur * 2 + 1), RANK)

@triton.jit
def run_add(task: Task, BLOCK: tl.constexpr):
    x = task.get_tensor(0).data_ptr(tl.float32)
    n = task.get_tensor(0).size(0, 16)
    i = task.tile * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

# CHECK-LABEL: func.func @mega
@triton.jit
def mega(queue, count, trace, BLOCK: tl.constexpr):
    rec = Recorder.create(trace, 0)
    cur = tl.program_id(0)
    task = fetch(queue, cur, 4)
    # The recorder's address, the position and the three run-time fields of the task are carried.
    # CHECK: %[[BUFFER:.*]] = tile.addptr %arg2
    # CHECK: scf.while ({{.*}} = %[[BUFFER]]{{.*}}) : (!tile.ptr<i32>, i32, i1, i32, i32, !tile.ptr<i32>, i32, i32) ->
    while cur < count:
        rec = rec.record(is_start=True, kind=task.kind)
        if task.kind == 0:
            run_add(task, BLOCK)
        elif task.kind == 1:
            run_add(task, BLOCK=BLOCK * 2)
            rec = rec.record(True, 5)
        else:
            tl.store(trace, 0)
        rec = rec.record(is_start=False, kind=task.kind)
        cur += tl.num_programs(0)
        if cur < count:
            task = fetch(queue, cur, 4)
