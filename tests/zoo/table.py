"""What is in the zoo: how each program is run, and what the report about a mistake must say.

`run` is the command line of `ditron run` behind the kernel, where name=value stands for `--arg`, NAME=value for `--constexpr`, and
{form} for the function: buggy, fixed, or kernel. What follows in `buggy` or `fixed` is for that form alone. A report is right if it
is of the `kind`, has all `words`, and names the source lines that the program marks (README.md).

`needs` says what the simulator has to learn before it can report the mistake for what it is, or leave the correct program alone;
without it, it does today.

`program` stands for a run file, mistakes/NAME.buggy.json and NAME.fixed.json, with kernels in `source`.py; lines of both may be marked.
"""
from dataclasses import dataclass, field

# The exit code, and words of which one must be in the report.
KINDS = {
    'race': (2, ('data race', 'is still writing', 'may still be reading', 'without fence_async')),
    'deadlock': (2, ('deadlock', 'threads wait for each other')),
    'bounds': (2, ('outside of every allocation', 'outside of', 'is not one of', 'negative', 'that is not symmetric', 'has left')),
    'misaligned': (2, ('misaligned',)),
    'other node': (2, ('is memory of node 1, and rank 0 is on node 0', 'remote_ptr has given null')),
    'refused': (1, ('only some of them arrive here',)),  # by the compiler
    'wrong numbers': (5, ('is not as expected',)),
    'old value': (5, ('was given an older value',)),  # wrong numbers, and why
    'mbarrier': (2, ('which is no mbarrier', 'of 1 left')),
    # Of host code.
    'baked': (2, ('a replay repeats the value of the capture',)),
    'freed': (2, ('is freed while', 'is freed before', 'use after free')),
    'one-sided': (2, ('is a call of all ranks', 'all ranks make the same calls')),
    'capture': (2, ('has captured work that nothing waits for',)),
}


@dataclass
class Program:
    name: str
    kind: str  # of KINDS; '' for a program that is correct
    run: str
    zoo: str = ''
    words: tuple = ()
    buggy: str = ''
    fixed: str = ''
    needs: str = ''
    schedules: int = 200
    source: str = ''  # of several programs with one file; empty: `name`
    is_run_file: bool = False
    forms: tuple = field(init=False)

    def __post_init__(self):
        self.forms = ('buggy', 'fixed') if self.kind else ('kernel',)

    def run_file(self, form):
        return 'mistakes/%s.%s.json' % (self.name, form)

    @property
    def file(self):
        return ('mistakes/' if self.kind else 'correct/') + (self.source or self.name) + '.py'


def race(name, buffer, run, **more):
    return Program(name, 'race', run, words=(buffer,), **more)


def deadlock(name, words, run, **more):
    return Program(name, 'deadlock', run, words=words if isinstance(words, tuple) else (words,), **more)


def bounds(name, buffer, run, **more):
    return Program(name, 'bounds', run, words=(buffer,), **more)


def correct(name, run, **more):
    return Program(name, '', run, **more)


def program(name, kind, words=(), **more):
    """A run file: what the hosts do."""
    return Program(name, kind, '', words=words if isinstance(words, tuple) else (words,), is_run_file=True, **more)


def numbers(values):
    return 'i32:[%s]' % ','.join(map(str, values))


def on_rank_1(values):
    values = list(values)
    return 'per-rank:zeros:i32[%d],%s' % (len(values), numbers(values))


TILE = range(128)
FOUR_STEPS = ' --expect out_ptr=' + on_rank_1(100 * step + i for step in range(4) for i in TILE)


# Rank 0 sends 1, 2, ... to rank 1.
MESSAGE = ('--ranks 2 data_ptr=symm:zeros:i32[128] flag_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[128] '
           '--expect out_ptr=per-rank:zeros:i32[128],arange(1):i32[128]')
# Block 0 does so to block 1.
BLOCK_MESSAGE = ('--grid 2 data_ptr=zeros:i32[128] flag_ptr=zeros:i32[1] out_ptr=zeros:i32[128] '
                 '--expect out_ptr=arange(1):i32[128]')
# Every rank sends to its right neighbour.
RING = '--ranks 2 inbox_ptr=symm:zeros:i32[128] signal_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[128] '
# Puts of rank 0 to rank 1, or of both to each other.
PUT = ('--ranks 2 data_ptr=symm:zeros:i32[128] source_ptr=arange(1):i32[128] signal_ptr=symm:zeros:i64[1] out_ptr=zeros:i32[128] '
       '--expect out_ptr=per-rank:zeros:i32[128],arange(1):i32[128]')
EXCHANGE = ('--ranks 2 data_ptr=symm:zeros:i32[128] source_ptr=arange(1):i32[128] out_ptr=zeros:i32[128] '
            '--expect out_ptr=arange(1):i32[128]')
TWO_PUTS = ('--ranks 2 data_ptr=symm:zeros:i32[256] source_ptr=arange(1):i32[256] signal_ptr=symm:zeros:i64[2] '
            'out_ptr=zeros:i32[256] --expect out_ptr=per-rank:zeros:i32[256],arange(1):i32[256]')
NODES = '--ranks-per-node 1 '
LOCK = '--grid 6 lock_ptr=zeros:i32[1] sum_ptr=zeros:i32[1] --expect sum_ptr=i32:[6]'
HOPPER = '--target sim:sm_90a '
# A bulk copy of what the block, or block 0, has stored.
FETCH = HOPPER + 'box_ptr=zeros:i32[128] out_ptr=zeros:i32[128] --expect out_ptr=arange(7):i32[128]'
FETCH_ACROSS_BLOCKS = '--grid 2 flag_ptr=zeros:i32[1] ' + FETCH
QUIETS = ('--ranks 2 --grid 2 --cooperative data_ptr=symm:zeros:i32[384] source_ptr=arange:i32[256] signal_ptr=symm:zeros:i64[1] '
          'grid_ptr=zeros:i32[1] out_ptr=zeros:i32[384] --then again --grid 2 --expect out_ptr=' +
          numbers(list(range(256)) + [7 + i for i in TILE]))
PRODUCT = '--grid 2,1 a_ptr=ones:fp16[128,128] b_ptr=ones:fp16[128,64] c_ptr=zeros:fp32[128,64] rows=128 columns=64 depth=128 '\
          '--expect c_ptr=full(128):fp32[128,64]'

PROGRAMS = [
    # Order and scope of a flag.
    race('message_relaxed', 'data_ptr', MESSAGE, zoo='Z1'),
    race('flag_raised_relaxed', 'data_ptr', MESSAGE),
    race('flag_read_relaxed', 'data_ptr', MESSAGE),
    race('flag_read_plainly', '_ptr', MESSAGE),
    race('release_scope_gpu', '_ptr', MESSAGE),
    race('acquire_scope_gpu', '_ptr', MESSAGE, zoo='Z2'),
    race('notify_scope_gpu', '_ptr', MESSAGE),
    race('fence_scope_gpu', 'data_ptr', MESSAGE),
    race('fence_behind_flag', 'data_ptr', MESSAGE),
    race('release_by_one_thread', 'data_ptr', MESSAGE, zoo='Z4'),
    race('acquire_by_one_thread', 'data_ptr', MESSAGE),
    race('flag_by_other_warp', 'data_ptr',
         '--ranks 2 data_ptr=symm:zeros:i32[32] flag_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[128] '
         '--expect out_ptr=' + on_rank_1(i + 1 if i < 32 else 0 for i in TILE)),
    race('release_scope_cta', '_ptr', BLOCK_MESSAGE),
    race('acquire_scope_cta', '_ptr', BLOCK_MESSAGE),
    race('flag_of_two_writers', 'flag_ptr', '--ranks 3 flag_ptr=symm:zeros:i64[1] out_ptr=zeros:i32[1] '
         '--expect out_ptr=per-rank:i32:[1],i32:[0],i32:[0]', zoo='Z3'),
    race('flag_in_two_halves', 'flag_ptr', '--ranks 2 flag_ptr=symm:zeros:i64[1] out_ptr=zeros:i64[1] '
         '--expect out_ptr=per-rank:i64:[0],i64:[21474836487]'),
    Program('data_and_flag_in_two_words', 'old value', '--ranks 2 slots_ptr=symm:zeros:i32[256] out_ptr=zeros:i32[128] '
            '--expect out_ptr=per-rank:zeros:i32[128],arange(100):i32[128]'),

    Program('published_relaxed', 'old value', '--grid 2 pool_ptr=zeros:i32[64] head_ptr=full(-1):i32[1] out_ptr=zeros:i32[1] '
            '--expect out_ptr=i32:[99]', words=('pool_ptr[17]', 'head_ptr[0] was raised')),
    Program('peterson_without_fence', 'old value', '--ranks 2 --num-warps 1 want_ptr=symm:zeros:i32[2] turn_ptr=symm:zeros:i32[1] '
            'sum_ptr=symm:zeros:i32[1] --expect sum_ptr=per-rank:i32:[6],i32:[0]', words=('want_ptr[',)),
    Program('after_you', 'old value', '--grid 2 flags_ptr=zeros:i32[2] seen_ptr=zeros:i32[1] --expect seen_ptr=i32:[1]'),

    race('helper_without_barrier', 'box_ptr', '--ranks 3 box_ptr=symm:zeros:fp16[512] flag_ptr=symm:zeros:i32[1] out_ptr=zeros:fp16[512]'),
    race('barrier_acquires_only', 'box_ptr', '--ranks 4 box_ptr=symm:zeros:i32[512] count_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[128]'),
    race('multicast_before_flag', 'box_ptr', HOPPER + '--ranks 4 box_ptr=symm:zeros:i32[128] flag_ptr=symm:zeros:i32[4] '
         'out_ptr=zeros:i32[128] --expect out_ptr=arange(1):i32[128]'),
    race('reduction_before_barrier', 'x_ptr', HOPPER + '--ranks 4 --num-warps 1 x_ptr=symm:zeros:fp32[128] out_ptr=zeros:fp32[128] '
         '--expect out_ptr=full(10):fp32[128]'),
    race('half_of_signal', 'flag_ptr', '--ranks 2 --num-warps 1 flag_ptr=symm:zeros:i64[2] out_ptr=zeros:i64[1]'),

    # Threads of a block, blocks of a grid.
    race('warp_barrier_for_block', 'shared', '--num-warps 8 out_ptr=zeros:i32[256]'),
    race('arrival_before_store', 'shared', 'x_ptr=arange:i32[64] out_ptr=zeros:i32[64] --expect out_ptr=arange:i32[64]'),
    race('shared_flag_relaxed', 'shared', 'out_ptr=zeros:i32[32] --expect out_ptr=arange:i32[32]'),
    race('last_arriver_by_one_thread', 'part_ptr', '--grid 5 part_ptr=zeros:fp32[640] count_ptr=zeros:i32[1] out_ptr=zeros:fp32[128] '
         'last_ptr=zeros:i32[5] --expect out_ptr=full(5):fp32[128]'),
    deadlock('count_reset_behind_release', ('sense_ptr[0]', 'has 1'), '--grid 4 --cooperative count_ptr=zeros:i32[1] '
             'sense_ptr=zeros:i32[1] data_ptr=zeros:i32[4] out_ptr=zeros:i32[4]'),
    race('block_barrier_missing', 'scratch_ptr', 'x_ptr=arange:i32[128] scratch_ptr=zeros:i32[128] out_ptr=zeros:i32[128] '
         '--expect out_ptr=arange(127,-1):i32[128]'),
    race('reverse_in_place', 'x_ptr', 'x_ptr=arange:i32[128] --expect x_ptr=arange(127,-1):i32[128]'),
    race('second_barrier_missing', 'scratch_ptr', 'x_ptr=arange:i32[256] scratch_ptr=zeros:i32[128] out_ptr=zeros:i32[256] '
         '--expect out_ptr=' + numbers(128 * step + 127 - i for step in range(2) for i in TILE)),
    race('shared_memory_barrier_missing', 'shared', 'x_ptr=arange:i32[128] out_ptr=zeros:i32[128] '
         '--expect out_ptr=arange(127,-1):i32[128]'),
    race('named_barrier_of_half', 'shared', 'x_ptr=arange:i32[128] out_ptr=zeros:i32[128] '
         '--expect out_ptr=' + numbers(127 - i if i < 64 else 0 for i in TILE)),
    deadlock('named_barrier_count', 'barrier', 'x_ptr=arange:i32[128] out_ptr=zeros:i32[128]'),
    Program('divergent_barrier', 'refused', 'word_ptr=zeros:i32[1] out_ptr=zeros:i32[128]'),
    race('read_modify_write', 'counter_ptr', '--grid 6 counter_ptr=zeros:i32[1] --expect counter_ptr=i32:[6]'),
    race('atomic_and_store', 'sum_ptr', '--grid 6 sum_ptr=zeros:i32[1] --expect sum_ptr=i32:[6]'),
    race('overlapping_tiles', 'out_ptr', '--grid 3 out_ptr=zeros:i32[368]'),
    race('in_place_stencil', 'x_ptr', '--grid 3 x_ptr=ones:i32[384]',
         buggy='--expect x_ptr=' + numbers(1 + (i > 0) for i in range(384)),
         fixed='y_ptr=zeros:i32[384] --expect y_ptr=' + numbers(1 + (i > 0) for i in range(384))),
    race('grid_barrier_relaxed', 'data_ptr', '--grid 4 count_ptr=zeros:i32[1] data_ptr=zeros:i32[512] out_ptr=zeros:i32[512] '
         '--expect out_ptr=' + numbers(3 - block + i for block in range(4) for i in TILE)),
    deadlock('grid_barrier_not_resident', ('count_ptr[0]', 'not started'), 'count_ptr=zeros:i32[1] out_ptr=zeros:i32[64]',
             buggy='--sms 2 --grid 4', fixed='--grid SMS --cooperative', zoo='Z14'),
    race('lock_released_relaxed', 'sum_ptr', LOCK),
    race('lock_taken_relaxed', 'sum_ptr', LOCK),
    deadlock('lock_not_given_back', 'lock_ptr[0]', LOCK),
    deadlock('lock_by_exchange', ('lock_ptr[0]', 'has 1'), LOCK),
    deadlock('sum_of_flags', 'flags_ptr[', '--grid 32 --sms 32 flags_ptr=zeros:i32[32] out_ptr=zeros:i32[1]', fixed='--expect out_ptr=i32:[1]'),
    deadlock('signs_of_life', 'done_ptr[', '--grid 2 alive_ptr=zeros:i32[2] done_ptr=zeros:i32[2]'),
    deadlock('two_locks_crossed', 'locks_ptr[', '--grid 6 locks_ptr=zeros:i32[2] sum_ptr=zeros:i32[1] --expect sum_ptr=i32:[6]'),
    race('last_arriver_relaxed', 'partial_ptr', '--grid 4 count_ptr=zeros:i32[1] partial_ptr=zeros:i32[512] '
         'out_ptr=zeros:i32[128] --expect out_ptr=arange(6,4):i32[128]'),
    deadlock('next_block_waited_for', ('done_ptr[', 'not started'), '--grid 20 done_ptr=zeros:i32[20] out_ptr=zeros:i32[20]'),

    deadlock('reset_for_next_launch', 'count_ptr[0]', '--grid 4 count_ptr=zeros:i32[1] data_ptr=zeros:i32[4] out_ptr=zeros:i32[4]',
             fixed='--then {form} --grid 4 --expect out_ptr=i32:[4,3,2,1]'),
    race('half_precision_neighbours', 'x_ptr', '--grid 2 x_ptr=zeros:i16[256] --expect x_ptr=ones:i16[256]'),

    # Addresses.
    bounds('overflow_of_offset', 'counts_ptr', 'x_ptr=arange(0,131072):i32[128] counts_ptr=zeros:i32[256]'),
    bounds('last_chunk', 'x_ptr', '--grid 4 x_ptr=arange:i32[100] out_ptr=zeros:i32[100] n=100'),
    bounds('overrun_into_next_array', 'a_ptr', 'a_ptr=symm:zeros:i32[128] b_ptr=symm:zeros:i32[4096] row=8'),
    bounds('overrun_in_shared_memory', 'shared', 'out_ptr=zeros:i32[128] --expect out_ptr=arange:i32[128]'),
    bounds('tail_of_k', 'a_ptr', 'a_ptr=ones:fp32[16,40] b_ptr=ones:fp32[40,16] c_ptr=zeros:fp32[16,16] depth=40 '
           '--expect c_ptr=full(40):fp32[16,16]', zoo='Z23'),
    bounds('index_from_data', 'x_ptr', 'index_ptr=arange(-1):i32[128] x_ptr=ones:i32[128] out_ptr=zeros:i32[128]'),
    Program('misaligned_vector', 'misaligned', 'x_ptr=arange:i32[520] out_ptr=zeros:i32[128]', words=('x_ptr',)),

    bounds('not_in_symmetric_memory', 'box_ptr', '--ranks 2 flag_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[128]',
           buggy='box_ptr=zeros:i32[128]', fixed='box_ptr=symm:zeros:i32[128]'),
    bounds('wait_for_myself', 'flags_ptr', '--ranks 4 flags_ptr=symm:zeros:i32[3] out_ptr=zeros:i32[1]'),

    # Who signals whom.
    deadlock('set_for_add', ('flag_ptr[0] on rank 0', 'has 1, wants >= 2'), '--ranks 3 flag_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[1]'),
    race('slot_by_receiver', 'box_ptr', '--ranks 8 --num-warps 1 box_ptr=symm:zeros:i32[256] flags_ptr=symm:zeros:i32[8] '
         'out_ptr=zeros:i32[256]'),
    race('flag_of_another_rank', 'box_ptr', '--ranks 4 --num-warps 1 box_ptr=symm:zeros:i32[128] flags_ptr=symm:zeros:i32[4] '
         'out_ptr=zeros:i32[128]'),
    deadlock('nobody_signals', ('signal_ptr[0] on rank 0', 'never written'), RING),
    race('signal_to_myself', 'inbox_ptr', RING + '--expect out_ptr=arange:i32[128]'),
    deadlock('wrong_word', 'words_ptr[', '--ranks 2 words_ptr=symm:zeros:i32[2] out_ptr=zeros:i32[1]'),
    bounds('peer_out_of_range', 'rank 2', '--ranks 2 inbox_ptr=symm:zeros:i32[128] signal_ptr=symm:zeros:i32[1]'),
    deadlock('crossed_waits', ('signal_ptr[0] on rank 0', 'signal_ptr[0] on rank 1'),
             '--ranks 2 signal_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[1]'),
    deadlock('poll_two_words', 'words_ptr[', '--ranks 2 words_ptr=symm:zeros:i32[2] out_ptr=zeros:i32[1]'),
    deadlock('subgroup_then_world', ('pair_ptr[0]', 'world_ptr[0]'),
             '--ranks 4 pair_ptr=symm:zeros:i32[1] world_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[1]', zoo='Z13'),
    deadlock('tile_counts_differ', 'signal_ptr[0] on rank 1', '--ranks 2 data_ptr=symm:zeros:i32[128] '
             'signal_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[128]', buggy='TILE=per-rank:64,32', fixed='TILE=32', zoo='Z16'),
    deadlock('world_of_eight', 'words_ptr[', '--ranks 2 words_ptr=symm:zeros:i32[8] out_ptr=zeros:i32[1] WORLD=8', zoo='Z25'),
    deadlock('exact_wait', ('signal_ptr[0] on rank 0', 'has 2'), '--ranks 3 signal_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[1]'),
    deadlock('all_send_first', 'free_ptr[0] on rank 0', '--ranks 3 slot_ptr=symm:zeros:i32[128] full_ptr=symm:zeros:i32[1] '
             'free_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[256] --expect out_ptr=' +
             numbers(100 * step + i for step in range(2) for i in TILE)),
    race('shared_slot', 'slots_ptr', '--ranks 3 slots_ptr=symm:zeros:i32[384] words_ptr=symm:zeros:i32[3] '
         'out_ptr=zeros:i32[128] --expect out_ptr=per-rank:full(1):i32[128],zeros:i32[128],zeros:i32[128]'),
    race('wait_for_one_of_two', 'slots_ptr', '--ranks 3 slots_ptr=symm:zeros:i32[384] words_ptr=symm:zeros:i32[3] '
         'out_ptr=zeros:i32[128] --expect out_ptr=per-rank:full(3):i32[128],zeros:i32[128],zeros:i32[128]'),
    race('only_rank_0_waits', 'inbox_ptr', RING + '--expect out_ptr=arange(1):i32[128]'),
    race('no_wait', 'inbox_ptr', RING + '--expect out_ptr=arange(1):i32[128]'),
    race('signal_before_data', 'inbox_ptr', RING + '--expect out_ptr=arange(1):i32[128]'),

    # Slots that are used again, calls one after the other.
    race('credit_before_reads', 'slot_ptr', '--ranks 2 slot_ptr=symm:zeros:i32[128] full_ptr=symm:zeros:i32[1] '
         'free_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[512]' + FOUR_STEPS),
    race('no_credits', 'slots_ptr', '--ranks 2 slots_ptr=symm:zeros:i32[256] full_ptr=symm:zeros:i32[1] '
         'free_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[512]' + FOUR_STEPS),
    race('constant_flag', 'slots_ptr', '--ranks 2 slots_ptr=symm:zeros:i32[256] flags_ptr=symm:zeros:i32[2] '
         'out_ptr=zeros:i32[512]' + FOUR_STEPS, zoo='Z6'),
    race('barrier_never_reset', 'data_ptr', '--ranks 3 count_ptr=symm:zeros:i32[1] data_ptr=symm:zeros:i32[256] '
         'out_ptr=zeros:i32[256] --expect out_ptr=per-rank:' +
         ','.join(numbers(10 * step + peer for step in range(2) for i in TILE) for peer in (1, 2, 0)), zoo='Z8'),
    deadlock('add_and_subtract_barrier', 'count_ptr[0]', '--ranks 3 count_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[1]', zoo='Z10'),
    race('no_exit_barrier', 'row_ptr', '--ranks 2 row_ptr=symm:zeros:i32[128] words_ptr=symm:zeros:i32[2] '
         'out_ptr=zeros:i32[256] --expect out_ptr=per-rank:' +
         ','.join(numbers(100 * call + peer for call in (1, 2) for i in TILE) for peer in (1, 0)), zoo='Z11'),
    race('reused_in_next_call', 'inbox_ptr', '--ranks 2 inbox_ptr=symm:zeros:i32[256] flag_ptr=symm:zeros:i32[1] '
         'call_ptr=zeros:i32[1] out_ptr=zeros:i32[128] x=5 --then {form} x=7 --expect out_ptr=full(7):i32[128]'),
    race('counter_of_two_paths', 'inbox_ptr', '--ranks 2 inbox_ptr=symm:zeros:i32[256] count_ptr=symm:zeros:i32[1] '
         'out_ptr=zeros:i32[128] x=5 call=1 arrived=0 SHOTS=2 --then {form} x=7 call=2 arrived=2 SHOTS=1 '
         '--expect out_ptr=full(7):i32[128]', zoo='Z17'),

    race('two_shots_without_barrier', 'x_ptr', '--ranks 4 x_ptr=symm:full({rank}):fp32[512] out_ptr=zeros:fp32[512]'),
    race('rewritten_while_pulled', 'x_ptr', '--ranks 2 x_ptr=symm:full({rank}):fp32[128] flag_ptr=symm:zeros:i32[2]'),

    # Host code: streams, events, graphs, allocation and free.
    program('round_is_an_argument', 'race', 'inbox_ptr', zoo='Z7'),
    program('round_baked_into_graph', 'baked', ("argument 'round'", "graph 'step'"), zoo='Z7'),
    program('flag_taken_down', 'race', 'flag_ptr', zoo='Z9'),
    program('group_on_two_streams', 'race', '_ptr', zoo='Z12'),
    program('two_persistent_grids', 'deadlock', ('ready_ptr[0]', 'never started'), zoo='Z14'),
    program('slots_change_role', 'race', 'workspace_ptr', zoo='Z15'),
    program('allocation_while_a_peer_spins', 'deadlock', ("allocation of device buffer 'extra_ptr'", 'flag_ptr[0]'), zoo='Z18'),
    program('symmetric_allocation_while_a_peer_spins', 'deadlock', ("allocation of symmetric buffer 'extra_ptr'", 'flag_ptr[0]'),
            zoo='Z18', source='allocation_while_a_peer_spins'),
    program('free_on_one_rank', 'one-sided', ("free of symmetric buffer 'inbox_ptr' by rank 0", 'rank 1 never comes to it'), zoo='Z19',
            source='push'),
    program('free_before_synchronize', 'freed', ("'inbox_ptr'", 'kernel push on stream default'), source='push'),
    program('graph_holds_freed_buffer', 'freed', ("graph 'step'", 'inbox_ptr'), source='push'),
    program('ready_beside_kernel', 'race', 'data_ptr', zoo='Z21'),
    program('signal_beside_copy', 'race', 'inbox', zoo='Z21', source='small_kernels'),
    program('pipeline_without_way_back', 'race', 'row', source='small_kernels'),
    program('graph_edge_missing', 'race', 'row', zoo='Z21', source='small_kernels'),
    program('replays_lap_a_reader', 'race', 'inbox_ptr', zoo='Z15', source='small_kernels'),
    program('wait_value_baked_into_graph', 'baked', ('signal_wait', "graph 'step'"), zoo='Z7'),
    program('columns_overlap', 'race', 'all['),
    program('pull_without_way_back', 'race', 'row_ptr', zoo='Z11', source='small_kernels'),
    program('loader_allocates', 'deadlock', ("allocation of device buffer 'batch'", 'flag_ptr[0]'), zoo='Z18', source='small_kernels'),
    program('operator_on_two_streams', 'race', 'ag_gemm', zoo='Z12'),
    program('operator_result_read_early', 'race', 'out['),
    program('put_and_barrier_on_two_streams', 'race', 'inbox_ptr', zoo='Z20', source='small_kernels'),
    program('synchronized_before_signal', 'deadlock', ('flag[0] on rank 0', 'flag[0] on rank 1')),
    program('event_recorded_early', 'race', 'row_ptr'),
    program('staging_buffer_reused', 'race', 'staging'),
    program('copy_without_event', 'race', 'x_ptr', source='small_kernels'),
    program('pull_before_peer_is_done', 'race', 'x_ptr', source='small_kernels'),
    program('results_read_early', 'race', 'x_ptr', source='small_kernels'),
    program('replays_differ', 'deadlock', ('flag_ptr[0] on rank 1', 'kernel receive'), source='small_kernels'),
    program('slot_baked_into_graph', 'baked', ('the destination of a copy', 'ring[{slot}]')),
    program('base_baked_into_graph', 'baked', ("argument 'value'", "which is 10 now"), source='small_kernels'),
    program('device_free_while_peer_copies', 'freed', ("'x'",)),
    program('frees_in_other_order', 'one-sided', ("'a'", "'b'")),
    program('allocation_behind_signal_wait', 'deadlock', ("allocation of device buffer 'scratch'", 'word[0]')),
    program('loader_ahead', 'race', 'staging', source='small_kernels'),
    program('event_of_own_rank', 'race', 'x_ptr', source='small_kernels'),
    program('input_written_during_replay', 'race', 'x_ptr', source='small_kernels'),
    program('branch_not_joined', 'capture', 'stream side', source='small_kernels'),
    program('host_threads_crossed', 'deadlock', ("barrier 'first'", "barrier 'second'")),

    # Puts, gets and signals of OpenSHMEM.
    race('put_without_fence', 'data_ptr', PUT, zoo='Z20'),
    race('put_before_notify', 'data_ptr', PUT),
    race('barrier_without_quiet', 'data_ptr', EXCHANGE),
    race('source_reused', 'source_ptr', EXCHANGE),
    race('put_before_block_barrier', 'source_ptr', EXCHANGE),
    race('get_read_early', 'copy_ptr', '--ranks 2 data_ptr=symm:arange:i32[128] copy_ptr=zeros:i32[128] out_ptr=zeros:i32[128] '
         '--expect out_ptr=arange:i32[128]'),
    race('chunks_out_of_order', 'data_ptr', TWO_PUTS, zoo='Z5'),
    race('earlier_put_not_covered', 'data_ptr', TWO_PUTS),
    race('quiet_behind_signal', 'data_ptr', PUT),
    race('node_quiet_behind_signal', 'data_ptr', NODES + PUT, source='quiet_behind_signal'),
    race('quiet_by_other_thread', 'data_ptr', PUT.replace('signal_ptr', 'flag_ptr')),
    race('fence_by_other_thread', 'data_ptr', PUT),
    race('two_puts_one_slot', 'box_ptr', '--ranks 3 box_ptr=symm:zeros:i32[128] source_ptr=full({rank}):i32[128] '
         'out_ptr=zeros:i32[128] --expect out_ptr=per-rank:full(2):i32[128],zeros:i32[128],zeros:i32[128]'),
    race('puts_without_fence', 'data_ptr', '--ranks 2 data_ptr=symm:zeros:i32[128] source_ptr=arange:i32[256] out_ptr=zeros:i32[128] '
         '--expect out_ptr=arange(128):i32[128]'),
    race('node_puts_without_fence', 'data_ptr', NODES + '--ranks 2 data_ptr=symm:zeros:i32[128] source_ptr=arange:i32[256] '
         'out_ptr=zeros:i32[128] --expect out_ptr=arange(128):i32[128]', source='puts_without_fence'),
    race('put_signals_one_slot', 'box_ptr', '--ranks 3 box_ptr=symm:zeros:i32[256] source_ptr=full({rank}):i32[128] '
         'signal_ptr=symm:zeros:i64[1] out_ptr=zeros:i32[256]'),
    race('words_put_by_two', 'word_ptr', '--ranks 3 word_ptr=symm:zeros:i32[3] out_ptr=zeros:i32[1] '
         '--expect out_ptr=per-rank:i32:[2],i32:[0],i32:[0]'),
    # Between nodes.
    race('node_put_then_flag', 'data_ptr', NODES + PUT.replace('signal_ptr=symm:zeros:i64', 'flag_ptr=symm:zeros:i32')),
    race('put_then_flag', 'data_ptr', PUT.replace('signal_ptr=symm:zeros:i64', 'flag_ptr=symm:zeros:i32'), source='node_put_then_flag'),
    Program('node_store', 'other node', NODES + PUT, words=('data_ptr', 'putmem_signal_block')),
    Program('node_null_pointer', 'other node', NODES + PUT, words=('PE 1 is on node 1',)),
    Program('node_notify_scope', 'other node', NODES + '--ranks 2 signal_ptr=symm:zeros:i64[1] out_ptr=zeros:i32[1]',
            words=('signal_ptr', 'inter_node')),
    race('node_signal_of_another_put', 'data_ptr', NODES + PUT + ' tail_ptr=symm:zeros:i32[4]'),
    race('node_source_reused', 'source_ptr', NODES + PUT),
    race('node_fence_for_another_pe', 'data_ptr', NODES + '--ranks 3 data_ptr=symm:zeros:i32[128] source_ptr=arange(1):i32[128] '
         'signal_ptr=symm:zeros:i64[1] out_ptr=zeros:i32[128] --expect out_ptr=per-rank:zeros:i32[128],zeros:i32[128],arange(1):i32[128]'),
    race('node_kernel_ends_before_put', 'source_ptr', NODES + PUT + ' --then clear'),
    race('fence_for_another_rank', 'box_ptr', '--ranks 3 src_ptr=arange:i32[128] box_ptr=symm:zeros:i32[128] sig_ptr=symm:zeros:i64[1] '
         'out_ptr=zeros:i32[128]'),
    race('signal_for_puts_of_other_warps', 'box_ptr', '--ranks 2 src_ptr=arange:bf16[512] box_ptr=symm:zeros:bf16[512] '
         'sig_ptr=symm:zeros:i64[1] out_ptr=zeros:bf16[512]'),
    race('prefetch_not_waited_for', 'buf_ptr', '--ranks 2 data_ptr=symm:arange:fp16[512] buf_ptr=zeros:fp16[256] '
         'out_ptr=zeros:fp16[512] --expect out_ptr=arange:fp16[512]'),
    bounds('negative_count', 'bytes', '--ranks 8 data_ptr=symm:zeros:i32[128] source_ptr=full({rank}):i32[16] n=100 '
           'out_ptr=zeros:i32[128]', zoo='Z22'),
    Program('elements_for_bytes', 'wrong numbers', EXCHANGE + ' n=128', words=('96 of 128',)),
    deadlock('barrier_by_some_ranks', 'team barriers', '--ranks 3 out_ptr=zeros:i32[1]'),

    # Copies by the hardware of Hopper.
    race('mbarrier_parity', 'shared', HOPPER + 'x_ptr=arange:i32[256] out_ptr=zeros:i32[256] --expect out_ptr=arange:i32[256]'),
    deadlock('mbarrier_bytes', 'mbarrier', HOPPER + 'x_ptr=arange:i32[128] out_ptr=zeros:i32[128]'),
    deadlock('mbarrier_arrivals', 'mbarrier', HOPPER + 'x_ptr=arange:i32[128] out_ptr=zeros:i32[128] '
             '--expect out_ptr=' + numbers(i ^ 32 for i in TILE)),
    race('wait_group_off_by_one', 'shared', HOPPER + 'out_ptr=zeros:i32[256]'),
    race('proxy_fence_missing', 'shared', HOPPER + 'out_ptr=zeros:i32[128] --expect out_ptr=arange(1):i32[128]'),
    race('proxy_fence_of_shared_by_one', 'shared', HOPPER + 'out_ptr=zeros:i32[128] --expect out_ptr=arange(1):i32[128]'),
    race('proxy_fence_beside_copy', 'shared', HOPPER + 'out_ptr=zeros:i32[128] --expect out_ptr=arange(1):i32[128]'),
    race('proxy_fence_of_global_memory', 'box_ptr[0]', FETCH),
    race('proxy_fence_of_shared_memory_only', 'box_ptr[0]', FETCH),
    race('proxy_fence_between_blocks', 'box_ptr[0]', FETCH_ACROSS_BLOCKS),
    race('proxy_fence_before_acquire', 'box_ptr[0]', FETCH_ACROSS_BLOCKS),
    race('proxy_fence_before_store', 'box_ptr[0]', FETCH_ACROSS_BLOCKS),
    race('proxy_fence_between_ranks', 'box_ptr[0] of rank 1', HOPPER + '--ranks 2 box_ptr=symm:zeros:i32[128] flag_ptr=symm:zeros:i32[1] '
         'out_ptr=zeros:i32[128] --expect out_ptr=per-rank:zeros:i32[128],arange(7):i32[128]'),
    race('proxy_fence_before_overwriting', 'out_ptr[0]', HOPPER + 'out_ptr=zeros:i32[128] --expect out_ptr=arange(5):i32[128]'),
    race('bulk_load_not_waited_for', 'shared', HOPPER + 'x_ptr=arange:i32[128] out_ptr=zeros:i32[128] '
         '--expect out_ptr=arange:i32[128]'),

    Program('mbarrier_used_too_early', 'mbarrier', HOPPER + 'x_ptr=arange:i32[128] out_ptr=zeros:i32[128]'),
    Program('stage_refilled_too_early', 'mbarrier', HOPPER + 'x_ptr=arange:i32[1024] out_ptr=zeros:i32[1024] --expect out_ptr=arange:i32[1024]'),
    race('store_waited_for_as_read', 'box_ptr', HOPPER + '--grid 2 box_ptr=zeros:i32[128] flag_ptr=zeros:i32[1] out_ptr=zeros:i32[128]'),
    race('notify_before_descriptor_store', 'box_ptr', HOPPER + '--ranks 2 x_ptr=ones:fp16[64,64] box_ptr=symm:zeros:fp16[64,64] '
         'flag_ptr=symm:zeros:i32[1] out_ptr=zeros:fp16[64,64]'),

    # Numbers.
    Program('average_for_sum', 'wrong numbers', '--ranks 4 x_ptr=symm:full({rank}):fp32[128] out_ptr=zeros:fp32[128] '
            '--expect out_ptr=full(6):fp32[128]', words=('128 of 128',), zoo='Z24'),
    Program('rounded_at_each_hop', 'wrong numbers', '--ranks 4 x_ptr=per-rank:symm:full(256):fp32[128],symm:ones:fp32[128],'
            'symm:ones:fp32[128],symm:full(2):fp32[128] out_ptr=zeros:bf16[128] --expect out_ptr=full(260):bf16[128]',
            words=('128 of 128',), zoo='Z24'),

    # Correct, and never to be reported.
    correct('message_release_acquire', '--ranks 2 --grid 2 data_ptr=symm:zeros:i32[128] flag_ptr=symm:zeros:i32[1] '
            'local_ptr=zeros:i32[128] local_flag_ptr=zeros:i32[1] out_ptr=zeros:i32[128] '
            '--expect out_ptr=per-rank:zeros:i32[128],arange(3,3):i32[128]'),
    correct('message_fences', MESSAGE),
    correct('ticket_lock', '--grid 6 ticket_ptr=zeros:i32[1] serving_ptr=zeros:i32[1] sum_ptr=zeros:i32[1] '
            '--expect sum_ptr=i32:[6]'),
    correct('spin_lock', '--ranks 3 --grid 2 lock_ptr=symm:zeros:i32[1] sum_ptr=symm:zeros:i32[1] '
            '--expect sum_ptr=per-rank:i32:[6],i32:[0],i32:[0]'),
    correct('grid_barrier', '--grid 4 --cooperative count_ptr=zeros:i32[1] data_ptr=zeros:i32[1024] out_ptr=zeros:i32[1536] '
            '--expect out_ptr=' + numbers(100 * step + (block + 1) % 4 for step in range(3) for block in range(4) for i in TILE)),
    correct('all_gather_generations', '--ranks 3 x={rank} generation_ptr=zeros:i32[1] inbox_ptr=symm:zeros:i32[768] '
            'words_ptr=symm:zeros:i32[3] out_ptr=zeros:i32[384] --then {form} --then {form} x=9 '
            '--expect out_ptr=full(9):i32[384]'),
    correct('ring_with_credits', '--ranks 4 slot_ptr=symm:zeros:i32[128] full_ptr=symm:zeros:i32[1] free_ptr=symm:zeros:i32[1] '
            'out_ptr=zeros:i32[384] --expect out_ptr=per-rank:' +
            ','.join(numbers((rank - step - 1) % 4 for step in range(3) for i in TILE) for rank in range(4))),
    correct('producer_consumer', '--grid 2 slots_ptr=zeros:i32[384] filled_ptr=zeros:i32[1] taken_ptr=zeros:i32[1] '
            'out_ptr=zeros:i32[1024] --expect out_ptr=' + numbers(10 * item + i for item in range(8) for i in TILE)),
    correct('split_k', '--grid 4 x_ptr=ones:i32[512] count_ptr=zeros:i32[1] partial_ptr=zeros:i32[512] out_ptr=zeros:i32[128] '
            '--then {form} --grid 4 --expect out_ptr=full(8):i32[128]'),
    correct('double_buffer', '--ranks 2 buffers_ptr=symm:zeros:i32[256] full_ptr=symm:zeros:i32[1] read_ptr=symm:zeros:i32[1] '
            'out_ptr=zeros:i32[768] --expect out_ptr=' + on_rank_1(100 * step + i for step in range(6) for i in TILE)),
    correct('quiets_and_fences', QUIETS),
    correct('quiets_and_fences_between_nodes', NODES + QUIETS, source='quiets_and_fences'),
    correct('flags_by_put', '--ranks 2 box_ptr=symm:zeros:i32[128] source_ptr=arange:i32[384] flag_ptr=symm:zeros:i32[1] '
            'ready_ptr=symm:zeros:i32[1] answer_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[384] '
            '--expect out_ptr=per-rank:zeros:i32[384],arange:i32[384]'),
    correct('put_with_signal', '--ranks 2 data_ptr=symm:zeros:i32[384] source_ptr=zeros:i32[128] signals_ptr=symm:zeros:i64[3] '
            'out_ptr=zeros:i32[384] --expect out_ptr=' + numbers(100 * chunk + i for chunk in range(3) for i in TILE)),
    correct('tree_reduction', '--grid 8 x_ptr=ones:i32[1024] rows_ptr=zeros:i32[1024] flags_ptr=zeros:i32[8] '
            'out_ptr=zeros:i32[128] ROUNDS=3 --expect out_ptr=full(8):i32[128]'),
    correct('low_latency', '--ranks 2 words_ptr=symm:zeros:i64[128] read_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[384] '
            '--expect out_ptr=' + on_rank_1(100 * step + i for step in range(1, 4) for i in TILE)),
    correct('transitive', '--ranks 3 data_ptr=symm:zeros:i32[128] flag_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[128] '
            '--expect out_ptr=per-rank:zeros:i32[128],zeros:i32[128],arange(1):i32[128]'),
    correct('release_sequence', '--ranks 4 rows_ptr=symm:zeros:i32[512] count_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[128] '
            '--expect out_ptr=per-rank:full(6):i32[128],zeros:i32[128],zeros:i32[128],zeros:i32[128]'),
    correct('neighbours_in_a_word', '--ranks 2 --grid 2 bytes_ptr=symm:zeros:i8[512] halves_ptr=symm:zeros:i16[512] '
            'out_ptr=zeros:i32[256] --expect out_ptr=arange:i32[256]'),
    correct('named_barriers', 'x_ptr=arange:i32[192] out_ptr=zeros:i32[192] '
            '--expect out_ptr=' + numbers(64 * step + 63 - i for step in range(3) for i in range(64))),
    correct('shared_fences', HOPPER + '--grid 3 out_ptr=zeros:i32[384] '
            '--expect out_ptr=' + numbers(1000 * way + 2 + i for way in range(3) for i in TILE)),
    correct('proxy_fences', HOPPER + '--grid 6 box_ptr=zeros:i32[384] flag_ptr=zeros:i32[3] out_ptr=zeros:i32[384] '
            '--expect out_ptr=' + numbers(i + block for block in range(3) for i in TILE)),
    correct('bulk_copies', HOPPER + 'x_ptr=arange:i32[384] out_ptr=zeros:i32[384] --expect out_ptr=arange(1):i32[384]'),
    correct('kernels_in_turn', '--ranks 2 --grid 2 row_ptr=zeros:i32[256] inbox_ptr=symm:zeros:i32[128] '
            'signal_ptr=symm:zeros:i32[1] --then {form}_second --grid 2 out_ptr=zeros:i32[256] '
            '--expect out_ptr=' + numbers(10 * block + 128 for block in range(2) for i in TILE)),
    correct('arrive_and_wait', '--grid 4 count_ptr=zeros:i32[1] rows_ptr=zeros:i32[512] out_ptr=zeros:i32[128] '
            '--expect out_ptr=arange(6,4):i32[128]'),
    correct('library_barriers', '--ranks 2 --grid 2 --cooperative grid_word_ptr=zeros:i32[1] flags_ptr=symm:zeros:i32[2] '
            'data_ptr=symm:zeros:i32[256] out_ptr=zeros:i32[512] --expect out_ptr=per-rank:' +
            ','.join(numbers(100 * step + 10 * peer + 1 - block for step in range(2) for block in range(2) for i in TILE)
                     for peer in (1, 0))),
    correct('collectives', '--ranks 3 x_ptr=symm:zeros:i32[128] all_ptr=symm:zeros:i32[384] copy_ptr=zeros:i32[128] '
            'out_ptr=zeros:i32[128] --expect out_ptr=per-rank:' +
            ','.join('arange(%d,4):i32[128]' % (300 + 100 * right) for right in (1, 2, 0))),
    correct('rotating_warps', 'out_ptr=zeros:i32[32] --expect out_ptr=arange(3):i32[32]'),
    correct('racing_atomics', '--ranks 2 --grid 1 sum_ptr=symm:zeros:i32[128] most_ptr=symm:zeros:i32[128] out_ptr=zeros:i32[128] '
            '--expect out_ptr=per-rank:full(2):i32[128],zeros:i32[128]'),
    correct('descriptor_ring', HOPPER + '--ranks 2 x_ptr=ones:fp32[32,32] inbox_ptr=symm:zeros:fp32[32,32] '
            'signal_ptr=symm:zeros:i32[1] out_ptr=zeros:fp32[32,32] --expect out_ptr=full(2):fp32[32,32]'),
    correct('in_place', '--grid 3 x_ptr=ones:i32[384] --expect x_ptr=full(128):i32[384]'),
    correct('copies_of_an_element', '--grid 3 x_ptr=zeros:i32[192] --expect x_ptr=ones:i32[192]'),
    correct('pipelined_product', PRODUCT),
    correct('pipelined_product_hopper', HOPPER + PRODUCT, source='pipelined_product'),
    correct('descriptor_product', PRODUCT),
    correct('descriptor_product_hopper', HOPPER + PRODUCT, source='descriptor_product'),
    correct('scratch_of_the_compiler', 'x_ptr=rand(3):i32[16,32] out_ptr=zeros:i32[16,32]'),
    correct('threads_of_a_region', 'out_ptr=zeros:i32[256] --expect out_ptr=' + numbers([255] + [255 - i for i in range(1, 256)])),
    correct('timeout_by_clock', '--ranks 2 word_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[1] --expect out_ptr=i32:[7]'),
    correct('bounded_spin', 'lock_ptr=zeros:i32[1] out_ptr=zeros:i32[1] --expect out_ptr=i32:[3000]'),
    correct('bounded_poll', '--ranks 2 word_ptr=symm:zeros:i32[1] out_ptr=zeros:i32[1] --expect out_ptr=i32:[0]'),
]
