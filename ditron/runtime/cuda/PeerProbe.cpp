//===- PeerProbe.cpp - Do two GPUs really reach each other? -------------------------------------------------------===//
//
// Two devices of a small world without the rest of it. The kernels are PTX of one block.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/PeerProbe.h"

#include "ditron/runtime/Stream.h"
#include "ditron/runtime/cuda/CudaDevice.h"

#include <fmt/format.h>

namespace ditron::cuda {

namespace {

using runtime::Argument;
using runtime::Pointer;

constexpr uint32_t words = 1 << 16;
constexpr uint64_t seed = 0x5eed000000000000;
constexpr double limitSeconds = 10;
constexpr uint64_t bandwidthBytes = uint64_t(256) << 20;

/// probe_check counts the right words into `result`, so that a kernel that did nothing does not look like success. It waits for
/// the signal for at most five seconds.
const char *const probePtx = R"(
.version 6.2
.target sm_70
.address_size 64

.visible .entry probe_write(.param .u64 data, .param .u32 words, .param .u64 seed, .param .u64 signal, .param .u64 view)
{
  .reg .b64 %data, %signal, %address, %value, %seed, %one;
  .reg .b32 %i, %n;
  .reg .pred %p;
  ld.param.u64 %data, [data];
  ld.param.u32 %n, [words];
  ld.param.u64 %seed, [seed];
  ld.param.u64 %signal, [signal];
  mov.u32 %i, %tid.x;
loop:
  setp.ge.u32 %p, %i, %n;
  @%p bra written;
  mul.wide.u32 %address, %i, 8;
  add.u64 %address, %address, %data;
  cvt.u64.u32 %value, %i;
  add.u64 %value, %value, %seed;
  st.global.u64 [%address], %value;
  add.u32 %i, %i, 128;
  bra loop;
written:
  fence.acq_rel.sys;
  bar.sync 0;
  mov.u32 %i, %tid.x;
  setp.ne.u32 %p, %i, 0;
  @%p bra end;
  mov.u64 %one, 1;
  fence.acq_rel.sys;
  red.relaxed.sys.global.add.u64 [%signal], %one;
end:
  ret;
}

.visible .entry probe_check(.param .u64 data, .param .u32 words, .param .u64 seed, .param .u64 signal, .param .u64 result,
                            .param .u64 view)
{
  .reg .b64 %data, %signal, %address, %value, %seen, %seed, %result, %begin, %now, %count, %limit;
  .reg .b32 %i, %n;
  .reg .pred %p;
  ld.param.u64 %data, [data];
  ld.param.u32 %n, [words];
  ld.param.u64 %seed, [seed];
  ld.param.u64 %signal, [signal];
  ld.param.u64 %result, [result];
  mov.u64 %limit, 5000000000;
  mov.u64 %begin, %globaltimer;
poll:
  ld.acquire.sys.global.u64 %seen, [%signal];
  setp.ne.u64 %p, %seen, 0;
  @%p bra arrived;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %begin;
  setp.gt.u64 %p, %now, %limit;
  @%p bra end;
  nanosleep.u32 200;
  bra poll;
arrived:
  fence.acq_rel.sys;
  mov.u64 %count, 0;
  mov.u32 %i, %tid.x;
loop:
  setp.ge.u32 %p, %i, %n;
  @%p bra counted;
  mul.wide.u32 %address, %i, 8;
  add.u64 %address, %address, %data;
  cvt.u64.u32 %value, %i;
  add.u64 %value, %value, %seed;
  ld.relaxed.sys.global.u64 %seen, [%address];
  setp.eq.u64 %p, %seen, %value;
  selp.u64 %now, 1, 0, %p;
  add.u64 %count, %count, %now;
  add.u32 %i, %i, 128;
  bra loop;
counted:
  red.relaxed.sys.global.add.u64 [%result], %count;
end:
  ret;
}
)";

Expected<runtime::Kernel> probeKernel(const char *name, std::vector<ArtifactParameter> parameters) {
  Artifact artifact;
  artifact.kernel = artifact.entrySymbol = name;
  artifact.target = "cuda:sm_80";
  artifact.sourceFile = "peer probe";
  artifact.codeKind = ArtifactCode::Ptx;
  artifact.code = probePtx;
  artifact.parameters = std::move(parameters);
  return runtime::Kernel::create(std::move(artifact), {});
}

} // namespace

Expected<PeerProbeResult> probePeers(std::shared_ptr<const CudaDriver> driver, DeviceOrdinal from, DeviceOrdinal to) {
  auto system = std::make_shared<CudaSystem>(driver, limitSeconds);
  auto open = [&](uint32_t rank, DeviceOrdinal ordinal) {
    CudaDeviceOptions options;
    options.rank = rank;
    options.ordinal = ordinal;
    options.accessors = {from, to};
    return CudaDevice::create(system, options);
  };
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<CudaDevice> source, open(0, from));
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<CudaDevice> target, open(1, to));
  DITRON_ASSIGN_OR_RETURN(runtime::Stream sourceStream, runtime::Stream::create(source, source->rank(), nullptr, "probe"));
  DITRON_ASSIGN_OR_RETURN(runtime::Stream targetStream, runtime::Stream::create(target, target->rank(), nullptr, "probe"));
  // The target's memory: pattern, then one signal and one result for each step.
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer pattern, runtime::Buffer::allocate(target, DataType::I64, words, "pattern"));
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer signals, runtime::Buffer::allocate(target, DataType::I64, 8, "signals"));
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer results, runtime::Buffer::allocate(target, DataType::I64, 8, "results"));
  DITRON_ASSIGN_OR_RETURN(
      const runtime::Kernel write,
      probeKernel("probe_write",
                  {{"data", "*i64", 8}, {"words", "i32", 4}, {"seed", "i64", 8}, {"signal", "*i64", 8}}));
  DITRON_ASSIGN_OR_RETURN(const runtime::Kernel check, probeKernel("probe_check", {{"data", "*i64", 8},
                                                                                   {"words", "i32", 4},
                                                                                   {"seed", "i64", 8},
                                                                                   {"signal", "*i64", 8},
                                                                                   {"result", "*i64", 8}}));
  DITRON_RETURN_IF_ERROR(source->load(write));
  DITRON_RETURN_IF_ERROR(source->load(check));
  DITRON_RETURN_IF_ERROR(target->load(check));

  auto verify = [&](uint32_t step, std::string_view what) -> Status {
    int64_t right = 0, raised = 0;
    DITRON_RETURN_IF_ERROR(results.download(&right, sizeof(right), step * sizeof(int64_t)));
    DITRON_RETURN_IF_ERROR(signals.download(&raised, sizeof(raised), step * sizeof(int64_t)));
    if (right == words)
      return Status::ok();
    if (raised == 0)
      return internalError(fmt::format("{}: the signal did not arrive", what));
    return internalError(
        fmt::format("{}: {} of {} words are wrong although the signal had arrived", what, words - right, words));
  };
  // 1. Stores of one GPU with a signal behind them, checked by the other, which waits already.
  DITRON_RETURN_IF_ERROR(targetStream.launch(check, {}, {pattern, words, seed, signals, results}));
  DITRON_RETURN_IF_ERROR(sourceStream.launch(write, {}, {pattern, words, seed, signals}));
  DITRON_RETURN_IF_ERROR(sourceStream.synchronize());
  DITRON_RETURN_IF_ERROR(targetStream.synchronize());
  DITRON_RETURN_IF_ERROR(verify(0, "stores and a signal"));
  // 2. Loads of the first through the link; the count goes back by a remote atomic.
  DITRON_RETURN_IF_ERROR(sourceStream.launch(check, {}, {pattern, words, seed, signals, results.pointer() + 1}));
  DITRON_RETURN_IF_ERROR(sourceStream.synchronize());
  int64_t readBack = 0;
  DITRON_RETURN_IF_ERROR(results.download(&readBack, sizeof(readBack), sizeof(int64_t)));
  if (readBack != words)
    return internalError(fmt::format("loads and a remote atomic: {} of {} words were right", readBack, words));
  // 3. The copy engine, with a signal of the stream behind it.
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer own, runtime::Buffer::allocate(source, DataType::I64, words, "own pattern"));
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer ownSignal, runtime::Buffer::allocate(source, DataType::I64, 1, "own signal"));
  DITRON_RETURN_IF_ERROR(sourceStream.launch(write, {}, {own, words, seed + 1, ownSignal}));
  DITRON_RETURN_IF_ERROR(sourceStream.fill(pattern, 0, words));
  DITRON_RETURN_IF_ERROR(sourceStream.synchronize());
  DITRON_RETURN_IF_ERROR(
      targetStream.launch(check, {}, {pattern, words, seed + 1, signals.pointer() + 2, results.pointer() + 2}));
  DITRON_RETURN_IF_ERROR(sourceStream.copy(pattern, own, words));
  DITRON_RETURN_IF_ERROR(sourceStream.signalWrite(signals.pointer() + 2, 1));
  DITRON_RETURN_IF_ERROR(sourceStream.synchronize());
  DITRON_RETURN_IF_ERROR(targetStream.synchronize());
  DITRON_RETURN_IF_ERROR(verify(2, "a copy and a signal of the stream"));
  // 4. How fast.
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer here,
                          runtime::Buffer::allocate(source, DataType::U8, bandwidthBytes, "here"));
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer there,
                          runtime::Buffer::allocate(target, DataType::U8, bandwidthBytes, "there"));
  DITRON_ASSIGN_OR_RETURN(const runtime::EventHandle begin, source->createEvent("begin"));
  DITRON_ASSIGN_OR_RETURN(const runtime::EventHandle end, source->createEvent("end"));
  const runtime::Event first(source, begin), last(source, end);
  PeerProbeResult result;
  for (int round = 0; round < 3; ++round) {
    DITRON_RETURN_IF_ERROR(sourceStream.record(first));
    DITRON_RETURN_IF_ERROR(sourceStream.copy(there, here, bandwidthBytes));
    DITRON_RETURN_IF_ERROR(sourceStream.record(last));
    DITRON_RETURN_IF_ERROR(sourceStream.synchronize());
    DITRON_ASSIGN_OR_RETURN(const int64_t picoseconds, last.elapsedSince(first));
    if (picoseconds > 0)
      result.copyGigabytesPerSecond = std::max(
          result.copyGigabytesPerSecond, static_cast<double>(bandwidthBytes) * 1e3 / static_cast<double>(picoseconds));
  }
  return result;
}

} // namespace ditron::cuda
