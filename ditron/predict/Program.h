//===- Program.h - An operator's call on all ranks, as it is simulated ----------------------------------*- C++ -*-===//
//
// What one call of an operator enqueues on each simulated rank: the order of copies, signals, gates and tiles that the host code of
// ditron/ops enqueues (it asks the same functions, ops/CallSchedule.h), without the arithmetic.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_PROGRAM_H
#define DITRON_PREDICT_PROGRAM_H

#include "ditron/ops/CallSchedule.h"
#include "ditron/predict/Fleet.h"
#include "ditron/predict/ProductModel.h"
#include "ditron/predict/Request.h"

#include <map>

namespace ditron::predict {

class Program {
public:
  Program(Fleet &fleet, const Request &request);

  /// Enqueues everything.
  void build();
  /// When each simulated rank was done; after Simulation::run.
  const std::vector<Time> &finished() const { return finishTimes; }
  /// How the product is cut, for people; empty without one.
  const std::string &plan() const { return planText; }
  /// Of the largest product of a rank, once built.
  uint64_t tilesPerRank() const { return mostTiles; }

private:
  using Kind = const char *;
  /// Shards that every rank sends to all others.
  struct Gather {
    Kind kind; ///< Of the signals.
    ops::RowShards shards;
    double rowBytes;
    uint32_t chunks;
  };
  /// Partial results that every rank sends to their owners.
  struct Scatter {
    ops::RowShards shards;
    double rowBytes;
    double reducedRowBytes = 0; ///< Read and written for each row before it is sent: the sum over a token's experts.
  };

  class PeerStreams;

  // Words of ranks.
  SignalId signal(uint32_t owner, Kind kind, uint64_t index);
  SignalId signalAt(uint32_t from, uint32_t to, Kind kind, uint32_t indexPerSource = 1, uint32_t index = 0);

  // Beginnings and ends.
  Stream &main(uint32_t rank) { return *mains[rank]; }
  void enter(uint32_t rank, double ownBytes);
  Stream &sideStream(uint32_t rank, const std::string &name, SignalId after);
  void vendorCall(uint32_t rank, Operator collective, double bytes);
  void meetThroughMemory(uint32_t rank);
  /// Over the network; `stream` is the rank's.
  void put(Stream &stream, uint32_t to, double bytes, SignalId arrived);
  void vendorProduct(uint32_t rank, const Product &product, const std::string &name);

  // Communication.
  void gather(uint32_t rank, const Gather &what, SignalId begun, SignalId sent);
  void gatherDirectly(uint32_t rank, const Gather &what, SignalId begun, SignalId sent);
  void gatherInRing(uint32_t rank, const Gather &what, SignalId begun, SignalId sent);
  void gatherOverNodes(uint32_t rank, const Gather &what, SignalId begun, SignalId sent);
  void scatter(uint32_t rank, const Scatter &what, SignalId begun, SignalId sent);
  void scatterInRing(uint32_t rank, const Scatter &what, SignalId begun, SignalId sent);
  void scatterOverNodes(uint32_t rank, const Scatter &what, SignalId begun, SignalId sent);
  void reduceArrived(uint32_t rank, const Scatter &what);
  void exchange(uint32_t rank, double bytesToEach, Mover mover, const std::string &name);

  // Operators.
  void buildOverlappedGather(uint32_t rank, const Gather &what, TileKernel kernel);
  void buildOverlappedScatter(uint32_t rank, const Scatter &what, TileKernel kernel, bool gathersResult);
  TileKernel gatherKernel(uint32_t rank, const Gather &what, const Product &product);
  TileKernel scatterKernel(uint32_t rank, const Scatter &what, const Product &product);
  TileKernel expertGatherKernel(uint32_t rank, const Gather &what, const Product &product);
  TileKernel expertScatterKernel(uint32_t rank, const Scatter &what, const Product &product);
  TileKernel attentionKernel(uint32_t rank, const Gather &what);
  void buildRank(uint32_t rank);
  void buildProduct(uint32_t rank);
  void buildCollective(uint32_t rank);
  void buildExperts(uint32_t rank);
  void buildExpertParallel(uint32_t rank);
  void buildAttention(uint32_t rank);
  Product denseProduct() const;
  Product expertProduct(bool isFirst) const;
  void describe(const ProductTiming &timing);

  Fleet &fleet;
  const Request &request;
  const MachineDescription &machine;
  const double elementBytes;
  std::vector<Stream *> mains;
  std::vector<Time> finishTimes;
  std::vector<uint32_t> exchanges; ///< How many each rank has been given so far.
  std::map<std::tuple<uint32_t, std::string_view, uint64_t>, SignalId> words;
  std::string planText;
  uint64_t mostTiles = 0;
};

} // namespace ditron::predict
#endif // DITRON_PREDICT_PROGRAM_H
