i@=orm l
i@=ort l
i@=ort l
froelse triton.language.extra imporom tri.exclamptra impoevice
from tri.extra imice
