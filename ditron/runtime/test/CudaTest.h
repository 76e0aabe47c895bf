//===- CudaTest.h - A machine of four GPUs that are not there ------------------------------------------------*- C++ -*-===//
//
// For tests whose run path has fake_cuda's libcuda.so.1 in it: four GPUs, two of which cannot reach each other.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_TEST_CUDATEST_H
#define DITRON_RUNTIME_TEST_CUDATEST_H

#include "fake_cuda/FakeCuda.h"

#include "ditron/runtime/PreparedLaunch.h"
#include "ditron/runtime/World.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

namespace ditron::runtime {

/// Before anything opens the driver.
inline const int machineChosen = setenv("FAKE_CUDA", "gpus=4;no_p2p=0-3;memory_mib=1024", 1);

template <typename Function> Function *hook(const char *name) {
  static void *library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function *>(dlsym(library, name));
}
inline std::string takeLog() { return hook<decltype(fakeCudaTakeLog)>("fakeCudaTakeLog")(); }
inline std::string takeCalls() { return hook<decltype(fakeCudaTakeCalls)>("fakeCudaTakeCalls")(); }
inline void setLoadsWait(int wait) { hook<decltype(fakeCudaLoadsWait)>("fakeCudaLoadsWait")(wait); }
inline bool takeWaited() { return hook<decltype(fakeCudaTakeWaited)>("fakeCudaTakeWaited")() != 0; }
inline uint64_t livePhysicalBytes() { return hook<decltype(fakeCudaLivePhysicalBytes)>("fakeCudaLivePhysicalBytes")(); }

inline testing::AssertionResult ok(const Status &status) {
  return status.isOk() ? testing::AssertionSuccess()
                       : testing::AssertionFailure() << toString(status.code()) << ": " << status.message();
}

inline const char *const testPtx = R"(
.version 8.0
.target sm_90a
.file 1 "store.py"
.visible .entry store(.param .u64 p0, .param .u64 p1, .param .u64 view)
{ ret; }
.visible .entry meet(.param .u64 theirs, .param .u64 own, .param .u64 view)
{ ret; }
.visible .entry spill(.param .u64 p0, .param .u64 view)
{ ret; }
.visible .entry grid(.param .u64 out, .param .u32 x, .param .u32 y, .param .u32 z, .param .u64 view)
{ ret; }
.visible .entry pairs(.param .u64 p0, .param .u64 view)
{ ret; }
.visible .entry sum(.param .u64 x, .param .u64 y, .param .u64 out, .param .u32 n, .param .u64 view)
{ ret; }
)";

/// A module of a kernel that reads what others write, with so many parameters before the world view.
inline std::string waitingPtx(const std::string &name, unsigned parameters) {
  std::string list;
  for (unsigned i = 0; i < parameters; ++i)
    list += ".param .u64 p" + std::to_string(i) + ", ";
  return ".version 8.0\n.target sm_90a\n.visible .entry " + name + "(" + list +
         ".param .u64 view)\n{ ld.acquire.sys.global.u64 %rd1, [%rd2]; ret; }\n";
}

inline Kernel makeKernel(const std::string &name, std::vector<ArtifactParameter> parameters, uint64_t sharedBytes = 0,
                         std::string ptx = testPtx) {
  Artifact artifact;
  artifact.kernel = artifact.entrySymbol = name;
  artifact.target = "cuda:sm_90a";
  artifact.sourceFile = name + ".py";
  artifact.codeKind = ArtifactCode::Ptx;
  artifact.code = std::move(ptx);
  artifact.parameters = std::move(parameters);
  artifact.sharedBytes = sharedBytes;
  Expected<Kernel> kernel = Kernel::create(std::move(artifact), {});
  EXPECT_TRUE(ok(kernel.status()));
  return *kernel;
}

inline Kernel storeKernel(uint64_t sharedBytes = 0) {
  return makeKernel("store", {{"p0", "*i64", 8, 1}, {"p1", "i64", 8, 1}}, sharedBytes);
}

inline std::unique_ptr<World> makeWorld(uint32_t ranks, const WorldOptions &options = {}) {
  Expected<std::unique_ptr<World>> world = World::local(ranks, "cuda", options);
  EXPECT_TRUE(ok(world.status()));
  (void)takeLog();
  return std::move(world).value();
}

inline int64_t word(const SymmetricBuffer &buffer, uint32_t rank) {
  int64_t value = -1;
  EXPECT_TRUE(ok(buffer.download(rank, &value, sizeof(value))));
  return value;
}

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_TEST_CUDATEST_H
