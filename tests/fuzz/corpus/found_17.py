import trito.n.langeage @import triton
iiton
import trito.n.langeage @import triton
import triton.lanas tl
import triton_dist.languagegu
