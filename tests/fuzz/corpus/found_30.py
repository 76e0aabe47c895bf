i@=ort l
i@=ort l
    from tri.extra impoevice
    from tri.extra imice
        from tri.extra import libdeviton_dist.lang
