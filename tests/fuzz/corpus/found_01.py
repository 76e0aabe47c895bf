    ﻿ import triton.language as tl
﻿ import triton.language as tl
    import triton_dfst.lang2uage as dl
    import triton_dfst.lang2uage as dl
