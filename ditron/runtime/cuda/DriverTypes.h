//===- DriverTypes.h - The CUDA driver's types, as far as we use them ----------------------------------------*- C++ -*-===//
//
// Our own declarations of what libcuda.so.1 takes and returns, so that nothing of CUDA is needed to build. Names and values
// are those of the driver's documentation (CUDA Driver API reference, "Data types used by CUDA driver"), which are part of
// its binary interface and never change; handles are opaque pointers.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_DRIVERTYPES_H
#define DITRON_RUNTIME_CUDA_DRIVERTYPES_H

#include <cstddef>
#include <cstdint>

namespace ditron::cuda {

using Result = int;
using DeviceOrdinal = int; ///< CUdevice: in practice the ordinal, obtained with cuDeviceGet.
using DevicePointer = unsigned long long;
using AllocationHandle = unsigned long long; ///< CUmemGenericAllocationHandle
using Context = struct ContextRecord *;
using StreamRef = struct StreamRecord *;
/// CU_STREAM_LEGACY: the default stream under a handle of its own, since a null handle also says that an operation is on no stream.
inline StreamRef defaultStream() { return reinterpret_cast<StreamRef>(uintptr_t(1)); }
using EventRef = struct EventRecord *;
using ModuleRef = struct ModuleRecord *;
using FunctionRef = struct FunctionRecord *;
using GraphRef = struct GraphRecord *;
using GraphExecRef = struct GraphExecRecord *;
using GraphNodeRef = struct GraphNodeRecord *;
using HostFunction = void (*)(void *userData);

/// CUresult, those that we tell apart.
enum : Result {
  success = 0,
  errorOutOfMemory = 2,
  errorNoDevice = 100,
  errorNoBinaryForGpu = 209,
  errorInvalidPtx = 218,
  errorUnsupportedPtxVersion = 222,
  errorNotReady = 600,
  errorIllegalAddress = 700,
  errorLaunchOutOfResources = 701,
  errorMisalignedAddress = 716,
  errorIllegalInstruction = 715,
  errorLaunchFailed = 719,
  errorCooperativeLaunchTooLarge = 720,
  errorNotSupported = 801,
};

/// CUdevice_attribute
enum class Attribute : int {
  MaxThreadsPerBlock = 1,
  WarpSize = 10,
  ClockRate = 13,
  MultiprocessorCount = 16,
  ComputeMode = 20,
  L2CacheSize = 38,
  AsyncEngineCount = 40,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedMemoryPerMultiprocessor = 81,
  CooperativeLaunch = 95,
  MaxSharedMemoryPerBlockOptin = 97,
  VirtualMemoryManagementSupported = 102,
  HandleTypePosixFileDescriptorSupported = 103,
  CanUse64BitStreamMemOps = 122,
  HandleTypeFabricSupported = 128,
  MulticastSupported = 132,
};

/// CUdevice_P2PAttribute
enum class PeerAttribute : int { PerformanceRank = 1, AccessSupported = 2, NativeAtomicSupported = 3 };

/// CUfunction_attribute
enum class FunctionAttribute : int {
  LocalBytes = 3,
  Registers = 4,
  MaxDynamicSharedBytes = 8,
  RequiredClusterWidth = 11,
  NonPortableClusterSizeAllowed = 14,
};

/// CUlimit
enum class ContextLimit : int { StackBytes = 0 };

/// CUjit_option
enum class JitOption : int {
  InfoLogBuffer = 3,
  InfoLogBufferBytes = 4,
  ErrorLogBuffer = 5,
  ErrorLogBufferBytes = 6,
  GenerateLineInfo = 13,
};

/// Flags of cuStreamWaitValue: what the word must be to the value. GreaterEqual compares cyclically (signed difference).
enum WaitValue : unsigned { WaitGreaterEqual = 0, WaitEqual = 1 };

enum : unsigned {
  streamNonBlocking = 1,
  eventDefault = 0,
  eventBlockingSync = 1,
  hostAllocPortable = 1,
  hostAllocDeviceMap = 2,
};

/// CUstreamCaptureMode
enum class CaptureMode : int { Global = 0, ThreadLocal = 1, Relaxed = 2 };
/// CUstreamCaptureStatus
enum class CaptureStatus : int { None = 0, Active = 1, Invalidated = 2 };

/// CUmemLocation
struct MemoryLocation {
  int type; ///< 1: device
  int id;
};
constexpr int locationDevice = 1;

/// CUmemAllocationProp
struct AllocationProperties {
  int type;                 ///< 1: pinned
  int requestedHandleTypes; ///< 1: POSIX file descriptor
  MemoryLocation location;
  void *win32Metadata;
  unsigned char compressionType;
  unsigned char gpuDirectRdmaCapable;
  unsigned short usage;
  unsigned char reserved[4];
};
constexpr int allocationPinned = 1, handleNone = 0, handlePosixFileDescriptor = 1;
static_assert(sizeof(AllocationProperties) == 32);

/// CUmemAccessDesc
struct AccessDescription {
  MemoryLocation location;
  int flags; ///< 3: read and write
};
constexpr int accessReadWrite = 3;
static_assert(sizeof(AccessDescription) == 12);

/// CUDA_MEMCPY2D
struct Copy2D {
  size_t sourceX, sourceY;
  int sourceType;
  const void *sourceHost;
  DevicePointer sourceDevice;
  void *sourceArray;
  size_t sourcePitch;
  size_t destinationX, destinationY;
  int destinationType;
  void *destinationHost;
  DevicePointer destinationDevice;
  void *destinationArray;
  size_t destinationPitch;
  size_t widthBytes, height;
};
constexpr int memoryUnified = 4;
static_assert(sizeof(Copy2D) == 128);

/// CUlaunchAttribute
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    int flag;
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};
constexpr int launchAttributeCooperative = 2, launchAttributeClusterDimension = 4,
              launchAttributeProgrammaticSerialization = 6;
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchConfig
struct LaunchConfiguration {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  StreamRef stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};
static_assert(sizeof(LaunchConfiguration) == 56);

/// CUDA_KERNEL_NODE_PARAMS, in its first version, which every driver has.
struct KernelNodeParameters {
  FunctionRef function;
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  void **parameters;
  void **extra;
};
static_assert(sizeof(KernelNodeParameters) == 56);

/// CUtensorMapDataType
enum class TensorElement : int {
  UInt8 = 0,
  UInt16 = 1,
  UInt32 = 2,
  Int32 = 3,
  UInt64 = 4,
  Int64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  BFloat16 = 9,
  TFloat32 = 11, ///< fp32 in memory, rounded by loads.
};
/// CUtensorMapSwizzle
enum class TensorSwizzle : int { None = 0, Bytes32 = 1, Bytes64 = 2, Bytes128 = 3 };
/// CUtensorMapL2promotion: how much a miss brings into the L2 cache.
enum class TensorPromotion : int { None = 0, Bytes64 = 1, Bytes128 = 2, Bytes256 = 3 };
/// CUtensorMapFloatOOBfill
enum class TensorFill : int { Zero = 0, Nan = 1 };

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_DRIVERTYPES_H
