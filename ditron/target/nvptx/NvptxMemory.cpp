//===- NvptxMemory.cpp - NVIDIA leaves: loads, stores, fences, asynchronous copies ----------------------------------------===//
//
// An access moves one to four words: 32 bits each, 64 for 64-bit elements, or one narrow word when less than 32 bits are
// moved. Plain accesses are LLVM's, which it may merge and hoist; those with a predicate or hints are inline PTX, where the
// predicate guards the instruction and no branch is needed.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/target/nvptx/DeviceCode.h"
#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {

namespace {

/// How `count` elements are cut into words.
struct WordPlan {
  WordPlan(Emitter &e, Type element, int count)
      : element(element), elementBits(Emitter::bitWidth(element)), totalBits(elementBits * count),
        wordBits(std::min(totalBits, std::max(elementBits, 32u))), numWords(totalBits / wordBits),
        word(e.getIntegerType(wordBits)), elementsPerWord(wordBits / elementBits) {}

  Type element;
  unsigned elementBits, totalBits, wordBits, numWords;
  Type word;
  unsigned elementsPerWord;

  /// ".v4.b32" and the like.
  std::string suffix() const { return fmt::format("{}.b{}", numWords > 1 ? fmt::format(".v{}", numWords) : "", wordBits); }
  unsigned bytes() const { return totalBits / 8; }

  SmallVector<Value> toWords(Emitter &e, ValueRange elements) const {
    SmallVector<Value> words;
    for (unsigned begin = 0; begin < elements.size(); begin += elementsPerWord)
      words.push_back(elementsPerWord == 1
                          ? e.toBits(elements[begin])
                          : Value(LLVM::BitcastOp::create(e, word, e.packVector(elements.slice(begin, elementsPerWord)))));
    return words;
  }

  SmallVector<Value> toElements(Emitter &e, ValueRange words) const {
    SmallVector<Value> elements;
    for (Value one : words) {
      if (elementsPerWord == 1)
        elements.push_back(e.fromBits(one, element));
      else
        llvm::append_range(elements,
                           e.unpackVector(LLVM::BitcastOp::create(e, VectorType::get({elementsPerWord}, element), one)));
    }
    return elements;
  }
};

} // namespace

/// Registers have at least 16 bits.
static Type registerType(Emitter &e, Type word) { return word.isInteger(8) ? Type(e.getIntegerType(16)) : word; }

/// The qualifiers that follow ld or st, before the vector width: volatile and state space, then cache operator or eviction
/// priority, which exclude one another.
static std::string accessQualifiers(Value address, const MemoryFlags &flags) {
  std::string text = flags.isVolatile ? ".volatile" : "";
  text += ptxSpace(address);
  if (flags.isVolatile || ptxSpace(address) == ".shared")
    return text;
  if (flags.cache != tile::CacheModifier::None)
    return text + "." + tile::stringifyCacheModifier(flags.cache).str();
  if (flags.evict == tile::EvictionPolicy::EvictFirst)
    return text + ".L1::evict_first";
  if (flags.evict == tile::EvictionPolicy::EvictLast)
    return text + ".L1::evict_last";
  return text;
}

static bool hasHints(const MemoryFlags &flags) {
  return flags.isVolatile || flags.cache != tile::CacheModifier::None || flags.evict != tile::EvictionPolicy::Normal;
}

SmallVector<Value> NvptxTargetInfo::loadVector(Emitter &e, Value ptr, Type element, int count, Value predicate,
                                               ValueRange other, AddressSpace space, const MemoryFlags &flags) {
  WordPlan plan(e, element, count);
  Value address = addressIn(e, ptr, space);
  if (!predicate && !hasHints(flags)) {
    Type type = plan.numWords == 1 ? plan.word : VectorType::get({plan.numWords}, plan.word);
    Value loaded = LLVM::LoadOp::create(e, type, address, /*alignment=*/plan.bytes());
    return plan.toElements(e, plan.numWords == 1 ? SmallVector<Value>{loaded} : e.unpackVector(loaded));
  }
  PtxAsm code(e);
  SmallVector<std::string> names;
  for (unsigned i = 0; i < plan.numWords; ++i)
    names.push_back(code.output(registerType(e, plan.word)));
  std::string from = code.input(address), guard = code.guard(predicate);
  if (predicate) { // where the load does not happen the registers keep what they held
    SmallVector<Value> fallback = other.empty() ? SmallVector<Value>() : plan.toWords(e, other);
    for (unsigned i = 0; i < plan.numWords; ++i)
      code.initialize(i, e.zextOrTrunc(fallback.empty() ? e.zero(plan.word) : fallback[i], registerType(e, plan.word)));
  }
  SmallVector<Value> words = code.emit(fmt::format("{}ld{}{} {}, [{}];", guard, accessQualifiers(address, flags),
                                                   plan.suffix(), ptxVector(names), from));
  for (Value &word : words)
    word = e.zextOrTrunc(word, plan.word);
  return plan.toElements(e, words);
}

void NvptxTargetInfo::storeVector(Emitter &e, Value ptr, ValueRange values, Value predicate, AddressSpace space,
                                  const MemoryFlags &flags) {
  WordPlan plan(e, values.front().getType(), static_cast<int>(values.size()));
  Value address = addressIn(e, ptr, space);
  SmallVector<Value> words = plan.toWords(e, values);
  if (!predicate && !hasHints(flags)) {
    LLVM::StoreOp::create(e, words.size() == 1 ? words.front() : e.packVector(words), address,
                          /*alignment=*/plan.bytes());
    return;
  }
  PtxAsm code(e);
  std::string guard = code.guard(predicate), to = code.input(address);
  SmallVector<std::string> names;
  for (Value word : words)
    names.push_back(code.input(e.zextOrTrunc(word, registerType(e, plan.word))));
  code.emit(fmt::format("{}st{}{} [{}], {};", guard, accessQualifiers(address, flags), plan.suffix(), to,
                        ptxVector(names)));
}

Value NvptxTargetInfo::orderedLoad(Emitter &e, Type storage, Value ptr, tile::MemoryOrder order,
                                   tile::MemoryScope scope, bool spin) {
  WordPlan plan(e, storage, 1);
  bool acquires = order == tile::MemoryOrder::Acquire || order == tile::MemoryOrder::AcquireRelease;
  PtxAsm code(e);
  std::string result = code.output(registerType(e, plan.word));
  Value place = addressIn(e, ptr, AddressSpace::Global);
  std::string address = code.input(place);
  Value word = code.emit(fmt::format("ld.{}{}{}{} {}, [{}];", acquires ? "acquire" : "relaxed", ptxScope(scope).str(),
                                     ptxSpace(place).str(), plan.suffix(), result, address))[0];
  if (spin && publishesWaits)
    checkSpin(e, ptr, e.zextOrTrunc(word, plan.word));
  return e.fromBits(e.zextOrTrunc(word, plan.word), storage);
}

void NvptxTargetInfo::orderedStore(Emitter &e, Value ptr, Value value, tile::MemoryOrder order,
                                   tile::MemoryScope scope) {
  WordPlan plan(e, value.getType(), 1);
  bool releases = order == tile::MemoryOrder::Release || order == tile::MemoryOrder::AcquireRelease;
  PtxAsm code(e);
  Value place = addressIn(e, ptr, AddressSpace::Global);
  std::string address = code.input(place);
  std::string word = code.input(e.zextOrTrunc(e.toBits(value), registerType(e, plan.word)));
  code.emit(fmt::format("st.{}{}{}{} [{}], {};", releases ? "release" : "relaxed", ptxScope(scope).str(),
                        ptxSpace(place).str(), plan.suffix(), address, word));
}

SmallVector<Value> NvptxTargetInfo::orderedLoadVector(Emitter &e, Type element, int count, Value ptr, tile::MemoryOrder order,
                                                      tile::MemoryScope scope) {
  WordPlan plan(e, element, count);
  bool acquires = order == tile::MemoryOrder::Acquire || order == tile::MemoryOrder::AcquireRelease;
  PtxAsm code(e);
  SmallVector<std::string> names;
  for (unsigned i = 0; i < plan.numWords; ++i)
    names.push_back(code.output(registerType(e, plan.word)));
  Value place = addressIn(e, ptr, AddressSpace::Global);
  std::string address = code.input(place);
  SmallVector<Value> words = code.emit(fmt::format("ld.{}{}{}{} {}, [{}];", acquires ? "acquire" : "relaxed", ptxScope(scope).str(),
                                                   ptxSpace(place).str(), plan.suffix(), ptxVector(names), address));
  for (Value &word : words)
    word = e.zextOrTrunc(word, plan.word);
  return plan.toElements(e, words);
}

void NvptxTargetInfo::orderedStoreVector(Emitter &e, Value ptr, ValueRange values, tile::MemoryOrder order,
                                         tile::MemoryScope scope) {
  WordPlan plan(e, values.front().getType(), static_cast<int>(values.size()));
  bool releases = order == tile::MemoryOrder::Release || order == tile::MemoryOrder::AcquireRelease;
  PtxAsm code(e);
  Value place = addressIn(e, ptr, AddressSpace::Global);
  std::string address = code.input(place);
  SmallVector<std::string> names;
  for (Value word : plan.toWords(e, values))
    names.push_back(code.input(e.zextOrTrunc(word, registerType(e, plan.word))));
  code.emit(fmt::format("st.{}{}{}{} [{}], {};", releases ? "release" : "relaxed", ptxScope(scope).str(), ptxSpace(place).str(),
                        plan.suffix(), address, ptxVector(names)));
}

/// Multicast memory came with compute capability 9.0.
static bool hasMultimem(const NvptxArchitecture &architecture) { return architecture.capability >= 90; }

bool NvptxTargetInfo::multimemStore(Emitter &e, Value ptr, ValueRange values) {
  if (!hasMultimem(architecture))
    return false;
  PtxAsm code(e);
  std::string address = code.input(inAddressSpace(e, ptr, AddressSpace::Global));
  // Vectors there are of floats only; a store does not mind.
  Type type = values.front().getType();
  Type stored = values.size() == 1 || isa<FloatType>(type) ? type : type.isInteger(64) ? Type(e.getF64Type()) : Type(e.getF32Type());
  if (values.size() == 2 && stored.isF64()) { // of 64 bits there are no vectors
    multimemStore(e, ptr, values[0]);
    return multimemStore(e, e.addBytes(ptr, 8), values[1]);
  }
  SmallVector<std::string> words;
  for (Value value : values)
    words.push_back(code.input(e.bitcast(value, stored)));
  std::string vector = values.size() == 1 ? "" : fmt::format(".v{}", values.size());
  code.emit(fmt::format("multimem.st.relaxed.sys.global{}.{}{} [{}], {};", vector, isa<FloatType>(stored) ? "f" : "b",
                        Emitter::bitWidth(stored), address, ptxVector(words)));
  return true;
}

SmallVector<Value> NvptxTargetInfo::multimemLoadReduce(Emitter &e, Value ptr, dist::MultimemLdReduceOp op) {
  if (!hasMultimem(architecture))
    return {};
  Type type = op.getResultTypes().front();
  dist::MultimemReduction reduction = op.getOp();
  std::string name = dist::stringifyMultimemReduction(reduction).str(), element;
  bool isBitwise = reduction == dist::MultimemReduction::And || reduction == dist::MultimemReduction::Or ||
                   reduction == dist::MultimemReduction::Xor;
  if (op.getPacked()) {
    // What is added is added in f32 and rounded once, as where there is no multicast memory.
    element = op.getPacked()->isF16() ? "f16x2" : "bf16x2";
    if (reduction == dist::MultimemReduction::Add) {
      name += ".acc::f32";
      op->getParentOfType<ModuleOp>()->setAttr(dgpu::sumsHalvesAttrName, e.getUnitAttr());
    }
  } else {
    bool isUnsigned = reduction == dist::MultimemReduction::Add;
    element = fmt::format("{}{}", isa<FloatType>(type) ? "f" : isBitwise ? "b" : isUnsigned ? "u" : "s", Emitter::bitWidth(type));
  }
  PtxAsm code(e);
  SmallVector<std::string> words;
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    words.push_back(code.output(type));
  std::string address = code.input(inAddressSpace(e, ptr, AddressSpace::Global));
  std::string vector = op.getNumResults() == 1 ? "" : fmt::format(".v{}", op.getNumResults());
  return code.emit(fmt::format("multimem.ld_reduce.relaxed.sys.global.{}{}.{} {}, [{}];", name, vector, element, ptxVector(words),
                               address));
}

void NvptxTargetInfo::transfer(Emitter &e, const SymmetricTransfer &transfer) {
  callDevice(e, "ditron_device_copy", {transfer.to, transfer.from, transfer.bytes, transfer.index, transfer.count});
}

void NvptxTargetInfo::fence(Emitter &e, tile::MemoryOrder order, tile::MemoryScope scope) {
  if (order != tile::MemoryOrder::Relaxed)
    PtxAsm(e).emit(fmt::format("fence.acq_rel{};", ptxScope(scope).str()));
}

void NvptxTargetInfo::sequentialFence(Emitter &e, tile::MemoryScope scope) {
  PtxAsm(e).emit(fmt::format("fence.sc{};", ptxScope(scope).str()));
}

void NvptxTargetInfo::asyncCopy(Emitter &e, Value shared, Value global, int bytes, Value predicate, Value /*copies*/) {
  // Whole 16 bytes bypass L1, the data is used once. A smaller source size fills the rest with zeros.
  std::string cache = bytes == 16 ? "cg" : "ca";
  SmallVector<Value> arguments = {inAddressSpace(e, shared, AddressSpace::Shared),
                                  inAddressSpace(e, global, AddressSpace::Global)};
  if (predicate)
    arguments.push_back(e.select(predicate, e.i32(bytes), e.i32(0)));
  // Threads that hold copies of what another one copies do so, too: the same bytes to the same place. With a predicate ptxas makes a branch of it, and in a
  // loop with warpgroup dots in flight it then gives the registers of an operand that the loop does not change to other values (13.0: wrong sums on an
  // H200, no warning).
  std::string name = fmt::format("llvm.nvvm.cp.async.{}.shared.global.{}", cache, bytes);
  if (predicate)
    name += ".s";
  callIntrinsic(e, name, Type(), arguments);
}

void NvptxTargetInfo::asyncCommit(Emitter &e) { callIntrinsic(e, "llvm.nvvm.cp.async.commit.group", Type(), {}); }

void NvptxTargetInfo::asyncWait(Emitter &e, int pending) {
  PtxAsm(e).emit(fmt::format("cp.async.wait_group {};", pending));
}

SmallVector<Value> NvptxTargetInfo::loadMatrices(Emitter &e, ValueRange rows, int count, bool transpose) {
  SmallVector<Value> words;
  for (Value row : rows) {
    PtxAsm code(e);
    SmallVector<std::string> names;
    for (int i = 0; i < count; ++i)
      names.push_back(code.output(e.getI32Type()));
    std::string address = code.input(inAddressSpace(e, row, AddressSpace::Shared));
    words.append(code.emit(fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {{{}}}, [{}];", count,
                                       transpose ? ".trans" : "", fmt::join(names, ", "), address)));
  }
  return words;
}

void NvptxTargetInfo::storeMatrices(Emitter &e, ValueRange rows, int count, bool transpose, ValueRange words) {
  for (auto [i, row] : llvm::enumerate(rows)) {
    PtxAsm code(e);
    std::string address = code.input(inAddressSpace(e, row, AddressSpace::Shared));
    SmallVector<std::string> names;
    for (Value word : words.slice(i * count, count))
      names.push_back(code.input(word));
    code.emit(fmt::format("stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 [{}], {{{}}};", count, transpose ? ".trans" : "",
                          address, fmt::join(names, ", ")));
  }
}

} // namespace ditron::target
