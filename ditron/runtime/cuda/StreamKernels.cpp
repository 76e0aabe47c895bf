//===- StreamKernels.cpp - The few kernels that the runtime itself needs ------------------------------------------===//
//
// The wait computes difference = seen <=> wanted and leaves the loop when the comparison's bit of the outcome is set: bit 0
// for less, bit 1 for equal, bit 2 for greater. The table of masks is indexed by runtime::Compare: Equal, NotEqual, Greater,
// LessEqual, Less, GreaterEqual = 2, 5, 4, 3, 1, 6, packed four bits each.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/StreamKernels.h"

namespace ditron::cuda {

const char *const streamKernelsPtx = R"(
.version 6.2
.target sm_70
.address_size 64

.visible .entry ditron_signal_add_64(.param .u64 address, .param .u64 value)
{
  .reg .b64 %a, %v;
  ld.param.u64 %a, [address];
  ld.param.u64 %v, [value];
  cvta.to.global.u64 %a, %a;
  fence.acq_rel.sys;
  red.relaxed.sys.global.add.u64 [%a], %v;
  ret;
}

.visible .entry ditron_signal_add_32(.param .u64 address, .param .u64 value)
{
  .reg .b64 %a, %v;
  .reg .b32 %w;
  ld.param.u64 %a, [address];
  ld.param.u64 %v, [value];
  cvt.u32.u64 %w, %v;
  cvta.to.global.u64 %a, %a;
  fence.acq_rel.sys;
  red.relaxed.sys.global.add.u32 [%a], %w;
  ret;
}

.visible .entry ditron_signal_write_64(.param .u64 address, .param .u64 value)
{
  .reg .b64 %a, %v;
  ld.param.u64 %a, [address];
  ld.param.u64 %v, [value];
  cvta.to.global.u64 %a, %a;
  st.release.sys.global.u64 [%a], %v;
  ret;
}

.visible .entry ditron_signal_write_32(.param .u64 address, .param .u64 value)
{
  .reg .b64 %a, %v;
  .reg .b32 %w;
  ld.param.u64 %a, [address];
  ld.param.u64 %v, [value];
  cvt.u32.u64 %w, %v;
  cvta.to.global.u64 %a, %a;
  st.release.sys.global.u32 [%a], %w;
  ret;
}

.visible .entry ditron_signal_wait_64(.param .u64 address, .param .u64 value, .param .u32 compare)
{
  .reg .b64 %a, %v, %s;
  .reg .b32 %mask, %shift, %outcome;
  .reg .pred %p;
  ld.param.u64 %a, [address];
  ld.param.u64 %v, [value];
  ld.param.u32 %shift, [compare];
  cvta.to.global.u64 %a, %a;
  shl.b32 %shift, %shift, 2;
  mov.b32 %mask, 0x613452;
  shr.u32 %mask, %mask, %shift;
poll:
  ld.acquire.sys.global.u64 %s, [%a];
  setp.lt.s64 %p, %s, %v;
  selp.b32 %outcome, 1, 2, %p;
  setp.gt.s64 %p, %s, %v;
  selp.b32 %outcome, 4, %outcome, %p;
  and.b32 %outcome, %outcome, %mask;
  setp.ne.u32 %p, %outcome, 0;
  @%p bra done;
  nanosleep.u32 100;
  bra poll;
done:
  fence.acq_rel.sys;
  ret;
}

.visible .entry ditron_signal_wait_32(.param .u64 address, .param .u64 value, .param .u32 compare)
{
  .reg .b64 %a, %v;
  .reg .b32 %w, %s, %mask, %shift, %outcome;
  .reg .pred %p;
  ld.param.u64 %a, [address];
  ld.param.u64 %v, [value];
  cvt.u32.u64 %w, %v;
  ld.param.u32 %shift, [compare];
  cvta.to.global.u64 %a, %a;
  shl.b32 %shift, %shift, 2;
  mov.b32 %mask, 0x613452;
  shr.u32 %mask, %mask, %shift;
poll:
  ld.acquire.sys.global.u32 %s, [%a];
  setp.lt.s32 %p, %s, %w;
  selp.b32 %outcome, 1, 2, %p;
  setp.gt.s32 %p, %s, %w;
  selp.b32 %outcome, 4, %outcome, %p;
  and.b32 %outcome, %outcome, %mask;
  setp.ne.u32 %p, %outcome, 0;
  @%p bra done;
  nanosleep.u32 100;
  bra poll;
done:
  fence.acq_rel.sys;
  ret;
}

.visible .entry ditron_delay(.param .u64 nanoseconds)
{
  .reg .b64 %limit, %begin, %now;
  .reg .pred %p;
  ld.param.u64 %limit, [nanoseconds];
  mov.u64 %begin, %globaltimer;
again:
  nanosleep.u32 500;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %begin;
  setp.lt.u64 %p, %now, %limit;
  @%p bra again;
  ret;
}
)";

} // namespace ditron::cuda
