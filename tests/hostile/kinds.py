"""The seven kinds of input: functions from (random, Inputs, folder) to a Trial; the folder is the current one of the run, made by prepare()."""
import os
import re
from dataclasses import dataclass, field

from cases import ADD
from inputs import FILES, NUMBERS, SPECIFICATIONS, WORDS, mutate_program, mutate_text, pick_value

LAST = b"\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }".ljust(127) + b'\n' + bytes(16)


@dataclass
class Trial:
    """A command, and what must be true of it besides what must be true of every command."""

    words: list  # the program's name first
    data: bytes = b''  # on standard input
    environment: dict = field(default_factory=dict)
    makes: list = field(default_factory=list)  # files that are there when the exit code is 0
    mismatch: bool = False  # exit code 5 is no bug


def prepare(folder):
    """What the commands find: a kernel, the result of an earlier run, places where no file can be written."""
    open(folder + '/add.py', 'w').write(ADD)
    for name in ('last.npy', 'read-only.npy', 'n.npy'):
        open(folder + '/' + name, 'wb').write(LAST)
    os.chmod(folder + '/read-only.npy', 0o400)
    os.mkdir(folder + '/m')
    os.symlink('loop', folder + '/loop')


def option_value(rng, option):
    value = pick_value(rng)
    if option in ('--arg', '--memory', '--expect') and rng.random() < 0.7:
        value = rng.choice(SPECIFICATIONS)
    if option in ('--out', '--trace', '--svg', '--html', '--json', '-o', '--output') and rng.random() < 0.8:
        value = rng.choice(FILES)
        value = value if option == '--out' else value.replace('.npy', '.text')
    if option in ('--arg', '--constexpr', '--out', '--memory', '--expect') and rng.random() < 0.8:
        value = rng.choice(['x', 'n', 'out', 'BLOCK', 'y', '']) + '=' + value
    return value


LAYOUTS = ["4x8, reg = {j0 i1}, lane = [j1 j2 i0], warp = []", "16x32, reg = {j0 j1}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]"]


def command_line(rng, inputs, folder):
    """Options of the program's own help with values that are wrong in every way."""
    command = rng.choice(sorted(inputs.options) + ['run', 'run', 'compile', 'compile'])
    words = command.split()
    if command in ('run', 'compile', 'build'):
        words.append(rng.choice(['add.py:add', 'add.py:add', 'add.py', 'add.py:', ':', 'add.py:none', '-:add', pick_value(rng)]))
    if command == 'run':
        words += ['--constexpr', 'BLOCK=32', '--arg', 'n=4', '--arg', 'x=zeros:fp32[4]', '--arg', 'out=zeros:fp32[4]']
    if command in ('compile', 'build'):
        words += ['--signature', '*fp32, *fp32, i32, constexpr BLOCK=32']
    if command == 'build':
        words += ['--target', 'sim', '-o', 'app.ditron']
    if command == 'launch':
        words += ['-n', '2']
    if command == 'layout text':
        words.append(mutate_text(rng, rng.choice(LAYOUTS), NUMBERS))
    elif command.startswith('layout'):
        words += ['--shape', rng.choice(['16x32', '8x64', '16', '16x16x16', '1x1', '64x64', pick_value(rng)])]
    if command.startswith('bench'):
        words += ['--m', '16', '--n', '16', '--k', '16', '--ranks', '2'] if '_' in command else ['--shape', '16x16x16', '--milliseconds', '0.1']
    for _ in range(rng.randint(0, 4)):
        option = rng.choice(inputs.options[command])
        words.append(option)
        if rng.random() < 0.8:
            words.append(option_value(rng, option))
        if rng.random() < 0.1:
            rng.shuffle(words)
    if command == 'launch':
        words += ['/bin/true']
    makes = ['made.npy'] if command == 'run' and not {'--help', '-h', '--version'} & set(words) else []
    words += ['--time-limit', '2', '--out', 'out=made.npy'] if command == 'run' else []
    return Trial(['ditron', *words], makes=makes, mismatch=True)


def argument_text(rng, inputs, folder):
    """One argument, grid, signature, slice, expectation ... that is not quite right."""
    words = ['run', 'add.py:add', '--time-limit', '2', '--quiet']
    given = {'x': '--arg', 'out': '--arg', 'n': '--arg', 'BLOCK': '--constexpr'}
    usual = {'x': 'zeros:fp32[4]', 'out': 'zeros:fp32[4]', 'n': '4', 'BLOCK': '32'}
    texts = {'grid': (['cdiv(n, BLOCK)', '1,2,3', 'min(n, 3)*2', '-(-n//BLOCK)'], NUMBERS),
             'print': (['out', 'out[0:4]', 'x[1:4:2]@0', 'out[-1]', 'x[:]@1'], NUMBERS),
             'out': (['out=made.npy', 'out=fp16@made.npy', 'out=made{rank}.npy'], [*FILES, 'bf16', '{rank}']),
             'expect': (['out=' + text for text in SPECIFICATIONS], SPECIFICATIONS),
             'memory': (['y=' + text for text in SPECIFICATIONS], SPECIFICATIONS),
             'define': (['torch.cuda.device_count()=8', 'USE=True', 'import x=False'], WORDS),
             'tolerance': (['1e-3,0', '0,1e-2', '1'], NUMBERS)}
    wrong = rng.choice([*given, 'x', 'x', *texts, 'signature'])
    if wrong == 'signature':
        text = mutate_text(rng, '*fp32:16, *fp32, i32, constexpr BLOCK=32', WORDS)
        return Trial(['ditron', 'compile', 'add.py:add', '--signature', text])
    for name, option in given.items():
        value = usual[name]
        if name == wrong:
            value = pick_value(rng) if rng.random() < 0.3 else mutate_text(rng, rng.choice(SPECIFICATIONS), SPECIFICATIONS)
        words += [option, name + '=' + value]
    if wrong in texts:
        choices, replacements = texts[wrong]
        words += ['--' + wrong, mutate_text(rng, rng.choice(choices), replacements)]
    words += ['--arg', 'x=ptr:y'] if wrong == 'memory' else []
    words += ['--expect', 'out=ones:fp32[4]'] if wrong == 'tolerance' else []
    makes = []
    if wrong != 'out':
        words += ['--ranks', rng.choice(['1', '2', '3', '8'])] if rng.random() < 0.1 else []
        words += ['--out', 'out=made{rank}.npy']
        makes = ['made0.npy']
    return Trial(['ditron', *words], makes=makes, mismatch=True)


def mutated_kernel(rng, inputs, folder):
    """Writes k.py; gives its text, the name and the parameters of one of its kernels, None when it has none."""
    text = rng.choice(inputs.kernels if rng.random() < 0.85 else inputs.wrong_kernels)
    if rng.random() < 0.75:
        text = mutate_program(rng, text, inputs.kernels)
    else:
        text = mutate_text(rng, text, inputs.kernel_words, inputs.kernels)
    open(os.path.join(folder, 'k.py'), 'w', errors='replace').write(text)
    names = re.findall(r'@[\w.]*jit[^\n]*\n(?:@[^\n]*\n)*def ([A-Za-z_]\w*)\(([^)]*)\)', text)
    if not names:
        return None
    name, parameters = rng.choice(names)
    parameters = [parameter.strip() for parameter in re.sub(r'#[^\n]*', '', parameters).split(',')]
    return text, name, [(parameter.split(':')[0].split('=')[0].strip(), 'constexpr' in parameter, '=' in parameter)
                        for parameter in parameters if parameter and parameter != '*']


def is_pointer(name, text):
    """A guess from the parameter's name and from what the kernels of the file do with it."""
    return re.search(r'ptr|signal|^(x|y|out|inbox|src|dst)$', name) or re.search(
        r'(load|store|atomic_\w+|put\w*|get\w*|wait|notify|symm_at|make_block_ptr)\(\s*%s\b|\b%s \+ ' % (re.escape(name), re.escape(name)), text)


def kernel_file(rng, inputs, folder):
    """A mutated kernel, compiled for one of the targets."""
    found = mutated_kernel(rng, inputs, folder)
    if not found:
        return Trial(['ditron-import', 'k.py', '--describe'])
    text, name, parameters = found
    items = []
    for own, is_constant, has_default in parameters:
        if not is_constant:
            items.append('*fp32' if is_pointer(own, text) else 'i32')
        elif not has_default:
            items.append('constexpr %s=%s' % (own, rng.choice(['16', '32', '64', 'True', '1'])))
    target = rng.choice(['sim:sm_80', 'cuda:sm_80', 'cuda:sm_90a', 'cuda:sm_100a'])
    return Trial(['ditron', 'compile', 'k.py:' + name, '--target', target, '--num-warps', rng.choice(['1', '2', '4', '8']),
                  '--signature', ', '.join(items)])


def kernel_run(rng, inputs, folder):
    """The same, and the kernel runs on the simulator, with whatever its mutation made of it."""
    found = mutated_kernel(rng, inputs, folder)
    if not found:
        return Trial(['ditron', 'run', 'k.py'])
    text, name, parameters = found
    words = ['run', 'k.py:' + name, '--time-limit', '2', '--quiet', '--sms', '2', '--num-warps', rng.choice(['1', '2', '4']),
             '--ranks', rng.choice(['1', '1', '2', '3']), '--seed', str(rng.randrange(1000))]
    for own, is_constant, has_default in parameters:
        if is_constant:
            if not has_default:
                words += ['--constexpr', '%s=%s' % (own, rng.choice(['16', '32', '64', 'True', '1', '4']))]
        elif is_pointer(own, text):
            element = 'i64' if 'signal' in own else rng.choice(['fp32'] * 4 + ['fp16', 'bf16', 'i32', 'i64', 'fp8e5', 'i8', 'fp64'])
            words += ['--arg', '%s=%srand:%s[%s]' % (own, rng.choice(['', 'symm:']), element, rng.choice(['4096', '64,64', '16', '1']))]
        else:
            words += ['--arg', '%s=%s' % (own, rng.choice(['4', '16', '64', '1', '0', '-1', '100']))]
    words += ['--grid', rng.choice(['2', '1,2', '2,1,3'])] if rng.random() < 0.3 else []
    words += [option for option in ('--no-bounds-check', '--debug', '--cooperative') if rng.random() < 0.1]
    return Trial(['ditron', *words])


def module(rng, inputs, folder):
    """IR for ditron-opt: mutations of lit tests, run through passes."""
    text, flags = rng.choice(inputs.modules)
    text = mutate_text(rng, text, inputs.module_words, inputs.module_texts)
    flags = [flag for flag in flags if rng.random() < 0.8] if rng.random() < 0.7 else rng.sample(inputs.passes, rng.randint(1, 4))
    return Trial(['ditron-opt', '-', *flags], text.encode(errors='replace'))


def cache_entry(rng, inputs, folder):
    """A folder of compiled kernels that something has damaged: the run compiles anew, and its result is right."""
    environment = {'DITRON_CACHE': '1', 'DITRON_CACHE_DIR': inputs.copy_cache(rng, folder)}
    words = ['run', 'add.py:add', '--arg', 'x=full(2):fp32[40]', '--arg', 'out=zeros:fp32[40]', '--arg', 'n=40', '--constexpr',
             'BLOCK=' + rng.choice(('32', '64')), '--grid', 'cdiv(n, BLOCK)', '--expect', 'out=full(3):fp32[40]', '--quiet', '--out', 'out=made.npy']
    if rng.random() < 0.4:
        return Trial(['ditron', 'cache', rng.choice(('ls', 'verify', 'prune'))], environment=environment)
    return Trial(['ditron', *words], environment=environment, makes=['made.npy'])


def package_file(rng, inputs, folder):
    """A damaged package. One whose hash is right is looked at and added to, not run: its code is what somebody wished."""
    is_plausible = inputs.copy_package(rng, os.path.join(folder, 'app.ditron'))
    choice = rng.randrange(2 if is_plausible else 3)
    if choice == 0:
        return Trial(['ditron', 'inspect', 'app.ditron'])
    if choice == 1:
        return Trial(['ditron', 'build', 'add.py:add', '--add', '-o', 'app.ditron', '--target', 'sim', '--signature',
                      '*fp32:16, *fp32, i32, constexpr BLOCK=' + rng.choice(('32', '64'))], makes=['app.ditron'])
    return Trial(['ditron', 'run', 'add.py:add', '--package', 'app.ditron', '--arg', 'x=full(2):fp32[32]', '--arg', 'out=zeros:fp32[32]', '--arg',
                  'n=32', '--constexpr', 'BLOCK=32', '--expect', 'out=full(3):fp32[32]', '--out', 'out=made.npy'], makes=['made.npy'])


KINDS = (command_line, argument_text, kernel_file, kernel_run, module, cache_entry, package_file)
