//===- VendorCollectives.h - How long NCCL's and RCCL's collectives take --------------------------------*- C++ -*-===//
//
// The faster of two protocols, each a latency and a share of the slowest link that its rings or pairs go through. All ranks begin
// and end together. Measured on 4 and 8 H200 this is within 15 % from 16 KiB to 64 MiB (docs/predict.md).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_VENDORCOLLECTIVES_H
#define DITRON_PREDICT_VENDORCOLLECTIVES_H

#include "ditron/predict/MachineDescription.h"
#include "ditron/predict/Request.h"
#include "ditron/predict/Simulation.h"

namespace ditron::predict {

/// AllGather, ReduceScatter, AllReduce or AllToAll of so many bytes, as Request counts them.
Time vendorCollectiveUs(const MachineDescription &machine, Operator collective, uint32_t gpus, double bytes);

} // namespace ditron::predict
#endif // DITRON_PREDICT_VENDORCOLLECTIVES_H
