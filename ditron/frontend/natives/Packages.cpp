//===- Packages.cpp - Functions of Python that run while compiling: the program's surroundings ---------------------===//
//
// Which modules there are and of which version (the one table `emulated` below), what Python says of itself, and the host side
// of triton as far as it follows from the target. Objects of the module typing mean nothing and may be subscripted.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include "llvm/ADT/StringSet.h"
#include <fmt/format.h>
#include <sys/utsname.h>

namespace ditron::frontend {
namespace {

/// The packages that a program sees, by the name under which their version is asked. `--define torch.__version__='"2.5.1"'`
/// changes one. Triton is the release whose behaviour conformance is measured against (docs/conformance.md); the others are
/// those that it was released beside. docs/modules.md shows the table.
struct EmulatedPackage {
  llvm::StringLiteral name, version;
};
constexpr EmulatedPackage emulated[] = {
    {"triton", "3.6.0"},
    {"torch", "2.9.0"},
    {"numpy", "2.3.5"},
};
constexpr int64_t pythonVersion[] = {3, 12, 0};
constexpr llvm::StringLiteral cudaVersion = "12.8";

template <size_t index> LangValue packageVersion(Evaluator &) {
  return LangValue::string(emulated[index].version.str());
}

//===------------------------------------------------------------------------------------------------------------------===//
// sys, platform, importlib
//===------------------------------------------------------------------------------------------------------------------===//

LangValue versionInfo(Evaluator &) {
  return namedTuple("sys.version_info", {{"major", LangValue::integer(pythonVersion[0])},
                                         {"minor", LangValue::integer(pythonVersion[1])},
                                         {"micro", LangValue::integer(pythonVersion[2])},
                                         {"releaselevel", LangValue::string("final")},
                                         {"serial", LangValue::integer(0)}});
}

LangValue implementation(Evaluator &evaluator) {
  return LangValue::object("types.SimpleNamespace", {{"name", LangValue::string("cpython")},
                                                     {"version", *nativeConstant(evaluator, "sys.version_info")}});
}

/// "3.12.0", of what sys.version_info is.
LangValue pythonVersionText(NativeCall &call) {
  LangValue info = *nativeConstant(call.evaluator, "sys.version_info");
  std::string text;
  const std::vector<LangValue> *parts = info.sequence();
  for (size_t i = 0; parts && i < std::min<size_t>(3, parts->size()); ++i)
    text += (i ? "." : "") + (*parts)[i].display();
  return LangValue::string(std::move(text));
}

/// platform.system() and platform.machine(): of the machine that compiles.
LangValue systemName(NativeCall &call) {
  utsname names;
  if (uname(&names) != 0)
    return call.unknown();
  return LangValue::string(call.function.shortName() == "system" ? names.sysname : names.machine);
}

LangValue importModule(NativeCall &call) {
  const std::string *name = call.text(call.args[0], "the name of a module");
  if (!name)
    return LangValue::poison();
  if (llvm::StringRef(*name).starts_with("."))
    return call.unknown();
  return call.evaluator.importModule(call.evaluator.intern(*name), call.range);
}

LangValue findSpec(NativeCall &call) {
  const std::string *name = call.text(call.args[0], "the name of a module");
  if (!name)
    return LangValue::poison();
  std::optional<bool> exists = call.evaluator.hasModule(call.evaluator.intern(*name), call.range);
  if (!exists)
    return call.unknown();
  if (!*exists)
    return LangValue::none();
  return LangValue::object("ModuleSpec", {{"name", call.args[0]}, {"loader", LangValue::object("Loader", {})}});
}

/// importlib.util.module_from_spec: the module itself, which the loader's exec_module then need not execute.
LangValue moduleFromSpec(NativeCall &call) {
  const ObjectValue *spec = call.args[0].object();
  if (!spec || spec->type != "ModuleSpec")
    return call.fail(fmt::format("importlib.util.module_from_spec takes what find_spec gives, but got {}", call.args[0].describe()));
  return call.evaluator.importModule(call.evaluator.intern(find(*spec, "name")->display()), call.range);
}

LangValue metadataVersion(NativeCall &call) {
  const std::string *name = call.text(call.args[0], "the name of a package");
  if (!name)
    return LangValue::poison();
  return nativeConstant(call.evaluator, *name + ".__version__").value_or(call.unknown());
}

//===------------------------------------------------------------------------------------------------------------------===//
// typing, copy, warnings
//===------------------------------------------------------------------------------------------------------------------===//

LangValue opaque(llvm::StringRef name) {
  std::string text = "typing." + name.str();
  return LangValue::object("typing", {{"__name__", LangValue::string(name.str())},
                                      {"__repr__", LangValue::string(text)},
                                      {"__key__", LangValue::string(text)}});
}

constexpr llvm::StringLiteral typingNames[] = {"Any",       "Callable", "ClassVar", "Dict",     "Final",    "FrozenSet",
                                               "Generator", "Generic",  "Hashable", "Iterable", "Iterator", "List",
                                               "Literal",   "Mapping",  "NoReturn", "Optional", "Protocol", "Sequence",
                                               "Set",       "Tuple",    "Type",     "Union"};

template <size_t index> LangValue typingObject(Evaluator &) { return opaque(typingNames[index]); }

LangValue makeTypingObject(NativeCall &call) { return opaque(call.args.empty() ? "object" : call.args[0].display()); }
LangValue subscriptTyping(NativeCall &call) { return call.self; }
LangValue nothing(NativeCall &) { return LangValue::none(); }

LangValue simpleNamespace(NativeCall &call) {
  auto cls = std::make_shared<ClassInfo>();
  cls->name = cls->qualifiedName = "namespace";
  cls->evaluator = &call.evaluator;
  cls->order = {cls.get()};
  cls->isPlain = true;
  cls->isNamespace = true;
  auto instance = std::make_shared<Instance>();
  for (const auto &[name, value] : call.keywords)
    instance->attributes[call.evaluator.intern(name)] = value;
  instance->cls = std::move(cls);
  return LangValue(std::move(instance));
}

/// copy.copy and copy.deepcopy; objects and tuples of what cannot change are themselves. Nullopt past the deepest nesting.
std::optional<LangValue> copyOf(const LangValue &value, bool isDeep, unsigned depth) {
  if (depth > LangValue::maxNesting)
    return std::nullopt;
  auto inner = [&](const LangValue &each) { return isDeep ? copyOf(each, true, depth + 1) : std::optional(each); };
  if (value.isDict()) {
    std::vector<std::pair<LangValue, LangValue>> items;
    for (const auto &[key, each] : value.items()) {
      std::optional<LangValue> copied = inner(each);
      if (!copied)
        return std::nullopt;
      items.emplace_back(key, std::move(*copied));
    }
    LangValue result = LangValue::dict(std::move(items));
    return LangValue(DictValue{result.getIf<DictValue>()->items, value.getIf<DictValue>()->factory});
  }
  if (const Instance *instance = value.instance(); instance && !instance->cls->isEnum) {
    auto copy = std::make_shared<Instance>(*instance);
    for (auto &[name, each] : copy->attributes) {
      std::optional<LangValue> copied = inner(each);
      if (!copied)
        return std::nullopt;
      each = std::move(*copied);
    }
    return LangValue(std::move(copy));
  }
  const std::vector<LangValue> *elements = value.sequence();
  if (!elements || (value.isTuple() && !isDeep))
    return value;
  std::vector<LangValue> copies;
  for (const LangValue &each : *elements) {
    std::optional<LangValue> copied = inner(each);
    if (!copied)
      return std::nullopt;
    copies.push_back(std::move(*copied));
  }
  if (value.isTuple())
    return value.withParts(std::move(copies));
  return value.isSet() ? LangValue::set(std::move(copies), value.getIf<ListValue>()->isFrozen) : LangValue::list(std::move(copies));
}

LangValue copyValue(NativeCall &call) {
  std::optional<LangValue> copied = copyOf(call.args[0], call.function.shortName() == "deepcopy", 0);
  return copied ? *copied
                : call.fail(fmt::format("values at compile time are nested at most {} deep", LangValue::maxNesting),
                            "RecursionError");
}

//===------------------------------------------------------------------------------------------------------------------===//
// triton
//===------------------------------------------------------------------------------------------------------------------===//

LangValue ceilingDivide(NativeCall &call) {
  LangValue less = call.evaluator.binaryOf(BinaryOp::Sub, call.args[1], LangValue::integer(1), call.range);
  LangValue sum = less.isPoison() ? less : call.evaluator.binaryOf(BinaryOp::Add, call.args[0], less, call.range);
  return sum.isPoison() ? sum : call.evaluator.binaryOf(BinaryOp::FloorDiv, sum, call.args[1], call.range);
}

LangValue nextPowerOf2(NativeCall &call) {
  std::optional<int64_t> number = call.integer(call.args[0], "the argument of triton.next_power_of_2");
  if (!number)
    return LangValue::poison();
  if (*number > (int64_t(1) << 62))
    return call.fail(fmt::format("triton.next_power_of_2 takes at most 2**62, but got {}", *number), "OverflowError");
  int64_t power = *number < 1 ? 0 : 1;
  while (power < *number)
    power *= 2;
  return LangValue::integer(power);
}

LangValue makeConfig(NativeCall &call) {
  std::vector<std::pair<std::string, LangValue>> fields = {{"kwargs", LangValue::none()},
                                                           {"num_warps", LangValue::integer(4)},
                                                           {"num_stages", LangValue::integer(3)},
                                                           {"num_ctas", LangValue::integer(1)},
                                                           {"maxnreg", LangValue::none()},
                                                           {"pre_hook", LangValue::none()},
                                                           {"ir_override", LangValue::none()},
                                                           {"num_consumer_groups", LangValue::none()},
                                                           {"num_buffers_warp_spec", LangValue::none()},
                                                           {"reg_dec_producer", LangValue::none()},
                                                           {"reg_inc_consumer", LangValue::none()},
                                                           {"minRegAutoWS", LangValue::none()},
                                                           {"maxRegAutoWS", LangValue::none()}};
  for (auto [index, value] : llvm::enumerate(call.args))
    fields[index].second = value;
  for (const auto &[name, value] : call.keywords)
    for (auto &field : fields)
      if (field.first == name)
        field.second = value;
  if (fields[0].second.isUnknown())
    return fields[0].second;
  if (!fields[0].second.isDict())
    return call.fail("the first argument of triton.Config is a dict of values for parameters");
  return LangValue::object("Config", std::move(fields));
}

/// Config.all_kwargs(): the values for the kernel's parameters and the options that are set.
LangValue configKeywords(NativeCall &call) {
  const ObjectValue &config = *call.self.object();
  LangValue result = LangValue::dict(find(config, "kwargs")->items());
  for (llvm::StringRef name : {"num_warps", "num_ctas", "num_stages", "num_buffers_warp_spec", "num_consumer_groups",
                               "reg_dec_producer", "reg_inc_consumer", "maxnreg", "ir_override"})
    if (const LangValue *value = find(config, name); value && !value->isNone())
      setItem(*result.getIf<DictValue>(), LangValue::string(name.str()), *value);
  return result;
}

LangValue targetObject(LangValue backend, LangValue arch, LangValue warpSize) {
  return LangValue::object(
      "GPUTarget", {{"backend", std::move(backend)}, {"arch", std::move(arch)}, {"warp_size", std::move(warpSize)}});
}

LangValue currentTarget(NativeCall &call) {
  return targetObject(LangValue::string("cuda"), LangValue::integer(call.evaluator.options.capability),
                      LangValue::integer(call.evaluator.options.threadsPerWarp));
}

LangValue makeTarget(NativeCall &call) {
  const LangValue *backend = call.argument(0, "backend"), *arch = call.argument(1, "arch"),
                  *warpSize = call.argument(2, "warp_size");
  if (!backend || !arch || !warpSize)
    return call.fail("GPUTarget takes backend, arch and warp_size");
  return targetObject(*backend, *arch, *warpSize);
}

LangValue zero(NativeCall &) { return LangValue::integer(0); }

/// True for modules of Python's own library.
bool isStandardModule(llvm::StringRef name) {
  static const llvm::StringSet<> modules = {"__future__",  "abc",          "argparse",     "array",
                                            "ast",         "asyncio",      "atexit",       "base64",
                                            "bisect",      "builtins",     "codecs",       "collections",
                                            "concurrent",  "configparser", "contextlib",   "contextvars",
                                            "copy",        "csv",          "ctypes",       "dataclasses",
                                            "datetime",    "decimal",      "difflib",      "dis",
                                            "enum",        "errno",        "faulthandler", "filecmp",
                                            "fnmatch",     "fractions",    "functools",    "gc",
                                            "getpass",     "glob",         "gzip",         "hashlib",
                                            "heapq",       "hmac",         "html",         "http",
                                            "importlib",   "inspect",      "io",           "itertools",
                                            "json",        "keyword",      "linecache",    "locale",
                                            "logging",     "math",         "mmap",         "multiprocessing",
                                            "numbers",     "operator",     "os",           "pathlib",
                                            "pdb",         "pickle",       "pkgutil",      "platform",
                                            "pprint",      "queue",        "random",       "re",
                                            "resource",    "secrets",      "select",       "shlex",
                                            "shutil",      "signal",       "site",         "socket",
                                            "sqlite3",     "ssl",          "stat",         "statistics",
                                            "string",      "struct",       "subprocess",   "sys",
                                            "sysconfig",   "tarfile",      "tempfile",     "textwrap",
                                            "threading",   "time",         "timeit",       "token",
                                            "tokenize",    "traceback",    "types",        "typing",
                                            "unicodedata", "unittest",     "urllib",       "uuid",
                                            "warnings",    "weakref",      "xml",          "zipfile",
                                            "zlib"};
  return modules.contains(name);
}

/// The parts of packages, Python's own and those of the emulated versions, that programs ask for.
constexpr llvm::StringLiteral knownParts[] = {
    "asyncio.events", "concurrent.futures", "ctypes.util", "http.client", "http.server", "importlib.abc",
    "importlib.machinery", "importlib.resources", "json.decoder", "logging.config", "logging.handlers",
    "multiprocessing.pool", "multiprocessing.shared_memory", "unittest.mock", "urllib.error", "urllib.parse",
    "urllib.request", "xml.etree", "xml.etree.ElementTree", "torch.amp", "torch.autograd", "torch.backends",
    "torch.compiler", "torch.cuda", "torch.cuda.amp", "torch.distributed", "torch.fft", "torch.fx", "torch.jit",
    "torch.library", "torch.linalg", "torch.multiprocessing", "torch.nn", "torch.nn.functional", "torch.nn.init",
    "torch.nn.parameter", "torch.optim", "torch.profiler", "torch.sparse", "torch.special", "torch.testing",
    "torch.utils", "torch.utils.checkpoint", "torch.utils.cpp_extension", "torch.utils.data", "torch.version",
    "torch.xpu", "triton.backends", "triton.backends.compiler", "triton.backends.nvidia", "triton.compiler",
    "triton.compiler.compiler", "triton.compiler.errors", "triton.errors", "triton.experimental",
    "triton.experimental.gluon", "triton.knobs", "triton.runtime", "triton.runtime.autotuner", "triton.runtime.cache",
    "triton.runtime.driver", "triton.runtime.errors", "triton.runtime.jit", "triton.testing", "triton.tools",
    "triton.tools.tensor_descriptor", "numpy.linalg", "numpy.random", "numpy.typing", "packaging.version",
    "packaging.specifiers"};

bool isKnownPart(llvm::StringRef dotted) { return llvm::is_contained(knownParts, dotted); }

} // namespace

std::optional<bool> moduleExists(llvm::StringRef module) {
  auto [package, rest] = module.split('.');
  const bool isHere = isStandardModule(package) ||
                      llvm::is_contained({"torch", "triton", "numpy", "packaging", "typing_extensions"}, package);
  return isHere && (rest.empty() || isKnownPart(module) || isNativeModule(module)) ? std::optional(true) : std::nullopt;
}

llvm::ArrayRef<NativeConstant> nativePackageConstants() {
  static constexpr NativeConstant rows[] = {
      {"numpy.__version__", packageVersion<2>},
      {"os.curdir", [](Evaluator &) { return LangValue::string("."); }},
      {"os.environ", [](Evaluator &) { return LangValue::object("os.environ", {}); }},
      {"os.linesep", [](Evaluator &) { return LangValue::string("\n"); }},
      {"os.name", [](Evaluator &) { return LangValue::string("posix"); }},
      {"os.pathsep", [](Evaluator &) { return LangValue::string(":"); }},
      {"os.sep", [](Evaluator &) { return LangValue::string("/"); }},
      {"sys.byteorder", [](Evaluator &) { return LangValue::string("little"); }},
      {"sys.implementation", implementation},
      {"sys.maxsize", [](Evaluator &) { return LangValue::integer(INT64_MAX); }},
      {"sys.platform", [](Evaluator &) { return LangValue::string("linux"); }},
      {"sys.version_info", versionInfo},
      {"torch.__version__", packageVersion<1>},
      {"torch.version.__version__",
       [](Evaluator &evaluator) { return *nativeConstant(evaluator, "torch.__version__"); }},
      {"torch.version.cuda", [](Evaluator &) { return LangValue::string(cudaVersion.str()); }},
      {"torch.version.hip", [](Evaluator &) { return LangValue::none(); }},
      {"triton.__version__", packageVersion<0>},
      {"typing.TYPE_CHECKING", [](Evaluator &) { return LangValue::boolean(false); }},
      {"typing.Any", typingObject<0>},
      {"typing.Callable", typingObject<1>},
      {"typing.ClassVar", typingObject<2>},
      {"typing.Dict", typingObject<3>},
      {"typing.Final", typingObject<4>},
      {"typing.FrozenSet", typingObject<5>},
      {"typing.Generator", typingObject<6>},
      {"typing.Generic", typingObject<7>},
      {"typing.Hashable", typingObject<8>},
      {"typing.Iterable", typingObject<9>},
      {"typing.Iterator", typingObject<10>},
      {"typing.List", typingObject<11>},
      {"typing.Literal", typingObject<12>},
      {"typing.Mapping", typingObject<13>},
      {"typing.NoReturn", typingObject<14>},
      {"typing.Optional", typingObject<15>},
      {"typing.Protocol", typingObject<16>},
      {"typing.Sequence", typingObject<17>},
      {"typing.Set", typingObject<18>},
      {"typing.Tuple", typingObject<19>},
      {"typing.Type", typingObject<20>},
      {"typing.Union", typingObject<21>},
      {"collections.abc.Callable", typingObject<1>},
      {"collections.abc.Iterable", typingObject<9>},
      {"collections.abc.Mapping", typingObject<13>},
      {"collections.abc.Sequence", typingObject<17>},
  };
  return rows;
}

llvm::ArrayRef<NativeFunction> nativePackageMethods() {
  static constexpr NativeFunction rows[] = {
      {"Config.all_kwargs", 0, 0, configKeywords},
      {"Loader.exec_module", 1, 1, nothing},
  };
  return rows;
}

llvm::ArrayRef<NativeFunction> nativePackageFunctions() {
  constexpr unsigned any = NativeFunction::any;
  static constexpr NativeFunction rows[] = {
      {"copy.copy", 1, 1, copyValue},
      {"copy.deepcopy", 1, 1, copyValue},
      {"importlib.import_module", 1, 2, importModule, "package"},
      {"importlib.metadata.PackageNotFoundError", 0, any, makeException, "", true, true},
      {"importlib.metadata.version", 1, 1, metadataVersion},
      {"importlib.util.find_spec", 1, 2, findSpec, "package"},
      {"importlib.util.module_from_spec", 1, 1, moduleFromSpec},
      {"numbers.Integral", 0, 0, notKnown, "", false, true},
      {"numbers.Number", 0, 0, notKnown, "", false, true},
      {"numbers.Real", 0, 0, notKnown, "", false, true},
      {"platform.machine", 0, 0, systemName},
      {"platform.python_version", 0, 0, pythonVersionText},
      {"platform.system", 0, 0, systemName},
      {"types.SimpleNamespace", 0, 0, simpleNamespace, "*", true, true},
      {"typing.NewType", 2, 2, [](NativeCall &call) { return call.args[1]; }, "", true},
      {"typing.TypeVar", 1, any, makeTypingObject, "*", true},
      {"typing.__getitem__", 1, 1, subscriptTyping, "", true},
      {"warnings.filterwarnings", 1, 5, nothing, "*", true},
      {"warnings.simplefilter", 1, 4, nothing, "*", true},
      {"warnings.warn", 1, 3, nothing, "*", true},
      {"triton.Config", 0, 13, makeConfig,
       "kwargs num_warps num_stages num_ctas maxnreg pre_hook ir_override num_consumer_groups num_buffers_warp_spec "
       "reg_dec_producer reg_inc_consumer minRegAutoWS maxRegAutoWS",
       true, true},
      {"triton.backends.compiler.GPUTarget", 0, 3, makeTarget, "backend arch warp_size", false, true},
      {"triton.cdiv", 2, 2, ceilingDivide},
      {"triton.next_power_of_2", 1, 1, nextPowerOf2},
      {"triton.runtime.driver.active.get_current_device", 0, 0, zero},
      {"triton.runtime.driver.active.get_current_target", 0, 0, currentTarget},
  };
  return rows;
}

} // namespace ditron::frontend
