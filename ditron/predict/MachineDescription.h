//===- MachineDescription.h - What a machine can do, as a readable file ---------------------------------*- C++ -*-===//
//
// A machine is GPUs, the node around them, and the network between nodes, in a JSON file whose keys name their units
// (machines/*.json; how to write one: docs/predict.md). Every key is checked. A file may be based on another one and then holds only
// what differs:
//
//   {"name": "H800 cluster", "based_on": "h800x8", "network": {"most_nodes": 16, ...}}
//
// Files of machines/ are part of the program and are found by name without ".json".
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_MACHINEDESCRIPTION_H
#define DITRON_PREDICT_MACHINEDESCRIPTION_H

#include "ditron/support/DataType.h"

#include <map>
#include <string>
#include <vector>

namespace ditron::predict {

/// One GPU. Rates are those of the data sheet; `...Efficiency` is the share of them that real kernels reach.
struct GpuDescription {
  std::string architecture; ///< "sm_90a": which forms of tiles the operators have for it.
  uint32_t smCount = 0;
  double boostClockMhz = 0;
  double sustainedClockMhz =
      0; ///< What the power limit leaves when every tensor core multiplies random data without a pause.
  std::map<std::string, double>
      mmaFlopsPerClockPerSm;      ///< Dense, by type: "bf16", "fp16", "fp8", "int8", "tf32", "fp32".
  double mmaEfficiency = 0;       ///< Share of the issue rate in the main loop of a large tile.
  double gatherEfficiency = 0;    ///< The same where rows are gathered by pointers, as a share of mmaEfficiency.
  double attentionEfficiency = 0; ///< The same of attention, as a share of mmaEfficiency.
  double tileOverheadUs = 0;      ///< Beginning and end of a tile that its neighbours do not hide.
  double l2Mib = 0;
  double l2BytesPerClockPerSm = 0;
  double hbmGbPerS = 0, hbmEfficiency = 0;
  double kernelLaunchUs = 0;      ///< From the end of one kernel of a stream to the first block of the next.
  double slowdownUnderCopies = 0; ///< Share by which tiles slow down while copies run on this GPU.

  double hbmBytesPerUs() const { return hbmGbPerS * 1e3 * hbmEfficiency; }
  /// 0 when the GPU has no rate for the type.
  double mmaFlopsPerClock(DataType type) const;
};

struct CopyEngineDescription {
  double fixedUs = 0;        ///< Of each copy, on top of its bytes.
  double signalUs = 0;       ///< A copy of one word behind another copy.
  double linkEfficiency = 0; ///< Share of the link that a copy engine reaches.
};

enum class Fabric {
  Switch, ///< Each GPU has one pipe to a switch, shared by all its peers.
  Mesh,   ///< A link for each pair.
  Pcie,   ///< One pipe to the host; NUMA domains are joined by one more pipe in each direction.
};

struct NodeDescription {
  uint32_t gpus = 0;
  Fabric fabric = Fabric::Switch;
  double linkGbPerS = 0;       ///< In each direction: of a GPU, or of each pair in a mesh.
  double smLinkEfficiency = 0; ///< Share of the link that loads and stores of SMs reach.
  uint32_t smsForFullLink = 0; ///< So many SMs reach it; fewer reach their part.
  double signalUs = 0;         ///< A word from one GPU until another sees it.
  uint32_t numaDomains = 1;
  double numaGbPerS = 0; ///< Between two domains, each direction, all GPUs together.
};

/// Absent when the machine is one node.
struct NetworkDescription {
  uint32_t mostNodes = 1;
  uint32_t nicsPerNode = 0;
  double nicGbPerS = 0, nicEfficiency = 0;
  double latencyUs = 0;
};

/// Software that others wrote. The vendor's collectives (NCCL, RCCL): the faster of two protocols, each a latency and a share of the
/// link. Kernels that exchange through symmetric memory (one-shot and two-shot): the latency. PyTorch's mixture of experts.
struct LibrariesDescription {
  double lowLatencyUs = 0, lowLatencyLinkEfficiency = 0;
  double simpleUs = 0, simpleLinkEfficiency = 0;
  double hopUs = 0; ///< Of each step of a ring, with either protocol.
  double symmetricUs = 0;
  double groupedProductPerExpertUs = 0; ///< What a grouped product costs for each expert, besides multiplying.
  double topkSumPasses = 0;             ///< How often summing over a token's experts goes through all their results.
};

struct MachineDescription {
  std::string name;
  GpuDescription gpu;
  CopyEngineDescription copyEngine;
  NodeDescription node;
  NetworkDescription network;
  LibrariesDescription libraries;

  uint32_t mostGpus() const { return node.gpus * network.mostNodes; }
};

/// Names of the machines that are part of the program.
std::vector<std::string> machineNames();
/// A name of machineNames(), or the path of a file (what contains a '/' or ends in ".json").
Expected<MachineDescription> readMachine(const std::string &nameOrFile);
/// The text of one; `file` stands in errors and says where a file that it is based on is searched.
Expected<MachineDescription> parseMachine(std::string_view text, const std::string &file);

} // namespace ditron::predict
#endif // DITRON_PREDICT_MACHINEDESCRIPTION_H
