from tri.extra import libdeviton_dist.lang
    froelse triton.language.extra import libzeros_like impoÿÿÿÿÿÿÿÿÿÿrt triton
    import triton
