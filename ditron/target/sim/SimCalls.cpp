//===- SimCalls.cpp - Calls of the simulator's C interface ----------------------------------------------------------------===//
//
// See SimCalls.h. Types are those of the prototypes in abi/Simulator.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/SimCalls.h"

#include "ditron/abi/Simulator.h"
#include "ditron/target/sim/Origins.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {

static constexpr llvm::StringLiteral prefix = "ditron_sim_";
static constexpr llvm::StringLiteral zerosName = "ditron_kernel_zeros";
static constexpr llvm::StringLiteral sinkName = "ditron_kernel_sink";

namespace {

/// The LLVM type of a C type of the interface: addresses and words of 32 or 64 bits.
template <typename T> Type llvmType(MLIRContext *context) {
  if constexpr (std::is_pointer_v<T>)
    return LLVM::LLVMPointerType::get(context);
  else if constexpr (std::is_void_v<T>)
    return LLVM::LLVMVoidType::get(context);
  else {
    static_assert(std::is_integral_v<T> && sizeof(T) >= 4, "no narrower words: who extends them differs between ABIs");
    return IntegerType::get(context, sizeof(T) * 8);
  }
}

template <typename Result, typename... Parameters>
LLVM::LLVMFunctionType llvmTypeOf(Result (*)(Parameters...), MLIRContext *context) {
  return LLVM::LLVMFunctionType::get(llvmType<Result>(context), {llvmType<Parameters>(context)...});
}

struct SimFunction {
  llvm::StringLiteral name;
  LLVM::LLVMFunctionType (*type)(MLIRContext *);
};
constexpr SimFunction simFunctions[] = {
#define DITRON_SIM_FUNCTION(name)                                                                                      \
  {#name, [](MLIRContext *context) { return llvmTypeOf(static_cast<decltype(&ditron_sim_##name)>(nullptr), context); }},
#include "ditron/abi/Simulator.def"
};

} // namespace

SourcePlace sourcePlaceOf(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return {file.getFilename().str(), file.getLine(), file.getColumn()};
  if (auto named = dyn_cast<NameLoc>(location))
    return sourcePlaceOf(named.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return sourcePlaceOf(call.getCallee());
  if (auto opaque = dyn_cast<OpaqueLoc>(location))
    return sourcePlaceOf(opaque.getFallbackLocation());
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (SourcePlace place = sourcePlaceOf(part); place.line != 0)
        return place;
  return {"<unknown>", 0, 0};
}

void SimCalls::declare(ModuleOp target) {
  module = target;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  MLIRContext *context = module.getContext();
  for (const SimFunction &each : simFunctions) {
    const LLVM::LLVMFunctionType type = each.type(context);
    auto function = LLVM::LLVMFuncOp::create(builder, module.getLoc(), (prefix + each.name).str(), type);
    function.setNoUnwind(true);
    functions[each.name] = type;
    if (each.name == "self") {
      // The value never changes while a kernel runs, so calls may be merged and moved.
      SmallVector<LLVM::ModRefInfo> none(6, LLVM::ModRefInfo::NoModRef);
      function.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(context, none));
      function.setWillReturn(true);
    }
  }
  auto bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), 16);
  for (bool isSink : {false, true}) {
    auto global = LLVM::GlobalOp::create(builder, module.getLoc(), bytes, /*isConstant=*/!isSink,
                                         LLVM::Linkage::Internal, isSink ? sinkName : zerosName, Attribute(),
                                         /*alignment=*/16);
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&global.getInitializerRegion());
    Value zero = LLVM::ZeroOp::create(builder, module.getLoc(), bytes);
    LLVM::ReturnOp::create(builder, module.getLoc(), zero);
  }
}

Value SimCalls::call(Emitter &e, StringRef function, ValueRange arguments) {
  auto call = LLVM::CallOp::create(e, functions.lookup(function), (prefix + function).str(), arguments);
  return call.getNumResults() ? call.getResult() : Value();
}

/// The function that code is being emitted into.
static Operation *functionOf(Emitter &e) {
  Operation *function = e.getInsertionBlock()->getParentOp();
  while (!isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  return function;
}

Value SimCalls::atEntry(Emitter &e, int64_t key, llvm::function_ref<Value(Emitter &)> create) {
  Operation *function = functionOf(e);
  Value &value = entryValues[{function, key}];
  if (!value) {
    Block &block = cast<FunctionOpInterface>(function).getFunctionBody().front();
    OpBuilder::InsertionGuard guard(e);
    // The thread comes first, what is read from it follows.
    Value thread = key == selfKey ? Value() : self(e);
    if (thread)
      e.setInsertionPointAfterValue(thread);
    else
      e.setInsertionPointToStart(&block);
    entryValues[{function, key}] = create(e);
  }
  return entryValues[{function, key}];
}

Value SimCalls::self(Emitter &e) {
  return atEntry(e, selfKey, [&](Emitter &entry) { return call(entry, "self", {}); });
}

Value SimCalls::field(Emitter &e, size_t offset, Type type) {
  return atEntry(e, static_cast<int64_t>(offset), [&](Emitter &entry) -> Value {
    Value address = entry.addBytes(self(entry), static_cast<int64_t>(offset));
    auto load = LLVM::LoadOp::create(entry, type, address);
    load.setInvariant(true);
    return load;
  });
}

Value SimCalls::addressOf(Emitter &e, StringRef global) {
  return LLVM::AddressOfOp::create(e, e.pointerType(), global);
}

static void storeAll(Emitter &e, ValueRange values, Value array) {
  int64_t bytes = Emitter::bitWidth(values.front().getType()) / 8;
  for (auto [i, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(e, value, e.addBytes(array, int64_t(i) * bytes));
}

Value SimCalls::spill(Emitter &e, ValueRange values) {
  Value array = e.allocaAtEntry(values.front().getType(), values.size(), /*alignment=*/64);
  storeAll(e, values, array);
  return array;
}

SmallVector<Value> SimCalls::reload(Emitter &e, Value array, ValueRange like) {
  Type type = like.front().getType();
  int64_t bytes = Emitter::bitWidth(type) / 8;
  SmallVector<Value> values;
  for (size_t i = 0; i < like.size(); ++i)
    values.push_back(LLVM::LoadOp::create(e, type, e.addBytes(array, int64_t(i) * bytes)));
  return values;
}

CallArrays::CallArrays(SimCalls &sim, Emitter &e) : sim(sim), e(e), function(functionOf(e)) {}

CallArrays::~CallArrays() {
  for (auto &[bytes, array] : llvm::reverse(taken))
    sim.unusedArrays[{function, bytes}].push_back(array);
}

Value CallArrays::make(Type element, int64_t count) {
  constexpr int alignment = 64;
  const int64_t needed = std::max<int64_t>(count * Emitter::bitWidth(element) / 8, alignment);
  const auto bytes = static_cast<int64_t>(llvm::PowerOf2Ceil(needed));
  SmallVector<Value> &unused = sim.unusedArrays[{function, bytes}];
  Value array = unused.empty() ? e.allocaAtEntry(e.getI8Type(), bytes, alignment) : unused.pop_back_val();
  taken.push_back({bytes, array});
  return array;
}

Value CallArrays::spill(ValueRange values) {
  Value array = make(values.front().getType(), static_cast<int64_t>(values.size()));
  storeAll(e, values, array);
  return array;
}

Value SimCalls::zeros(Emitter &e) { return addressOf(e, zerosName); }
Value SimCalls::sink(Emitter &e) { return addressOf(e, sinkName); }

std::string SimCalls::stringConstant(Emitter &e, const std::string &text) {
  auto [it, isNew] = strings.try_emplace(text);
  if (isNew) {
    it->second = fmt::format("ditron_file_{}", strings.size() - 1);
    std::string terminated = text + '\0';
    auto type = LLVM::LLVMArrayType::get(e.getI8Type(), terminated.size());
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(e, type, /*isConstant=*/true, LLVM::Linkage::Internal, it->second,
                           e.getStringAttr(terminated));
  }
  return it->second;
}

Value SimCalls::sharedArray(Emitter &e, Value address, int64_t offset, int64_t bytes) {
  auto type =
      LLVM::LLVMFunctionType::get(e.pointerType(), {e.pointerType(), e.getI32Type(), e.getI32Type(), e.getI32Type()});
  if (!module.lookupSymbol(sharedArrayName)) {
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(module.getBody());
    auto mark = LLVM::LLVMFuncOp::create(e, sharedArrayName, type);
    SmallVector<LLVM::ModRefInfo> none(6, LLVM::ModRefInfo::NoModRef);
    mark.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(e.getContext(), none));
    mark.setWillReturn(true);
    mark.setNoUnwind(true);
  }
  return LLVM::CallOp::create(e, type, sharedArrayName,
                              {address, e.i32(offset), e.i32(bytes), e.i32(sourcePlaceOf(e.getLoc()).line)})
      .getResult();
}

Value SimCalls::site(Emitter &e) {
  SourcePlace place = sourcePlaceOf(e.getLoc());
  auto [it, isNew] = sites.try_emplace({place.file, place.line, place.column});
  if (isNew) {
    it->second = fmt::format("ditron_site_{}", sites.size() - 1);
    std::string file = stringConstant(e, place.file);
    auto type = LLVM::LLVMStructType::getLiteral(e.getContext(),
                                                 {e.pointerType(), e.getI32Type(), e.getI32Type(), e.pointerType()});
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(module.getBody());
    auto global =
        LLVM::GlobalOp::create(e, type, /*isConstant=*/true, LLVM::Linkage::Internal, it->second, Attribute());
    e.createBlock(&global.getInitializerRegion());
    Value record = LLVM::UndefOp::create(e, type);
    record = LLVM::InsertValueOp::create(e, record, addressOf(e, file), ArrayRef<int64_t>{0});
    record = LLVM::InsertValueOp::create(e, record, e.i32(place.line), ArrayRef<int64_t>{1});
    record = LLVM::InsertValueOp::create(e, record, e.i32(place.column), ArrayRef<int64_t>{2});
    // Origins.cpp knows it, once the code is optimised.
    Value noOrigin = LLVM::ZeroOp::create(e, e.pointerType());
    record = LLVM::InsertValueOp::create(e, record, noOrigin, ArrayRef<int64_t>{3});
    LLVM::ReturnOp::create(e, ValueRange(record));
  }
  return addressOf(e, it->second);
}

} // namespace ditron::target
