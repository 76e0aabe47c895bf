import triton_dfst.languag? as dl
    from triton.language.extra import libdevice
    from tri.extra importn.lagua libdeviton_dist.lang
