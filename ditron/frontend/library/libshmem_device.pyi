"""`libshmem_device`: OpenSHMEM, see docs/openshmem.md. A function is carried out by each thread for itself, unless @scope says otherwise."""

# The numbers follow NVSHMEM also where a name is rocSHMEM's, which orders the comparisons otherwise.
NVSHMEM_CMP_EQ: int = 0
NVSHMEM_CMP_NE: int = 1
NVSHMEM_CMP_GT: int = 2
NVSHMEM_CMP_LE: int = 3
NVSHMEM_CMP_LT: int = 4
NVSHMEM_CMP_GE: int = 5
NVSHMEM_SIGNAL_SET: int = 9
NVSHMEM_SIGNAL_ADD: int = 10
NVSHMEM_TEAM_WORLD: int = 0
NVSHMEM_TEAM_SHARED: int = 1
NVSHMEMX_TEAM_NODE: int = 2
NVSHMEMX_TEAM_SAME_MYPE_NODE: int = 3
NVSHMEM_TEAM_NODE: int = 2
NVSHMEM_TEAM_SAME_MYPE_NODE: int = 3
ROCSHMEM_CMP_EQ: int = 0
ROCSHMEM_CMP_NE: int = 1
ROCSHMEM_CMP_GT: int = 2
ROCSHMEM_CMP_LE: int = 3
ROCSHMEM_CMP_LT: int = 4
ROCSHMEM_CMP_GE: int = 5
ROCSHMEM_SIGNAL_SET: int = 9
ROCSHMEM_SIGNAL_ADD: int = 10
ROCSHMEM_TEAM_WORLD: int = 0
ROCSHMEM_TEAM_SHARED: int = 1


# OpenSHMEM: see docs/openshmem.md.

def my_pe() -> tensor:
    """this PE: the rank"""

def n_pes() -> tensor:
    """number of PEs"""

def team_my_pe(team: num) -> tensor:
    """this PE's number in a team: 0 world, 1 shared and 2 node (the PEs of the node), 3 the same place on all nodes"""

def team_n_pes(team: num) -> tensor:
    """number of PEs of a team"""

@handler("shmemTeamTranslate")
def team_translate_pe(src_team: num, pe: num, dst_team: num) -> tensor:
    """a PE's number in another team; -1 if it is not in it"""

@handler("shmemRemotePtr")
def remote_ptr(ptr: ptr, pe: num) -> tensor:
    """address of the same symmetric object on a PE of the node"""

@handler("shmemMulticastPtr")
def remote_mc_ptr(team: num, ptr: ptr) -> tensor:
    """multicast address of a symmetric object for multimem accesses; null where the runtime maps none, as on GPUs so far"""

@handler("shmemGet", nonblocking=False)
def getmem(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies from the symmetric src of a PE to dest; each thread; qp_id has no effect"""

@handler("shmemGet", nonblocking=False)
@scope("block")
def getmem_block(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies from the symmetric src of a PE to dest; the block together; qp_id has no effect"""

@handler("shmemGet", nonblocking=False)
@scope("warp")
def getmem_warp(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies from the symmetric src of a PE to dest; the warp together; qp_id has no effect"""

getmem_wave = getmem_warp
"""getmem_warp by its AMD name"""

getmem_wg = getmem_block
"""getmem_block by its AMD name"""

@handler("shmemGet", nonblocking=True)
def getmem_nbi(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies from the symmetric src of a PE to dest; complete after a quiet; each thread; qp_id has no effect"""

@handler("shmemGet", nonblocking=True)
@scope("block")
def getmem_nbi_block(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies from the symmetric src of a PE to dest; complete after a quiet; the block together; qp_id has no effect"""

@handler("shmemGet", nonblocking=True)
@scope("warp")
def getmem_nbi_warp(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies from the symmetric src of a PE to dest; complete after a quiet; the warp together; qp_id has no effect"""

getmem_nbi_wave = getmem_nbi_warp
"""getmem_nbi_warp by its AMD name"""

getmem_nbi_wg = getmem_nbi_block
"""getmem_nbi_block by its AMD name"""

@handler("shmemPut", nonblocking=False)
def putmem(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies src to the symmetric dest of a PE; each thread; qp_id has no effect"""

@handler("shmemPut", nonblocking=False)
@scope("block")
def putmem_block(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies src to the symmetric dest of a PE; the block together; qp_id has no effect"""

@handler("shmemPut", nonblocking=False)
@scope("warp")
def putmem_warp(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies src to the symmetric dest of a PE; the warp together; qp_id has no effect"""

putmem_wave = putmem_warp
"""putmem_warp by its AMD name"""

putmem_wg = putmem_block
"""putmem_block by its AMD name"""

@handler("shmemPut", nonblocking=True)
def putmem_nbi(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies src to the symmetric dest of a PE; complete after a quiet; each thread; qp_id has no effect"""

@handler("shmemPut", nonblocking=True)
@scope("block")
def putmem_nbi_block(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies src to the symmetric dest of a PE; complete after a quiet; the block together; qp_id has no effect"""

@handler("shmemPut", nonblocking=True)
@scope("warp")
def putmem_nbi_warp(dest: ptr, src: ptr, bytes: num, pe: num, qp_id: num = 0) -> None:
    """copies src to the symmetric dest of a PE; complete after a quiet; the warp together; qp_id has no effect"""

putmem_nbi_wave = putmem_nbi_warp
"""putmem_nbi_warp by its AMD name"""

putmem_nbi_wg = putmem_nbi_block
"""putmem_nbi_block by its AMD name"""

@handler("shmemPutValue")
def int_p(dest: ptr, value: num, pe: num, qp_id: num = 0) -> None:
    """puts one 32 bit integer; each thread"""

putmem_rma = putmem
"""the same as putmem"""

putmem_rma_block = putmem_block
"""the same as putmem_block"""

putmem_rma_warp = putmem_warp
"""the same as putmem_warp"""

putmem_rma_nbi = putmem_nbi
"""the same as putmem_nbi"""

putmem_rma_nbi_block = putmem_nbi_block
"""the same as putmem_nbi_block"""

putmem_rma_nbi_warp = putmem_nbi_warp
"""the same as putmem_nbi_warp"""

@handler("shmemPutSignal", nonblocking=False)
def putmem_signal(dest: ptr, src: ptr, bytes: num, sig_addr: ptr, signal: num, sig_op: int, pe: num,
                  qp_id: num = 0) -> None:
    """a put, and after its bytes have arrived a signal at the same PE; each thread"""

@handler("shmemPutSignal", nonblocking=False)
@scope("block")
def putmem_signal_block(dest: ptr, src: ptr, bytes: num, sig_addr: ptr, signal: num, sig_op: int, pe: num,
                        qp_id: num = 0) -> None:
    """a put, and after its bytes have arrived a signal at the same PE; the block together"""

@handler("shmemPutSignal", nonblocking=False)
@scope("warp")
def putmem_signal_warp(dest: ptr, src: ptr, bytes: num, sig_addr: ptr, signal: num, sig_op: int, pe: num,
                       qp_id: num = 0) -> None:
    """a put, and after its bytes have arrived a signal at the same PE; the warp together"""

putmem_signal_wave = putmem_signal_warp
"""putmem_signal_warp by its AMD name"""

putmem_signal_wg = putmem_signal_block
"""putmem_signal_block by its AMD name"""

@handler("shmemPutSignal", nonblocking=True)
def putmem_signal_nbi(dest: ptr, src: ptr, bytes: num, sig_addr: ptr, signal: num, sig_op: int, pe: num,
                      qp_id: num = 0) -> None:
    """a put, and after its bytes have arrived a signal at the same PE; src is free after a quiet; each thread"""

@handler("shmemPutSignal", nonblocking=True)
@scope("block")
def putmem_signal_nbi_block(dest: ptr, src: ptr, bytes: num, sig_addr: ptr, signal: num, sig_op: int, pe: num,
                            qp_id: num = 0) -> None:
    """a put, and after its bytes have arrived a signal at the same PE; src is free after a quiet; the block together"""

@handler("shmemPutSignal", nonblocking=True)
@scope("warp")
def putmem_signal_nbi_warp(dest: ptr, src: ptr, bytes: num, sig_addr: ptr, signal: num, sig_op: int, pe: num,
                           qp_id: num = 0) -> None:
    """a put, and after its bytes have arrived a signal at the same PE; src is free after a quiet; the warp together"""

putmem_signal_nbi_wave = putmem_signal_nbi_warp
"""putmem_signal_nbi_warp by its AMD name"""

putmem_signal_nbi_wg = putmem_signal_nbi_block
"""putmem_signal_nbi_block by its AMD name"""

putmem_signal_rma = putmem_signal
"""the same as putmem_signal"""

putmem_signal_rma_block = putmem_signal_block
"""the same as putmem_signal_block"""

putmem_signal_rma_warp = putmem_signal_warp
"""the same as putmem_signal_warp"""

putmem_signal_rma_nbi = putmem_signal_nbi
"""the same as putmem_signal_nbi"""

putmem_signal_rma_nbi_block = putmem_signal_nbi_block
"""the same as putmem_signal_nbi_block"""

putmem_signal_rma_nbi_warp = putmem_signal_nbi_warp
"""the same as putmem_signal_nbi_warp"""

def ulong_put_signal(dest: ptr, src: ptr, nelems: num, sig_addr: ptr, signal: num, sig_op: int, pe: num) -> None:
    """putmem_signal of nelems words of 64 bits"""

@handler("shmemSignalOp")
def signal_op(sig_addr: ptr, signal: num, sig_op: int, pe: num) -> None:
    """sets or adds to a signal word of a PE; orders nothing; each thread"""

@handler("shmemWaitUntil")
def signal_wait_until(sig_addr: ptr, cmp: int, val: num) -> tensor:
    """each thread waits until a signal word of this PE compares true (NVSHMEM_CMP_*); gives the word"""

def uint64_wait_until_equals(addr: ptr, val: num) -> None:
    """each thread waits until a word of this PE has a value"""

@handler("shmemOrder", kind=dist.OrderKind.Fence)
def fence() -> None:
    """puts and signals of this PE to each PE: earlier ones before later ones"""

@handler("shmemOrder", kind=dist.OrderKind.Quiet)
def quiet() -> None:
    """all puts and gets of this PE are complete"""

def quiet_pe(pe: num = 0) -> None:
    """the same as quiet, which is for all PEs"""

@handler("shmemBarrierAll", isSync=False)
def barrier_all() -> None:
    """quiet, then all PEs meet; each thread: call it in one thread"""

@handler("shmemBarrierAll", isSync=False)
@scope("block")
def barrier_all_block() -> None:
    """quiet, then all PEs meet; the block together"""

@handler("shmemBarrierAll", isSync=False)
@scope("warp")
def barrier_all_warp() -> None:
    """quiet, then all PEs meet; the warp together"""

@handler("shmemBarrierAll", isSync=False)
@scope("warp")
def barrier_all_wave() -> None:
    """quiet, then all PEs meet; the warp together (AMD name of _warp)"""

@handler("shmemBarrierAll", isSync=False)
@scope("block")
def barrier_all_wg() -> None:
    """quiet, then all PEs meet; the block together (AMD name of _block)"""

@handler("shmemBarrierAll", isSync=False)
@scope("block")
def barrier_all_vec() -> None:
    """quiet, then all PEs meet; the block together (AMD name)"""

@handler("shmemBarrier", isSync=False)
def barrier(team: num) -> None:
    """quiet, then the PEs of a team meet; each thread"""

@handler("shmemBarrier", isSync=False)
@scope("block")
def barrier_block(team: num) -> None:
    """quiet, then the PEs of a team meet; the block together"""

@handler("shmemBarrier", isSync=False)
@scope("warp")
def barrier_warp(team: num) -> None:
    """quiet, then the PEs of a team meet; the warp together"""

@handler("shmemBarrierAll", isSync=True)
def sync_all() -> None:
    """all PEs meet, puts may still be under way; each thread"""

@handler("shmemBarrierAll", isSync=True)
@scope("block")
def sync_all_block() -> None:
    """all PEs meet, puts may still be under way; the block together"""

@handler("shmemBarrierAll", isSync=True)
@scope("warp")
def sync_all_warp() -> None:
    """all PEs meet, puts may still be under way; the warp together"""

@handler("shmemBarrierAll", isSync=True)
@scope("warp")
def sync_all_wave() -> None:
    """all PEs meet, puts may still be under way; the warp together (AMD name of _warp)"""

@handler("shmemBarrierAll", isSync=True)
@scope("block")
def sync_all_wg() -> None:
    """all PEs meet, puts may still be under way; the block together (AMD name of _block)"""

@handler("shmemBarrier", isSync=True)
@scope("block")
def team_sync_block(team: num) -> None:
    """the PEs of a team meet, puts may still be under way; the block together"""

@handler("shmemBarrier", isSync=True)
@scope("warp")
def team_sync_warp(team: num) -> None:
    """the PEs of a team meet, puts may still be under way; the warp together"""

@handler("shmemBroadcast", inBytes=False)
def broadcast(team: num, dest: ptr, src: ptr, nelems: num, root: num) -> None:
    """the root sends nelems elements to dest of all PEs of the team, and all meet; each thread"""

@handler("shmemCollect", inBytes=False)
def fcollect(team: num, dest: ptr, src: ptr, nelems: num) -> None:
    """nelems elements of every PE of the team one behind the other in dest of all, and all meet; each thread"""

@handler("shmemBroadcast", inBytes=False)
@scope("warp")
def broadcast_warp(team: num, dest: ptr, src: ptr, nelems: num, root: num) -> None:
    """the root sends nelems elements to dest of all PEs of the team, and all meet; the warp together"""

@handler("shmemCollect", inBytes=False)
@scope("warp")
def fcollect_warp(team: num, dest: ptr, src: ptr, nelems: num) -> None:
    """nelems elements of every PE of the team one behind the other in dest of all, and all meet; the warp together"""

@handler("shmemBroadcast", inBytes=False)
@scope("block")
def broadcast_block(team: num, dest: ptr, src: ptr, nelems: num, root: num) -> None:
    """the root sends nelems elements to dest of all PEs of the team, and all meet; the block together"""

@handler("shmemCollect", inBytes=False)
@scope("block")
def fcollect_block(team: num, dest: ptr, src: ptr, nelems: num) -> None:
    """nelems elements of every PE of the team one behind the other in dest of all, and all meet; the block together"""

@handler("shmemBroadcast", inBytes=True)
def broadcastmem(team: num, dest: ptr, src: ptr, nelems: num, root: num) -> None:
    """the root sends nelems bytes to dest of all PEs of the team, and all meet; each thread"""

@handler("shmemCollect", inBytes=True)
def fcollectmem(team: num, dest: ptr, src: ptr, nelems: num) -> None:
    """nelems bytes of every PE of the team one behind the other in dest of all, and all meet; each thread"""

@handler("shmemBroadcast", inBytes=True)
@scope("warp")
def broadcastmem_warp(team: num, dest: ptr, src: ptr, nelems: num, root: num) -> None:
    """the root sends nelems bytes to dest of all PEs of the team, and all meet; the warp together"""

@handler("shmemCollect", inBytes=True)
@scope("warp")
def fcollectmem_warp(team: num, dest: ptr, src: ptr, nelems: num) -> None:
    """nelems bytes of every PE of the team one behind the other in dest of all, and all meet; the warp together"""

@handler("shmemBroadcast", inBytes=True)
@scope("block")
def broadcastmem_block(team: num, dest: ptr, src: ptr, nelems: num, root: num) -> None:
    """the root sends nelems bytes to dest of all PEs of the team, and all meet; the block together"""

@handler("shmemCollect", inBytes=True)
@scope("block")
def fcollectmem_block(team: num, dest: ptr, src: ptr, nelems: num) -> None:
    """nelems bytes of every PE of the team one behind the other in dest of all, and all meet; the block together"""

@refused("contexts of rocSHMEM do not exist here: leave the call out, every function uses the default context")
def set_rocshmem_ctx(*args): ...
