"""The cases of hostile input. Each found bug gets one, with the name of what goes wrong."""
import os
import resource
import signal
import struct
from dataclasses import dataclass, field
from typing import Callable, Optional

MIB, GIB = 1 << 20, 1 << 30

ADD = '''
import triton
import triton.language as tl

@triton.jit
def add(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + 1, mask=mask)
'''

WILD = '''
import triton
import triton.language as tl
from triton.language.extra import libshmem_device

@triton.jit
def store(out, offset):
    tl.store(out + offset, 1.0)

@triton.jit
def load(out, offset):
    tl.store(out, tl.load(out + offset))

@triton.jit
def atomic(out, offset):
    tl.atomic_add(out + offset, 1.0)

@triton.jit
def put(out, offset):
    libshmem_device.putmem_block(out, out, offset, 0)

@triton.jit
def put_later(out, offset):
    libshmem_device.putmem_nbi_block(out, out, offset, 0)

@triton.jit
def get(out, offset):
    libshmem_device.getmem_block(out, out, offset, 0)

@triton.jit
def put_signal(out, offset):
    libshmem_device.putmem_signal_block(out, out, offset, out, 1, libshmem_device.NVSHMEM_SIGNAL_SET, 0)

@triton.jit
def signal(out, offset):
    libshmem_device.signal_op(out + offset, 1, libshmem_device.NVSHMEM_SIGNAL_SET, 0)
'''

WAIT = '''
import triton
import triton.language as tl
import triton_dist.language as dl

@triton.jit
def crowd(flags, n):
    rank = dl.rank()
    if tl.program_id(0) == 0:
        dl.notify(flags, (rank + 1) % dl.num_ranks(), signal=1, sig_op="set", comm_scope="intra_node")
    token = dl.wait(flags, 1, "sys", "acquire", waitValue=1)
    flags = dl.consume_token(flags, token)
    tl.atomic_add(flags + 1 + tl.arange(0, 1), 1)

@triton.jit
def forever(flags):
    i = tl.load(flags)
    while i >= 0:
        i = (i + 1) & 1023
    tl.store(flags, i)
'''

MATH = '''
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def kernel(x):
    tl.store(x, libdevice.erfinv(tl.load(x)))
'''


@dataclass
class Case:
    name: str
    command: list
    codes: Optional[set] = None  # None: any that is documented
    says: str = ''  # what stderr must match
    environment: dict = field(default_factory=dict)
    limits: dict = field(default_factory=dict)
    closed: tuple = ()
    stdin: str = '/dev/null'
    stdout: str = ''  # a file instead of a pipe
    stderr: str = ''
    seconds: int = 60
    signal: int = 0
    signal_after: float = 2
    before: Optional[Callable] = None
    after: Optional[Callable] = None


def write(folder, name, content):
    with open(os.path.join(folder, name), 'wb' if isinstance(content, bytes) else 'w') as file:
        file.write(content)


def read(folder, name):
    try:
        with open(os.path.join(folder, name), 'rb') as file:
            return file.read()
    except OSError:
        return b''


def npy(shape, header_length=118):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header = header.ljust(header_length - 1) + '\n'
    count = 1
    for size in shape:
        count *= size
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + bytes(4 * min(count, 1024))


def prepare(folder):
    for name, text in (('add.py', ADD), ('wild.py', WILD), ('wait.py', WAIT), ('math.py', MATH), ('old.npy', 'old')):
        write(folder, name, text)
    write(folder, 'x.npy', npy((100,)))
    write(folder, 'huge.npy', npy((1 << 40, 1 << 30)))
    os.mkfifo(os.path.join(folder, 'pipe'))


def keeps_old(folder, out, err):
    return '' if read(folder, 'old.npy') == b'old' else 'the old file is lost'


RUN = ['ditron', 'run', 'add.py:add', '--constexpr', 'BLOCK=128', '--arg', 'n=100', '--arg', 'x=zeros:fp32[100]']
RUN_OUT = RUN + ['--arg', 'out=zeros:fp32[100]']
COMPILE = ['ditron', 'compile', 'add.py:add', '--signature', '*fp32, *fp32, i32, constexpr BLOCK=128']
TO_STDOUT = {
    'run': RUN_OUT + ['--print', 'out'],
    'compile': COMPILE,
    'out-stream': RUN_OUT + ['--out', 'out=-'],
    'trace-stream': RUN_OUT + ['--trace', '-'],
    'picture-stream': ['ditron', 'layout', 'tile', '--shape', '4x4', '--svg', '-'],
    'emit': COMPILE + ['--emit', 'llvm'],
    'knobs': ['ditron', 'knobs'],
    'doctor': ['ditron', 'doctor'],
    'doctor-json': ['ditron', 'doctor', '--json'],
    'cache-path': ['ditron', 'cache', 'path'],
    'cache-list': ['ditron', 'cache', 'ls'],
    'bench': ['ditron', 'bench', 'ag_gemm', '--m', '64', '--n', '64', '--k', '64', '--ranks', '2'],
    'bench-softmax': ['ditron', 'bench', 'softmax', '--shape', '4x64'],
    'help': ['ditron', '--help'],
    'help-run': ['ditron', 'run', '--help'],
    'version': ['ditron', '--version'],
    'import': ['ditron-import', 'add.py:add', '--signature', '*fp32, *fp32, i32, constexpr BLOCK=128'],
    'import-describe': ['ditron-import', 'add.py', '--describe'],
    'import-language': ['ditron-import', '--list-language'],
    'opt': ['ditron-opt', '{folder}/ok.mlir'],
    'opt-help': ['ditron-opt', '--help'],
}
CASES = []


def add(name, command, codes=None, **more):
    CASES.append(Case(name, command, codes, **more))


def with_ok_module(folder):
    write(folder, 'ok.mlir', 'func.func @f(%x: i32) -> i32 {\n  return %x : i32\n}\n')


# Standard streams that are closed, full or read by nobody: an output that is missing is never a success.
for name, command in TO_STDOUT.items():
    environment = {'DITRON_CACHE': '1', 'DITRON_CACHE_DIR': '{folder}/cache'} if 'cache' in name else {}
    common = dict(before=with_ok_module, environment=environment)
    add('stdout-closed-' + name, command, {1}, closed=(1,), says='standard output|output stream', **common)
    add('stdout-full-' + name, command, {1, 3}, stdout='/dev/full', says='standard output|output stream', **common)
    add('stderr-closed-' + name, command, {0}, closed=(2,), **common)
    add('stderr-full-' + name, command, {0}, stderr='/dev/full', **common)
    add('all-closed-' + name, command, {1}, closed=(0, 1, 2), **common)
add('error-to-closed-stderr', ['ditron', 'run', 'nothing.py:k'], {1}, closed=(2,))
add('error-to-full-stderr', ['ditron', 'run', 'nothing.py:k'], {1}, stderr='/dev/full')
add('usage-to-full-stderr', ['ditron', 'run', '--nothing'], {1}, stderr='/dev/full')
add('quiet-needs-no-stdout', RUN_OUT + ['--quiet', '--out', 'out=o.npy'], {0}, closed=(0, 1, 2),
    after=lambda folder, out, err: '' if read(folder, 'o.npy')[:6] == b'\x93NUMPY' else 'a message went into the array')
add('stdin-closed-source', ['ditron', 'run', '-:add'], {1}, closed=(0,))

# Files: whole or not there, nothing old lost.
add('out-disk-full', RUN_OUT + ['--out', 'out=old.npy'], {1, 3}, limits={'RLIMIT_FSIZE': 100}, after=keeps_old)
add('out-second-fails', RUN + ['--arg', 'out=zeros:fp32[100]', '--out', 'out=old.npy', '--out', 'x=none/x.npy'], {1},
    after=keeps_old)
add('out-of-failed-run', ['ditron', 'run', 'wild.py:store', '--arg', 'out=zeros:fp32[4]', '--arg', 'offset=99', '--out',
                          'out=old.npy'], {2}, after=keeps_old)
add('out-is-folder', RUN_OUT + ['--out', 'out=.'], {1}, says='directory')
add('out-is-pipe-without-reader', RUN_OUT + ['--out', 'out=pipe'], {1})
add('out-dev-full', RUN_OUT + ['--out', 'out=/dev/full'], {1, 3})
add('out-dev-null', RUN_OUT + ['--out', 'out=/dev/null', '--out', 'x=/dev/null'], {0})
add('out-twice', RUN_OUT + ['--out', 'out=o.npy', '--out', 'x=./o.npy'], {1}, says='same file')
add('out-and-trace', RUN_OUT + ['--out', 'out=o.npy', '--trace', 'o.npy'], {1}, says='same file')
add('out-over-source', RUN_OUT + ['--out', 'out=add.py'], {1}, says='same file',
    after=lambda folder, out, err: '' if b'triton' in read(folder, 'add.py') else 'the source is lost')
add('trace-into-nothing', RUN_OUT + ['--trace', 'none/t.json'], {1}, says='none/t.json')
add('trace-disk-full', RUN_OUT + ['--trace', 'old.npy'], {1, 3}, limits={'RLIMIT_FSIZE': 100}, after=keeps_old)
add('emit-disk-full', COMPILE + ['--emit', 'llvm', '-o', 'old.npy'], {1, 3}, limits={'RLIMIT_FSIZE': 100}, after=keeps_old)
add('emit-over-source', COMPILE + ['--emit', 'llvm', '-o', 'add.py'], {1}, says='same file')
add('json-disk-full', TO_STDOUT['bench'] + ['--json', 'old.npy'], {1, 3}, limits={'RLIMIT_FSIZE': 100}, after=keeps_old)
add('json-into-nothing', TO_STDOUT['bench-softmax'] + ['--json', 'none/x.json'], {1}, says='none/x.json')
for kernel in ('softmax', 'rmsnorm'):
    add('bench-json-and-html-' + kernel, ['ditron', 'bench', kernel, '--shape', '4x64', '--json', 'a', '--html', './a'], {1}, says='same file')
add('bench-gemm-json-and-html', ['ditron', 'bench', 'gemm', '--shape', '16x16x16', '--json', 'a', '--html', './a'], {1}, says='same file')
add('build-to-stdout', ['ditron', 'build', 'add.py:add', '--signature', '*fp32, *fp32, i32, constexpr BLOCK=128', '-o', '-'], {1},
    says='standard output', after=lambda folder, out, err: 'a file of this name' if os.path.exists(os.path.join(folder, '-')) else '')
add('bench-json-and-trace', TO_STDOUT['bench'] + ['--json', 'a', '--trace', './a'], {1}, says='same file')
add('opt-output-full', ['ditron-opt', 'ok.mlir', '-o', '/dev/full'], {1}, before=with_ok_module)
add('opt-output-disk-full', ['ditron-opt', 'ok.mlir', '-o', 'old.npy'], {1}, before=with_ok_module,
    limits={'RLIMIT_FSIZE': 10}, after=keeps_old)
add('opt-output-of-failure', ['ditron-opt', 'add.py', '-o', 'old.npy'], {1}, after=keeps_old)
add('stubs-disk-full', ['ditron-import', '--write-stubs', 'stubs'], {1, 3}, limits={'RLIMIT_FSIZE': 100})
add('dump-disk-full', COMPILE, {0}, environment={'DITRON_DUMP': '*', 'DITRON_DUMP_DIR': '{folder}/dump'},
    limits={'RLIMIT_FSIZE': 100}, says='cannot write')
add('dump-into-file', COMPILE, {0}, environment={'DITRON_DUMP': '*', 'DITRON_DUMP_DIR': '{folder}/add.py'}, says='dump')
for variable in ('HOME', 'DITRON_CACHE_DIR', 'DITRON_LIBDEVICE', 'DITRON_PTXAS'):  # a path is bytes, JSON is UTF-8
    add('doctor-json-of-bytes-' + variable, ['ditron', 'doctor', '--json'], {0}, environment={'DITRON_CACHE': '1', variable: '/tmp/\udcff'})
add('cache-folder-is-file', RUN_OUT, {0}, environment={'DITRON_CACHE': '1', 'DITRON_CACHE_DIR': '{folder}/add.py'})

# Sources that are none, or have no end.
for name, path in (('zero', '/dev/zero'), ('random', '/dev/urandom'), ('folder', '/'), ('null', '/dev/null'),
                   ('memory', '/proc/self/mem'), ('absent', 'none.py')):
    add('source-' + name, ['ditron', 'run', path + ':k'], {1})
    add('import-source-' + name, ['ditron-import', path + ':k'], {1})
    add('array-' + name, RUN + ['--arg', 'out=@' + path], {1})
    add('opt-source-' + name, ['ditron-opt', path], {0, 1})
    add('inspect-source-' + name, ['ditron', 'inspect', path], {1}, seconds=20)
    add('package-source-' + name, RUN_OUT + ['--package', path], {1}, seconds=20)
add('source-pipe-without-writer', ['ditron', 'compile', 'pipe:k'], {1}, says='gave nothing')
add('array-pipe-without-writer', RUN + ['--arg', 'out=@pipe'], {1}, says='gave nothing')
add('stdin-without-end', ['ditron', 'run', '-:k'], {1}, stdin='/dev/zero', says='standard input')
add('opt-stdin-without-end', ['ditron-opt', '-'], {1}, stdin='/dev/zero', limits={'RLIMIT_AS': 4 * GIB})
add('import-without-input', ['ditron-import'], {1})
add('array-huge-shape', RUN + ['--arg', 'out=@huge.npy'], {1})

# Memory that is not there: exit code 3, not an abort.
BIG = ['ditron', 'run', 'wild.py:store', '--arg', 'offset=0']
add('memory-one-array', BIG + ['--arg', 'out=zeros:fp32[%d]' % (1 << 48)], {3})
add('memory-all-ranks', BIG + ['--ranks', '64', '--arg', 'out=zeros:fp32[%d]' % (1 << 32)], {3}, says='memory')
add('memory-symmetric', BIG + ['--ranks', '64', '--arg', 'out=symm:zeros:fp32[%d]' % (1 << 32)], {3}, says='memory')
add('memory-overflow', BIG + ['--arg', 'out=zeros:fp64[4294967296,4294967296]'], {3})
add('memory-sum', BIG + ['--arg', 'out=zeros:fp32[1]', '--ranks', '1024', '--arg', 'offset=0'], {1, 3})
add('addresses-of-many-ranks', RUN_OUT + ['--ranks', '16'], {0}, limits={'RLIMIT_AS': 4 * GIB})
for mebibytes in (50, 200, 300, 400, 500, 700, 1000, 1500, 2500):
    limit = {'RLIMIT_AS': mebibytes * MIB}
    # Below a point the loader itself has no memory (127).
    some = {0, 1, 3, 127}
    add('limited-%d-run' % mebibytes, RUN_OUT, some, limits=limit)
    add('limited-%d-bench' % mebibytes, TO_STDOUT['bench'], some, limits=limit)
    add('limited-%d-compile' % mebibytes, COMPILE + ['--emit', 'asm', '--target', 'cuda:sm_90a'], some, limits=limit)
    add('limited-%d-big' % mebibytes, BIG + ['--arg', 'out=rand:fp32[67108864]'], some, limits=limit)
    add('limited-%d-opt' % mebibytes, ['ditron-opt', 'ok.mlir', '--canonicalize'], some, limits=limit, before=with_ok_module)
add('no-threads', RUN_OUT, {0, 3}, limits={'RLIMIT_NPROC': 1})
add('few-files', RUN_OUT + ['--out', 'out=o.npy'], {0, 1, 3}, limits={'RLIMIT_NOFILE': 8})
add('few-files-many-ranks', RUN_OUT + ['--ranks', '64', '--out', 'out=o{rank}.npy'], {0}, limits={'RLIMIT_NOFILE': 32})
add('bench-huge', ['ditron', 'bench', 'ag_gemm', '--m', '2147483647', '--n', '2147483647', '--k', '2147483647'], {1, 3})
add('bench-huge-k', ['ditron', 'bench', 'gemm_rs', '--m', '1', '--n', '1', '--k', '2147483647', '--ranks', '1024'], {1, 3})
for shape in ('1x1x1', '7x5x3', '100000x100000x100000', '9223372036854775807x1x1', '4294967296x4294967296x4294967296',
              '1x1x9223372036854775807'):
    add('bench-gemm-' + shape, ['ditron', 'bench', 'gemm', '--shape', shape], {0, 1, 3})
for command, shapes in (('softmax', ('1x1', '1x1000000', '9223372036854775807x2', '3x7')), ('rmsnorm', ('1x1', '1x99999999')),
                        ('attention', ('1x1x1x1', '1x1x1x1x1', '1x1x7x3x64', '9999999x9999999x9999999x64', '1x1x1x99999999'))):
    for shape in shapes:
        add('bench-%s-%s' % (command, shape), ['ditron', 'bench', command, '--shape', shape], {0, 1, 3})
add('bench-gemm-plan', ['ditron', 'bench', 'gemm', '--shape', '64x64x64', '--plan', 'nonsense'], {1})
add('bench-gemm-movement', ['ditron', 'bench', 'gemm', '--shape', '64x64x64', '--movement', 'nonsense'], {1})
add('bench-gemm-fp8', ['ditron', 'bench', 'gemm', '--shape', '64x64x64', '--dtype', 'fp8e5'], {0, 1})
add('bench-gemm-i1', ['ditron', 'bench', 'gemm', '--shape', '64x64x64', '--dtype', 'i1'], {1})

# Many threads at once.
CROWD = ['ditron', 'run', 'wait.py:crowd', '--arg', 'flags=symm:zeros:i64[8]', '--arg', 'n=1', '--quiet']
add('threads-32768', CROWD + ['--ranks', '8', '--grid', '8', '--num-warps', '32'], {0})
add('threads-131072', CROWD + ['--ranks', '16', '--grid', '8', '--num-warps', '32'], {0}, seconds=180)

# Kernels that write anywhere, unchecked. The simulator's process must outlive them.
for kernel in ('store', 'load', 'atomic', 'put', 'put_later', 'get', 'put_signal', 'signal'):
    for offset in (1 << 20, 1 << 33, 1 << 40, (1 << 62) - 8, -(1 << 34), -(1 << 45)):
        for unchecked in ((), ('--no-bounds-check',)):
            add('wild-%s-%d%s' % (kernel, offset, '-unchecked' if unchecked else ''),
                ['ditron', 'run', 'wild.py:' + kernel, '--arg', 'out=symm:zeros:fp32[64]', '--arg', 'offset=i64:%d' % offset,
                 '--quiet', *unchecked], {0, 1, 2} if unchecked else {1, 2, 3})

# Texts.
add('type-of-stars', ['ditron', 'compile', 'add.py:add', '--signature', '*' * 40000 + 'fp32, *fp32, i32, constexpr BLOCK=128'],
    {1})
add('constexpr-type-of-stars', RUN_OUT[:3] + ['--constexpr', 'BLOCK=' + '*' * 40000 + 'fp32'], {1})
for name, text in (('parentheses', '(' * 20000), ('closed', '(' * 20000 + '1' + ')' * 20000), ('minus', '-' * 40000 + '1'),
                   ('brackets', '[' * 20000), ('sum', '1+' * 20000 + '1'), ('power', '9**9**9**9'), ('shift', '1<<999999999'),
                   ('digits', '9' * 100000), ('zero', '1//0'), ('star', '4294967296*4294967296*4294967296'),
                   ('negative', '-1'), ('many', '1,' * 1000), ('huge', '4294967295,4294967295,4294967295')):
    add('grid-' + name, RUN_OUT + ['--grid', text], {0, 1, 2, 3})
    add('constexpr-' + name, RUN_OUT[:3] + ['--constexpr', 'BLOCK=' + text, '--arg', 'n=1', '--arg', 'x=zeros:fp32[1]',
                                            '--arg', 'out=zeros:fp32[1]'], {1, 3})
    add('argument-' + name, RUN + ['--arg', 'out=' + text], {1, 3})
    add('define-' + name, ['ditron', 'compile', 'add.py:add', '--define', 'X=' + text], {0, 1})
    add('signature-' + name, ['ditron', 'compile', 'add.py:add', '--signature', text], {1})

# Help from outside that is none.
PTX = ['ditron', 'compile', 'math.py:kernel', '--signature', '*fp32', '--target', 'cuda:sm_90a']
add('ptxas-fails', PTX, {1}, environment={'DITRON_PTXAS': '/bin/false'}, says='DITRON_PTXAS')
add('ptxas-does-nothing', PTX, {1}, environment={'DITRON_PTXAS': '/bin/true'}, says='DITRON_PTXAS')
add('ptxas-is-killed', PTX, {1}, environment={'DITRON_PTXAS': '{folder}/killed'}, says='DITRON_PTXAS',
    before=lambda folder: script(folder, 'killed', 'kill -9 $$'))
add('ptxas-is-no-program', PTX, {1}, environment={'DITRON_PTXAS': '{folder}/garbage'}, says='DITRON_PTXAS',
    before=lambda folder: (write(folder, 'garbage', b'\x7fELF\x00\x01'), os.chmod(os.path.join(folder, 'garbage'), 0o755)))
add('ptxas-is-folder', PTX, {1}, environment={'DITRON_PTXAS': '{folder}'}, says='DITRON_PTXAS')
add('ptxas-absent', PTX, {1}, environment={'DITRON_PTXAS': '/none'}, says='DITRON_PTXAS')
EMPTY_BITCODE = '''target triple = "nvptx64-nvidia-cuda"
define void @nothing() {
  ret void
}
'''
for name, content in (('empty', b''), ('text', b'no bitcode'), ('other', EMPTY_BITCODE.encode()), ('zeros', bytes(4096)),
                      ('magic', b'BC\xc0\xde' + bytes(64))):
    add('libdevice-' + name, PTX + ['--emit', 'asm'], {1}, environment={'DITRON_LIBDEVICE': '{folder}/lib.bc'},
        says='DITRON_LIBDEVICE', before=lambda folder, content=content: write(folder, 'lib.bc', content))
add('libdevice-zero', PTX + ['--emit', 'asm'], {1}, environment={'DITRON_LIBDEVICE': '/dev/zero'}, says='DITRON_LIBDEVICE')
add('libdevice-folder', PTX + ['--emit', 'asm'], {1}, environment={'DITRON_LIBDEVICE': '/'}, says='DITRON_LIBDEVICE')


def script(folder, name, text):
    write(folder, name, '#!/bin/sh\n%s\n' % text)
    os.chmod(os.path.join(folder, name), 0o755)


# Signals during a simulated run: the report of --time-limit, and the exit code of a signal.
for number in (signal.SIGINT, signal.SIGTERM):
    add('signal-%s' % number.name, ['ditron', 'run', 'wait.py:forever', '--arg', 'flags=zeros:i32[1]', '--out', 'flags=old.npy'],
        {128 + number}, signal=number, says='wait.py:', after=keeps_old, seconds=20)
