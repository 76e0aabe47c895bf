//===- Torch.cpp - Functions of Python that run while compiling: torch and numpy -----------------------------------===//
//
// The number formats of torch and numpy with what torch.finfo and torch.iinfo say of them, and what torch says of the target:
// an NVIDIA GPU of the capability that is compiled for. How many GPUs there are, their names and memory are not known.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

//===------------------------------------------------------------------------------------------------------------------===//
// Number formats
//===------------------------------------------------------------------------------------------------------------------===//

/// A floating point format: the largest number, 2**epsilon between 1 and the next number, 2**smallest the smallest normal
/// number, and the decimal digits that torch calls its resolution.
struct FloatFormat {
  llvm::StringLiteral name;
  unsigned bits;
  double largest;
  int epsilon, smallest;
  double resolution;
};
constexpr FloatFormat floatFormats[] = {
    {"float64", 64, 1.7976931348623157e308, -52, -1022, 1e-15},
    {"float32", 32, 3.4028234663852886e38, -23, -126, 1e-6},
    {"float16", 16, 65504, -10, -14, 1e-3},
    {"bfloat16", 16, 3.3895313892515355e38, -7, -126, 1e-2},
    {"float8_e4m3fn", 8, 448, -3, -6, 1},
    {"float8_e5m2", 8, 57344, -2, -14, 1},
    {"float8_e4m3fnuz", 8, 240, -3, -7, 1},
    {"float8_e5m2fnuz", 8, 57344, -2, -15, 1},
};

/// A dtype of torch: its name, the name under which it prints, bits, and whether it is of floats ('f'), signed or unsigned
/// ints ('i', 'u'), bools ('b'), complex numbers ('c') or packed ('p').
struct TorchDtype {
  llvm::StringLiteral name, canonical;
  unsigned bits;
  char kind;
};
constexpr TorchDtype torchDtypes[] = {
    {"bfloat16", "bfloat16", 16, 'f'},
    {"bool", "bool", 8, 'b'},
    {"cfloat", "complex64", 64, 'c'},
    {"complex128", "complex128", 128, 'c'},
    {"complex64", "complex64", 64, 'c'},
    {"double", "float64", 64, 'f'},
    {"float", "float32", 32, 'f'},
    {"float16", "float16", 16, 'f'},
    {"float32", "float32", 32, 'f'},
    {"float4_e2m1fn_x2", "float4_e2m1fn_x2", 8, 'p'},
    {"float64", "float64", 64, 'f'},
    {"float8_e4m3fn", "float8_e4m3fn", 8, 'f'},
    {"float8_e4m3fnuz", "float8_e4m3fnuz", 8, 'f'},
    {"float8_e5m2", "float8_e5m2", 8, 'f'},
    {"float8_e5m2fnuz", "float8_e5m2fnuz", 8, 'f'},
    {"float8_e8m0fnu", "float8_e8m0fnu", 8, 'f'},
    {"half", "float16", 16, 'f'},
    {"int", "int32", 32, 'i'},
    {"int16", "int16", 16, 'i'},
    {"int32", "int32", 32, 'i'},
    {"int64", "int64", 64, 'i'},
    {"int8", "int8", 8, 'i'},
    {"long", "int64", 64, 'i'},
    {"short", "int16", 16, 'i'},
    {"uint16", "uint16", 16, 'u'},
    {"uint32", "uint32", 32, 'u'},
    {"uint64", "uint64", 64, 'u'},
    {"uint8", "uint8", 8, 'u'},
};

LangValue dtypeObject(const TorchDtype &dtype) {
  std::string text = "torch." + dtype.canonical.str();
  std::vector<std::pair<std::string, LangValue>> fields = {
      {"itemsize", LangValue::integer(dtype.bits / 8)},
      {"is_floating_point", LangValue::boolean(dtype.kind == 'f' || dtype.kind == 'p')},
      {"is_complex", LangValue::boolean(dtype.kind == 'c')},
      {"is_signed", LangValue::boolean(dtype.kind != 'u' && dtype.kind != 'b')},
      {"__repr__", LangValue::string(text)},
      {"__key__", LangValue::string(text)}};
  // The language's format of that name, which an array of it has.
  if (std::optional<ScalarKind> kind = dtype.canonical == "bool" ? ScalarKind::Int1 : parseScalarKind(dtype.canonical))
    fields.emplace_back("__dtype__", LangValue(LangType(*kind)));
  return LangValue::object("torch.dtype", std::move(fields));
}

template <size_t index> LangValue torchConstant(Evaluator &) { return dtypeObject(torchDtypes[index]); }

/// The canonical name of a format: of torch.float16, numpy.float16, float, "float16".
std::string formatName(const LangValue &value) {
  if (value.isString())
    return value.constant().getString();
  if (const ObjectValue *object = value.object(); object && object->type == "torch.dtype")
    return llvm::StringRef(find(*object, "__key__")->display()).rsplit('.').second.str();
  if (const auto *native = value.getIf<NativeValue>()) {
    llvm::StringRef name = native->function->shortName();
    return name == "float" ? "float64" : name == "int" ? "int64" : name.str();
  }
  return value.isType() ? value.asType().str() : "";
}

/// torch.finfo and numpy.finfo.
LangValue floatInfo(NativeCall &call) {
  std::string name = call.args.empty() ? "float32" : formatName(call.args[0]);
  const FloatFormat *format = llvm::find_if(floatFormats, [&](const FloatFormat &each) { return each.name == name; });
  if (format == std::end(floatFormats))
    return call.fail(fmt::format("{} takes a floating point dtype, but got {}",
                                 llvm::StringRef(call.function.name).str(), call.args[0].describe()));
  const double tiny = std::ldexp(1, format->smallest);
  return LangValue::object("finfo", {{"bits", LangValue::integer(format->bits)},
                                     {"dtype", LangValue::string(name)},
                                     {"eps", LangValue::floating(std::ldexp(1, format->epsilon))},
                                     {"max", LangValue::floating(format->largest)},
                                     {"min", LangValue::floating(-format->largest)},
                                     {"resolution", LangValue::floating(format->resolution)},
                                     {"smallest_normal", LangValue::floating(tiny)},
                                     {"tiny", LangValue::floating(tiny)}});
}

/// torch.iinfo and numpy.iinfo.
LangValue intInfo(NativeCall &call) {
  std::string name = formatName(call.args[0]);
  const bool isUnsigned = llvm::StringRef(name).starts_with("uint");
  unsigned bits = 0;
  if (llvm::StringRef(name).drop_front(std::min<size_t>(name.size(), isUnsigned ? 4 : 3)).getAsInteger(10, bits) ||
      !(isUnsigned || llvm::StringRef(name).starts_with("int")) || bits > 64)
    return call.fail(fmt::format("{} takes an integer dtype, but got {}", llvm::StringRef(call.function.name).str(),
                                 call.args[0].describe()));
  const BigInt span = *shl(BigInt(1), BigInt(isUnsigned ? bits : bits - 1));
  return LangValue::object("iinfo", {{"bits", LangValue::integer(bits)},
                                     {"dtype", LangValue::string(name)},
                                     {"max", LangValue(ConstValue::integer(*sub(span, BigInt(1))))},
                                     {"min", LangValue(ConstValue::integer(isUnsigned ? BigInt(0) : -span))}});
}

/// numpy.float32(x) and the like: a number of Python's with the value that the format holds.
LangValue numpyScalar(NativeCall &call) {
  llvm::StringRef name = call.function.shortName();
  const LangValue given = call.args.empty() ? LangValue::integer(0) : call.args[0];
  if (!given.isConstant())
    return call.unknown();
  if (name == "bool_")
    return LangValue::boolean(given.constant().isTrue());
  if (name.starts_with("float")) {
    LangValue number = call.result(toFloat(given.constant()));
    if (!number.isConstant() || name == "float64")
      return number;
    return name == "float32" ? LangValue::floating(static_cast<float>(number.constant().getFloat())) : call.unknown();
  }
  LangValue number = call.result(toInt(given.constant()));
  unsigned bits = 0;
  if (!number.isConstant() || name.drop_front(name.starts_with("u") ? 4 : 3).getAsInteger(10, bits))
    return number;
  const BigInt value = number.constant().getInt();
  return (name.starts_with("u") ? value.fitsUnsigned(bits) : value.fitsSigned(bits))
             ? number
             : call.fail(fmt::format("Python integer {} out of bounds for {}", value.toString(), name.str()),
                         "OverflowError");
}

//===------------------------------------------------------------------------------------------------------------------===//
// The target
//===------------------------------------------------------------------------------------------------------------------===//

LangValue yes(NativeCall &) { return LangValue::boolean(true); }
LangValue no(NativeCall &) { return LangValue::boolean(false); }

LangValue deviceCapability(NativeCall &call) {
  const int64_t capability = call.evaluator.options.capability;
  return LangValue::tuple({LangValue::integer(capability / 10), LangValue::integer(capability % 10)});
}

/// torch.cuda.get_device_properties: what follows from the target is known, the rest is not.
LangValue deviceProperties(NativeCall &call) {
  const int64_t capability = call.evaluator.options.capability;
  std::vector<std::pair<std::string, LangValue>> fields = {
      {"major", LangValue::integer(capability / 10)},
      {"minor", LangValue::integer(capability % 10)},
      {"warp_size", LangValue::integer(call.evaluator.options.threadsPerWarp)}};
  std::string text = fmt::format("torch.cuda.get_device_properties({})", call.args.empty() ? "" : call.args[0].repr());
  for (llvm::StringRef name :
       {"name", "total_memory", "multi_processor_count", "L2_cache_size", "max_threads_per_multi_processor",
        "regs_per_multiprocessor", "shared_memory_per_block", "shared_memory_per_block_optin",
        "shared_memory_per_multiprocessor", "is_integrated", "is_multi_gpu_board", "uuid"})
    fields.emplace_back(name.str(), call.evaluator.unknown(call.range, text + "." + name.str()));
  return LangValue::object("_CudaDeviceProperties", std::move(fields));
}

/// torch.device("cuda:1").
LangValue makeDevice(NativeCall &call) {
  const std::string *text = call.text(call.args[0], "a device");
  if (!text)
    return LangValue::poison();
  auto [type, number] = llvm::StringRef(*text).split(':');
  LangValue index = call.args.size() > 1 ? call.args[1] : LangValue::none();
  int64_t value = 0;
  if (!number.empty() && number.getAsInteger(10, value))
    return call.fail(fmt::format("Invalid device string: '{}'", *text), "RuntimeError");
  if (!number.empty())
    index = LangValue::integer(value);
  std::string shown = type.str() + (index.isNone() ? "" : ":" + index.display());
  return LangValue::object("torch.device", {{"type", LangValue::string(type.str())},
                                            {"index", index},
                                            {"__str__", LangValue::string(shown)},
                                            {"__key__", LangValue::string(shown)}});
}

LangValue isTensor(NativeCall &call) {
  return LangValue::boolean(call.args[0].object() && call.args[0].object()->type == "Tensor");
}

} // namespace

LangValue torchDtype(const LangType &type) {
  for (const TorchDtype &dtype : torchDtypes)
    if (dtype.name == dtype.canonical && parseScalarKind(dtype.canonical) == type.kind() && !type.isPointer())
      return dtypeObject(dtype);
  return LangValue(type);
}

llvm::ArrayRef<NativeConstant> nativeTorchConstants() {
  static constexpr NativeConstant rows[] = {
      {"numpy.e", [](Evaluator &) { return LangValue::floating(M_E); }},
      {"numpy.inf", [](Evaluator &) { return LangValue::floating(INFINITY); }},
      {"numpy.nan", [](Evaluator &) { return LangValue::floating(NAN); }},
      {"numpy.newaxis", [](Evaluator &) { return LangValue::none(); }},
      {"numpy.pi", [](Evaluator &) { return LangValue::floating(M_PI); }},
      {"torch.e", [](Evaluator &) { return LangValue::floating(M_E); }},
      {"torch.inf", [](Evaluator &) { return LangValue::floating(INFINITY); }},
      {"torch.nan", [](Evaluator &) { return LangValue::floating(NAN); }},
      {"torch.pi", [](Evaluator &) { return LangValue::floating(M_PI); }},
      {"torch.bfloat16", torchConstant<0>},
      {"torch.bool", torchConstant<1>},
      {"torch.cfloat", torchConstant<2>},
      {"torch.complex128", torchConstant<3>},
      {"torch.complex64", torchConstant<4>},
      {"torch.double", torchConstant<5>},
      {"torch.float", torchConstant<6>},
      {"torch.float16", torchConstant<7>},
      {"torch.float32", torchConstant<8>},
      {"torch.float4_e2m1fn_x2", torchConstant<9>},
      {"torch.float64", torchConstant<10>},
      {"torch.float8_e4m3fn", torchConstant<11>},
      {"torch.float8_e4m3fnuz", torchConstant<12>},
      {"torch.float8_e5m2", torchConstant<13>},
      {"torch.float8_e5m2fnuz", torchConstant<14>},
      {"torch.float8_e8m0fnu", torchConstant<15>},
      {"torch.half", torchConstant<16>},
      {"torch.int", torchConstant<17>},
      {"torch.int16", torchConstant<18>},
      {"torch.int32", torchConstant<19>},
      {"torch.int64", torchConstant<20>},
      {"torch.int8", torchConstant<21>},
      {"torch.long", torchConstant<22>},
      {"torch.short", torchConstant<23>},
      {"torch.uint16", torchConstant<24>},
      {"torch.uint32", torchConstant<25>},
      {"torch.uint64", torchConstant<26>},
      {"torch.uint8", torchConstant<27>},
  };
  return rows;
}

llvm::ArrayRef<NativeFunction> nativeTorchFunctions() {
  constexpr unsigned any = NativeFunction::any;
  static constexpr NativeFunction rows[] = {
      {"numpy.bool_", 0, 1, numpyScalar, "", false, true},
      {"numpy.finfo", 1, 1, floatInfo, "dtype"},
      {"numpy.float16", 0, 1, numpyScalar, "", false, true},
      {"numpy.float32", 0, 1, numpyScalar, "", false, true},
      {"numpy.float64", 0, 1, numpyScalar, "", false, true},
      {"numpy.iinfo", 1, 1, intInfo, "dtype"},
      {"numpy.int16", 0, 1, numpyScalar, "", false, true},
      {"numpy.int32", 0, 1, numpyScalar, "", false, true},
      {"numpy.int64", 0, 1, numpyScalar, "", false, true},
      {"numpy.int8", 0, 1, numpyScalar, "", false, true},
      {"numpy.uint16", 0, 1, numpyScalar, "", false, true},
      {"numpy.uint32", 0, 1, numpyScalar, "", false, true},
      {"numpy.uint64", 0, 1, numpyScalar, "", false, true},
      {"numpy.uint8", 0, 1, numpyScalar, "", false, true},
      {"torch.Tensor", 0, any, notKnown, "*", true, true},
      {"torch._dynamo.disable", 0, 1, identityDecorator, "*"},
      {"torch.amp.custom_bwd", 0, 1, identityDecorator, "*"},
      {"torch.amp.custom_fwd", 0, 1, identityDecorator, "*"},
      {"torch.backends.mps.is_available", 0, 0, no},
      {"torch.compile", 0, 1, identityDecorator, "*"},
      {"torch.compiler.disable", 0, 1, identityDecorator, "*"},
      {"torch.cuda.amp.custom_bwd", 0, 1, identityDecorator, "*"},
      {"torch.cuda.amp.custom_fwd", 0, 1, identityDecorator, "*"},
      {"torch.cuda.get_device_capability", 0, 1, deviceCapability, "device", true},
      {"torch.cuda.get_device_properties", 0, 1, deviceProperties, "device", true},
      {"torch.cuda.is_available", 0, 0, yes},
      {"torch.device", 1, 2, makeDevice, "", false, true},
      {"torch.dtype", 0, 0, notKnown, "", false, true},
      {"torch.enable_grad", 0, 1, identityDecorator},
      {"torch.finfo", 0, 1, floatInfo, "type"},
      {"torch.iinfo", 1, 1, intInfo, "type"},
      {"torch.inference_mode", 0, 1, identityDecorator, "mode"},
      {"torch.is_tensor", 1, 1, isTensor},
      {"torch.jit.ignore", 0, 1, identityDecorator, "*"},
      {"torch.jit.script", 1, 1, identityDecorator},
      {"torch.no_grad", 0, 1, identityDecorator},
      {"torch.utils._triton.has_triton", 0, 0, yes},
      {"torch.utils._triton.has_triton_package", 0, 0, yes},
      {"torch.xpu.is_available", 0, 0, no},
      // Whether the machine has another vendor's accelerator: the target is NVIDIA's, whether the package is there or not.
      {"transformers.utils.is_torch_npu_available", 0, 1, no},
      {"transformers.utils.is_torch_xpu_available", 0, 1, no},
  };
  return rows;
}

} // namespace ditron::frontend
