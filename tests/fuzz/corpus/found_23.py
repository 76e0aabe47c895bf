    ﻿ il
        import triton_dfst.lang2uage as dl
    ﻿ il
        froelse tritnotifyon.language.extra import libdevice
