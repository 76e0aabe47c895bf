"""What the fuzzer mutates: numbers and words that are wrong in every way, the kernels and the IR of the tree, options of the programs'
helps, a folder of compiled kernels."""
import glob
import hashlib
import os
import re
import shutil
import struct
import subprocess

from cases import ADD

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NUMBERS = ['0', '1', '-1', '2', '3', '7', '31', '32', '33', '64', '127', '128', '255', '256', '1023', '1024', '1025', '4096', '65535',
           '65536', '2147483647', '2147483648', '-2147483648', '4294967295', '4294967296', '9223372036854775807',
           '-9223372036854775808', '18446744073709551615', '18446744073709551616', '99999999999999999999999', '0x10', '1e3', '1.5',
           'nan', 'inf', '-0.0', '1_000', '٣', '', ' ', '00', '+1']
WORDS = ['x', 'n', 'BLOCK', 'None', 'True', 'fp32', '*fp32', 'i64', 'zeros:fp32[4]', 'ones:bf16[2,3]', 'arange:i32[8]', 'rand:fp8e5[0]',
         'symm:zeros:i64[1]', 'symm:', '@none.npy', '@/dev/null', '@{rank}', 'desc[2,2]:zeros:fp32[4,4]', 'desc[0]:zeros:fp32[4]',
         '(1,2)', '(x=1, y=zeros:fp32[2])', '((', '))', '"', "'", '\\', '{rank}', '{', '}', '{{rank}}', '%s', '%n', '$(x)', '../..', '/',
         '-', '--', '=', ':', ',', ';', '\n', '\t', '\x01', '\xff', 'é', '😀', 'a' * 5000, '*' * 300 + 'fp32', '[' * 300, '(' * 300,
         'tensordesc<fp16[16,16]>', 'tensordesc<fp16[0]>', 'constexpr BLOCK=32', 'cdiv(n,BLOCK)', 'n//0', 'n%0', 'zeros:fp32[99999999999]',
         'zeros:fp32[4,-1]', 'i64:7', 'fp8e4nv:1.5', 'i1:2', 'u8:-1', 'sim', 'cuda', 'cuda:sm_90a', 'sim:sm_90a', 'sim:sm_1', 'amd:gfx942']
# What --arg takes.
SPECIFICATIONS = ['3', '-0x10', '2.5', 'true', 'None', 'i64:7', 'fp32:1.5', 'scalar@n.npy', '@last.npy', 'bf16@last.npy', 'zeros:fp32[4]',
                  'ones:bf16[2,3]', 'full(2.5):fp16[4]', 'arange(3,2):i32[8]', 'rand:fp8e5[4]', 'rand(7):fp64[2,2]', 'i32:[1,2,3]',
                  'fp32:[[1,2],[3,4]]', 'symm:zeros:i64[4]', 'symm:@last.npy', 'desc[2,2]:zeros:fp32[4,4]', 'desc[4,nan]@last.npy', 'ptr:x',
                  'ptr:out[2]', 'ptr:x@0', '[ptr:x,ptr:out]', 'u64:[ptr:x@*]', '(1,2)', '(x=1, y=zeros:fp32[2])', '((1, 2), @last.npy)',
                  'per-rank:1,2,3', 'per-rank:zeros:fp32[4],ones:fp32[4]', 'full({rank}):fp32[4]', '@last{rank}.npy']
# Where --out and its like write: good places, and all others.
FILES = ['made.npy', 'last.npy', 'm/n.npy', 'new/made.npy', '.', 'm', '/dev/full', '/dev/null', 'add.py', '-', '', 'fifo', 'loop', 'read-only.npy',
         'fp16@made.npy', 'made{rank}.npy', '/nowhere/x', 'x' * 300]


def pick_value(rng):
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(NUMBERS)
    if kind < 0.8:
        return rng.choice(WORDS)
    return ''.join(rng.choice(NUMBERS + WORDS)[:40] for _ in range(rng.randint(1, 5)))


def mutate_text(rng, text, words, others=()):
    """Some edits of characters, words, numbers and lines."""
    lines = text.split('\n')
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(lines))
        edit = rng.randrange(10 if others else 9)
        if edit == 0:
            lines.insert(at, rng.choice(lines))
        elif edit == 1 and len(lines) > 1:
            del lines[at]
        elif edit == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif edit in (3, 4):
            numbers = [match for match in re.finditer(r'(?<![\w.])-?\d+', lines[at])]
            if numbers:
                match = rng.choice(numbers)
                lines[at] = lines[at][:match.start()] + rng.choice(NUMBERS[:28]) + lines[at][match.end():]
        elif edit in (5, 6):
            found = [match for match in re.finditer(r'[\w.]+', lines[at])]
            if found:
                match = rng.choice(found)
                lines[at] = lines[at][:match.start()] + rng.choice(words) + lines[at][match.end():]
        elif edit == 7 and lines[at]:
            place = rng.randrange(len(lines[at]))
            lines[at] = lines[at][:place] + rng.choice('()[]{}<>:,=*"\'#%@!\\ \t0') + lines[at][place + rng.randint(0, 1):]
        elif edit == 8 and lines[at]:
            begin = rng.randrange(len(lines[at]))
            lines[at] = lines[at][:begin] + lines[at][begin + rng.randint(1, 8):]
        elif edit == 9:  # a piece of another text
            other = rng.choice(others).split('\n')
            begin = rng.randrange(len(other))
            lines[at:at] = other[begin:begin + rng.randint(1, 4)]
    return '\n'.join(lines)


def indent_of(line):
    return line[:len(line) - len(line.lstrip())]


def mutate_program(rng, text, others):
    """Edits after which Python's grammar mostly still holds, so that what comes behind the parser sees them too."""
    lines = text.split('\n')
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = [at for at, line in enumerate(lines) if line.startswith(' ') and line.strip()]
        if not places:
            break
        at = rng.choice(places)
        edit = rng.randrange(7)
        if edit < 2:  # a line of here or elsewhere
            source = rng.choice([lines, lines, rng.choice(others).split('\n')])
            lines.insert(at, indent_of(lines[at]) + rng.choice(source).strip())
        elif edit == 2:
            del lines[at]
        elif edit == 3:
            lines[at] = replace_match(rng, lines[at], r'(?<![\w.])\d+(\.\d+)?', NUMBERS[:14] + ['0.5', '-1', '2**31', '2**40', 'True'])
        elif edit == 4:
            lines[at] = replace_match(rng, lines[at], r'[-+*/%<>=&|^]{1,2}(?= )', OPERATORS)
        else:  # a word of the same text stands for another
            pattern = r'(?<!\w)[A-Za-z_][\w.]*' if edit == 5 else r'(?<=tl\.)\w+|(?<=libshmem_device\.)\w+|(?<=dl\.)\w+'
            lines[at] = replace_match(rng, lines[at], pattern, re.findall(pattern, rng.choice([text, text, rng.choice(others)])))
    return '\n'.join(lines)


OPERATORS = '+ - * / // % ** & | ^ << >> < <= > >= == != = += -='.split()


def replace_match(rng, line, pattern, replacements):
    found = list(re.finditer(pattern, line))
    if not found or not replacements:
        return line
    match = rng.choice(found)
    return line[:match.start()] + rng.choice(replacements) + line[match.end():]


def damage(rng, path, others):
    """Does to a file what a crash, a full disk or another program might do."""
    data = bytearray(open(path, 'rb').read())
    for _ in range(rng.choice((1, 1, 2, 8))):
        kind, at = rng.randrange(7), rng.randrange(len(data) + 1)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.randint(1, 64))
        elif kind == 3:
            del data[at:at + rng.randint(1, 64)]
        elif kind == 4:
            data[at:at + 8] = struct.pack('<q', rng.choice((0, -1, 1 << 31, 1 << 62, len(data))))
        elif kind == 5 and others:
            data[at:] = open(rng.choice(others), 'rb').read()[at:]
        elif kind == 6 and others:
            data = bytearray(open(rng.choice(others), 'rb').read())
    open(path, 'wb').write(data)


def kernel_paths():
    """Files with kernels: the library, examples, tests, what the docs print."""
    for folder, names in (('kernels', '**/*.py'), ('examples', '*.py'), ('tests', '**/*.py'), ('tests/fuzz/corpus', '*'),
                          ('ditron', '**/test/**/*.py'), ('tools', '**/test/**/*.py'), ('docs', '*.md'), ('.', 'README.md')):
        yield from glob.glob(os.path.join(ROOT, folder, names), recursive=True)


class Inputs:
    COMMANDS = ('run', 'compile', 'build', 'inspect', 'cache', 'cache ls', 'cache verify', 'cache prune', 'knobs', 'doctor', 'launch', 'bench gemm', 'bench softmax',
                'bench ag_gemm', 'bench attention', 'bench rmsnorm', 'bench gemm_rs', 'bench orders', 'demo', 'layout tile', 'layout mma',
                'layout wgmma', 'layout fma', 'layout swizzled', 'layout text')

    def __init__(self, tools, folder):
        self.kernels, self.wrong_kernels = [], []
        for path in sorted(set(kernel_paths())):
            text = open(path, errors='replace').read()
            pieces = re.findall(r'```python\n(.*?)```', text, re.DOTALL) if path.endswith('.md') else text.split('# -----')
            kept = self.wrong_kernels if re.search('syntax|error|corpus', path[len(ROOT):]) else self.kernels
            kept += [piece for piece in pieces if '@triton.jit' in piece and len(piece) < 20000]
        self.kernel_words = sorted({word for text in self.kernels for word in re.findall(r'[\w.]+', text)})
        self.read_modules()
        self.options = {}
        for command in self.COMMANDS:
            text = subprocess.run([tools + '/ditron', *command.split(), '--help'], capture_output=True, text=True).stdout
            self.options[command] = sorted(set(re.findall(r'(?<!\w)--?[a-z][\w-]*', text)) - {'--target', '--help', '-h'}) or ['--quiet']
        self.fill_cache(tools, folder)
        self.build_package(tools, folder)

    def read_modules(self):
        self.modules = []
        for path in sorted(glob.glob(ROOT + '/ditron/**/test/**/*.mlir', recursive=True)):
            text = open(path, errors='replace').read()
            runs = ' '.join(re.findall(r'RUN:([^\n]*)', text)).replace('\\', ' ')
            flags = [flag for flag in re.findall(r'(?<=\s)--[a-z][\w-]*(?:="[^"]*"|=\S+)?', runs)
                     if re.match(r'--(tile|dist|dgpu|ditron|test|canonicalize|cse|sccp|loop|symbol|convert|target|nvptx|sim|lower)', flag)]
            text = re.sub(r'//(?! -----)[^\n]*', '', text)
            for piece in text.split('// -----'):
                if len(piece) < 8000 and '(' in piece:
                    self.modules.append((piece, flags))
        self.module_texts = [text for text, _ in self.modules]
        self.module_words = sorted({word for text in self.module_texts for word in re.findall(r'[\w.]+', text)})
        self.passes = sorted({flag for _, flags in self.modules for flag in flags})

    def fill_cache(self, tools, folder):
        """A folder of compiled kernels, whole."""
        self.cache = os.path.join(folder, 'whole-cache')
        os.mkdir(self.cache, 0o700)
        open(folder + '/add.py', 'w').write(ADD)
        environment = dict(os.environ, DITRON_CACHE='1', DITRON_CACHE_DIR=self.cache)
        for block in (32, 64):
            subprocess.run([tools + '/ditron', 'run', folder + '/add.py:add', '--arg', 'x=full(2):fp32[40]', '--arg', 'out=zeros:fp32[40]',
                            '--arg', 'n=40', '--constexpr', 'BLOCK=%d' % block, '--quiet'], env=environment, check=True)

    def build_package(self, tools, folder):
        self.package = os.path.join(folder, 'whole.ditron')
        subprocess.run([tools + '/ditron', 'build', folder + '/add.py:add', '--target', 'sim', '--target', 'cuda:sm_80', '-o', self.package,
                        '--signature', '*fp32, *fp32, i32, constexpr BLOCK=32'], stdout=subprocess.DEVNULL, check=True,
                       env=dict(os.environ, DITRON_CACHE='0'))

    def copy_package(self, rng, path):
        """A damaged one. True when its length and hash are right all the same, as in a file that somebody made on purpose."""
        shutil.copy(self.package, path)
        damage(rng, path, [self.package])
        data = bytearray(open(path, 'rb').read())
        if len(data) < 56 or rng.random() < 0.5:
            return False
        data[16:24] = struct.pack('<Q', len(data))
        data[-32:] = hashlib.sha256(data[:-32]).digest()
        open(path, 'wb').write(data)
        return True

    def copy_cache(self, rng, folder):
        """One that something has damaged."""
        cache = os.path.join(folder, 'cache')
        shutil.copytree(self.cache, cache)
        os.chmod(cache, 0o700)
        paths = sorted(glob.glob(cache + '/*'))
        for path in rng.sample(paths, rng.randint(1, len(paths))):
            kind = rng.random()
            if kind < 0.85:
                damage(rng, path, [other for other in paths if os.path.isfile(other) and not os.path.islink(other)])
                if rng.random() < 0.05:
                    os.chmod(path, rng.choice((0, 0o400, 0o666)))
                continue
            os.unlink(path)
            if kind < 0.88:
                os.mkdir(path)
            elif kind < 0.91:
                os.symlink(rng.choice(['/dev/zero', path, '/nowhere']), path)
            elif kind < 0.94:
                os.mkfifo(path)
        return cache
