//===- Kernels.cpp - Kernels and variants of the C interface ------------------------------------------------------===//
#include "ditron/api/Handles.h"
#include "ditron/support/InputFile.h"

#include <array>
#include <fmt/format.h>

using namespace ditron;
using namespace ditron::api;

/// A variant loaded on the ranks of this process, and again when the context began again.
struct ditron_variant {
  std::shared_ptr<Context> context;
  std::shared_ptr<KernelTemplate> origin;
  runtime::Kernel kernel;
  std::string signature; ///< For the texts.
  LaunchOptions options;
  bool cooperative = false;
  std::map<std::string, std::string, std::less<>> texts;      ///< By stage; what ditron_variant_text has given out.
  std::shared_ptr<runtime::World> world;                      ///< For which it is loaded.
  std::vector<std::unique_ptr<runtime::LoadedKernel>> loaded; ///< By rank.

  Status load();
};

Status ditron_variant::load() {
  world = context->world();
  loaded.clear();
  loaded.resize(world->numRanks());
  for (uint32_t id : world->localRanks()) {
    DITRON_ASSIGN_OR_RETURN(loaded[id], world->rank(id).device()->loadForLaunch(kernel, runtime::StreamHandle(0)));
  }
  return Status::ok();
}

namespace {

Expected<runtime::TensorDescriptor> readDescriptor(const ditron_descriptor_t *given) {
  DITRON_RETURN_IF_ERROR(checkGiven(given, "a tensor descriptor"));
  DITRON_ASSIGN_OR_RETURN(const ditron_descriptor_t complete, readStruct(given, "ditron_descriptor_t"));
  constexpr uint32_t mostDimensions = 5;
  if (complete.dimensions < 1 || complete.dimensions > mostDimensions)
    return invalidArgument(
        fmt::format("a tensor descriptor of {} dimensions; accepted are 1 to {}", complete.dimensions, mostDimensions));
  DITRON_RETURN_IF_ERROR(checkGiven(complete.shape, "the shape of a tensor descriptor"));
  DITRON_RETURN_IF_ERROR(checkGiven(complete.block_shape, "the block shape of a tensor descriptor"));
  runtime::TensorDescriptor descriptor;
  DITRON_ASSIGN_OR_RETURN(descriptor.base.type, toDataType(complete.dtype, "a tensor descriptor"));
  descriptor.base.address = complete.base;
  descriptor.shape.assign(complete.shape, complete.shape + complete.dimensions);
  if (complete.strides)
    descriptor.strides.assign(complete.strides, complete.strides + complete.dimensions);
  descriptor.blockShape.assign(complete.block_shape, complete.block_shape + complete.dimensions);
  descriptor.fillNan = complete.fill_nan;
  return descriptor;
}

Expected<runtime::Argument> readArgument(const ditron_argument_t &given) {
  switch (given.kind) {
  case DITRON_ARGUMENT_NONE: return runtime::Argument(runtime::None());
  case DITRON_ARGUMENT_BOOL: return runtime::Argument(given.value.integer != 0);
  case DITRON_ARGUMENT_INT: return runtime::Argument(given.value.integer);
  case DITRON_ARGUMENT_UINT: return runtime::Argument(given.value.unsigned_integer);
  case DITRON_ARGUMENT_FLOAT: return runtime::Argument(given.value.floating);
  case DITRON_ARGUMENT_POINTER: {
    DITRON_ASSIGN_OR_RETURN(const DataType type, toDataType(given.dtype, "a pointer argument"));
    return runtime::Argument(runtime::Pointer{given.value.pointer, type});
  }
  case DITRON_ARGUMENT_STRING:
    DITRON_RETURN_IF_ERROR(checkGiven(given.value.string, "a string argument"));
    return runtime::Argument(given.value.string);
  case DITRON_ARGUMENT_DTYPE: {
    DITRON_ASSIGN_OR_RETURN(const DataType type, toDataType(given.dtype, "a dtype argument"));
    return runtime::Argument(type);
  }
  case DITRON_ARGUMENT_DESCRIPTOR: {
    DITRON_ASSIGN_OR_RETURN(runtime::TensorDescriptor descriptor, readDescriptor(given.value.descriptor));
    return runtime::Argument(std::move(descriptor));
  }
  }
  return invalidArgument(fmt::format("an argument of kind {}; accepted are the members of ditron_argument_kind_t",
                                     static_cast<int>(given.kind)));
}

Expected<CallArguments> readArguments(const ditron_argument_t *arguments, uint32_t count) {
  CallArguments call;
  if (count) {
    DITRON_RETURN_IF_ERROR(checkGiven(arguments, "the list of arguments"));
  }
  for (uint32_t i = 0; i < count; ++i) {
    Expected<runtime::Argument> value = readArgument(arguments[i]);
    if (!value.isOk())
      return value.status().withContext(arguments[i].name ? fmt::format("argument '{}'", arguments[i].name)
                                                          : fmt::format("argument {}", i));
    if (arguments[i].name)
      call.keywords.emplace_back(arguments[i].name, std::move(value).value());
    else if (!call.keywords.empty())
      return invalidArgument(fmt::format("argument {} has no name and follows one that has", i));
    else
      call.positional.push_back(std::move(value).value());
  }
  return call;
}

struct LaunchChoice {
  LaunchOptions options;
  runtime::LaunchConfig config;
};

Expected<LaunchChoice> readLaunch(const ditron_launch_t *given) {
  DITRON_ASSIGN_OR_RETURN(const ditron_launch_t launch, readStruct(given, "ditron_launch_t"));
  LaunchChoice choice;
  if (launch.num_warps)
    choice.options.numWarps = launch.num_warps;
  if (launch.num_stages)
    choice.options.numStages = launch.num_stages;
  choice.options.debug = launch.debug;
  std::copy(std::begin(launch.grid), std::end(launch.grid), choice.config.grid.begin());
  choice.config.cooperative = launch.cooperative;
  return choice;
}

Expected<compiler::KernelSource> readSource(const ditron_source_t *given) {
  DITRON_RETURN_IF_ERROR(checkGiven(given, "the source"));
  DITRON_ASSIGN_OR_RETURN(const ditron_source_t source, readStruct(given, "ditron_source_t"));
  DITRON_RETURN_IF_ERROR(checkGiven(source.path, "the path of the source"));
  compiler::KernelSource result;
  result.path = source.path;
  if (source.text) {
    result.text = source.text;
  } else {
    DITRON_ASSIGN_OR_RETURN(result.text, readKernelFile(source.path));
  }
  for (uint32_t i = 0; i < source.module_count; ++i) {
    DITRON_RETURN_IF_ERROR(checkGiven(source.modules[i].name, "the name of a module"));
    DITRON_RETURN_IF_ERROR(checkGiven(source.modules[i].text, "the text of a module"));
    const ditron_module_t &module = source.modules[i];
    result.imported.push_back({module.path ? module.path : module.name, module.text, module.name});
  }
  for (uint32_t i = 0; i < source.search_path_count; ++i) {
    DITRON_RETURN_IF_ERROR(checkGiven(source.search_paths[i], "a search path"));
    result.searchPaths.push_back(source.search_paths[i]);
  }
  return result;
}

Status checkKernel(const ditron_kernel *kernel) {
  DITRON_RETURN_IF_ERROR(checkGiven(kernel, "the kernel"));
  return kernel->context->checkThread();
}

Status giveVariant(const ditron_kernel &kernel, runtime::Kernel variant, std::string signature,
                   const LaunchChoice &choice, ditron_variant_h *result) {
  auto made = std::make_unique<ditron_variant>();
  made->context = kernel.context;
  made->origin = kernel.kernel;
  made->kernel = std::move(variant);
  made->signature = std::move(signature);
  made->options = choice.options;
  made->cooperative = choice.config.cooperative;
  DITRON_RETURN_IF_ERROR(made->load());
  *result = made.release();
  return Status::ok();
}

/// The tensors that the kernel's maps describe are those of the values.
Status launchWithTensorMaps(ditron_variant &variant, ditron_stream &stream, const runtime::LaunchConfig &config,
                            const void *const *values) {
  const Artifact &artifact = variant.kernel.artifact();
  runtime::Device &device = *stream.world->rank(stream.stream.rank()).device();
  runtime::PackedArguments arguments;
  std::vector<void *> all;
  for (size_t i = 0; i < artifact.parameters.size(); ++i) {
    arguments.add(values[i], artifact.parameters[i].bytes);
    all.push_back(const_cast<void *>(values[i]));
  }
  std::vector<runtime::TensorMap> maps;
  for (const ArtifactTensorMap &map : artifact.tensorMaps) {
    DITRON_ASSIGN_OR_RETURN(const runtime::TensorMapDescription description,
                            runtime::describeTensorMap(artifact, map, arguments));
    DITRON_ASSIGN_OR_RETURN(runtime::TensorMap encoded, device.encodeTensorMap(description));
    maps.push_back(encoded);
  }
  for (runtime::TensorMap &map : maps)
    all.push_back(map.bytes.data());
  all.push_back(nullptr); // the world view
  return stream.stream.launch(*variant.loaded[stream.stream.rank()], config, all.data(), all.size());
}

} // namespace

extern "C" {

ditron_status_t ditron_kernel_load(ditron_context_h context, const ditron_source_t *source, const char *name,
                                   ditron_kernel_h *kernel) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(checkGiven(name, "the name of the kernel"));
    DITRON_RETURN_IF_ERROR(checkGiven(kernel, "the place of the result"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    DITRON_ASSIGN_OR_RETURN(const compiler::KernelSource read, readSource(source));
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<KernelTemplate> found, context->state->load(read, name));
    *kernel = new ditron_kernel{context->state, std::move(found)};
    return Status::ok();
  });
}

ditron_status_t ditron_kernel_find(ditron_context_h context, const char *source, const char *name,
                                   ditron_kernel_h *kernel) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(checkGiven(name, "the name of the kernel"));
    DITRON_RETURN_IF_ERROR(checkGiven(kernel, "the place of the result"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<KernelTemplate> found, context->state->find(source ? source : "", name));
    *kernel = new ditron_kernel{context->state, std::move(found)};
    return Status::ok();
  });
}

void ditron_kernel_destroy(ditron_kernel_h kernel) { delete kernel; }

uint32_t ditron_kernel_parameter_count(ditron_kernel_h kernel) {
  return kernel ? static_cast<uint32_t>(kernel->kernel->parameterNames().size()) : 0;
}

const char *ditron_kernel_parameter_name(ditron_kernel_h kernel, uint32_t index) {
  return index < ditron_kernel_parameter_count(kernel) ? kernel->kernel->parameterNames()[index].c_str() : nullptr;
}

int ditron_kernel_parameter_is_constexpr(ditron_kernel_h kernel, uint32_t index) {
  const char *name = ditron_kernel_parameter_name(kernel, index);
  return name && kernel->kernel->isConstexpr(name);
}

ditron_status_t ditron_kernel_launch(ditron_kernel_h kernel, ditron_stream_h stream, const ditron_launch_t *launch,
                                     const ditron_argument_t *arguments, uint32_t count) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkKernel(kernel));
    DITRON_RETURN_IF_ERROR(checkHandle(stream, "stream"));
    DITRON_RETURN_IF_ERROR(checkTogether(*kernel->context, "kernel", *stream));
    DITRON_RETURN_IF_ERROR(checkGiven(launch, "the launch"));
    DITRON_ASSIGN_OR_RETURN(const LaunchChoice choice, readLaunch(launch));
    DITRON_ASSIGN_OR_RETURN(const CallArguments call, readArguments(arguments, count));
    DITRON_ASSIGN_OR_RETURN(const runtime::Specialisation variant, kernel->kernel->specialise(call, choice.options));
    return stream->stream.launch(variant.kernel, choice.config, variant.arguments);
  });
}

ditron_status_t ditron_kernel_specialise(ditron_kernel_h kernel, const ditron_launch_t *launch,
                                         const ditron_argument_t *arguments, uint32_t count,
                                         ditron_variant_h *variant) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkKernel(kernel));
    DITRON_RETURN_IF_ERROR(checkGiven(variant, "the place of the result"));
    DITRON_ASSIGN_OR_RETURN(const LaunchChoice choice, readLaunch(launch));
    DITRON_ASSIGN_OR_RETURN(const CallArguments call, readArguments(arguments, count));
    DITRON_ASSIGN_OR_RETURN(runtime::Specialisation made, kernel->kernel->specialise(call, choice.options));
    DITRON_ASSIGN_OR_RETURN(std::string signature, kernel->kernel->signatureOf(call));
    return giveVariant(*kernel, std::move(made.kernel), std::move(signature), choice, variant);
  });
}

ditron_status_t ditron_kernel_compile(ditron_kernel_h kernel, const ditron_launch_t *launch, const char *signature,
                                      ditron_variant_h *variant) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkKernel(kernel));
    DITRON_RETURN_IF_ERROR(checkGiven(signature, "the signature"));
    DITRON_RETURN_IF_ERROR(checkGiven(variant, "the place of the result"));
    DITRON_ASSIGN_OR_RETURN(const LaunchChoice choice, readLaunch(launch));
    DITRON_ASSIGN_OR_RETURN(runtime::Kernel made, kernel->kernel->compile(signature, choice.options));
    return giveVariant(*kernel, std::move(made), signature, choice, variant);
  });
}

void ditron_variant_destroy(ditron_variant_h variant) { delete variant; }

ditron_status_t ditron_variant_info(ditron_variant_h variant, ditron_variant_info_t *info) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(variant, "the variant"));
    const Artifact &artifact = variant->kernel.artifact();
    ditron_variant_info_t result = {};
    result.name = artifact.kernel.c_str();
    result.target = artifact.target.c_str();
    result.num_warps = artifact.numWarps;
    result.threads_per_block = variant->kernel.threadsPerBlock();
    result.shared_bytes = artifact.sharedBytes;
    result.parameter_count = static_cast<uint32_t>(artifact.parameters.size());
    return writeStruct(info, result, "ditron_variant_info_t");
  });
}

ditron_status_t ditron_variant_resources(ditron_variant_h variant, ditron_variant_resources_t *resources) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(variant, "the variant"));
    DITRON_RETURN_IF_ERROR(variant->context->checkThread());
    if (variant->world != variant->context->world()) {
      DITRON_RETURN_IF_ERROR(variant->load());
    }
    DITRON_ASSIGN_OR_RETURN(const runtime::KernelResources found,
                            variant->loaded[variant->world->localRanks().front()]->resources());
    ditron_variant_resources_t result = {};
    result.registers = found.registers;
    result.local_bytes = found.localBytes;
    return writeStruct(resources, result, "ditron_variant_resources_t");
  });
}

const char *ditron_variant_parameter_name(ditron_variant_h variant, uint32_t index) {
  const auto *parameters = variant ? &variant->kernel.artifact().parameters : nullptr;
  return parameters && index < parameters->size() ? (*parameters)[index].name.c_str() : nullptr;
}

const char *ditron_variant_parameter_type(ditron_variant_h variant, uint32_t index) {
  const auto *parameters = variant ? &variant->kernel.artifact().parameters : nullptr;
  return parameters && index < parameters->size() ? (*parameters)[index].type.c_str() : nullptr;
}

ditron_status_t ditron_variant_text(ditron_variant_h variant, const char *stage, const char **text) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(variant, "the variant"));
    DITRON_RETURN_IF_ERROR(checkGiven(stage, "the name of the stage"));
    DITRON_RETURN_IF_ERROR(checkGiven(text, "the place of the result"));
    auto found = variant->texts.find(stage);
    if (found == variant->texts.end()) {
      DITRON_ASSIGN_OR_RETURN(std::string made,
                              variant->origin->text(variant->kernel, variant->signature, variant->options, stage));
      found = variant->texts.emplace(stage, std::move(made)).first;
    }
    *text = found->second.c_str();
    return Status::ok();
  });
}

// No guard and no std::function: but for kernels with tensor maps nothing in here throws, and this is what a program calls a million times.
ditron_status_t ditron_variant_launch(ditron_variant_h variant, ditron_stream_h stream, const uint32_t grid[3],
                                      const void *const *values) {
  if (!variant || !stream)
    return report(invalidArgument(variant ? "the stream is null" : "the variant is null"));
  if (Status usable = checkUsable(*stream->context, stream->world, "stream"); !usable.isOk())
    return report(usable);
  if (variant->world != stream->world) {
    if (variant->context != stream->context)
      return report(invalidArgument("the variant and the stream are of different contexts"));
    if (ditron_status_t loaded = guarded([&] { return variant->load(); }); loaded != DITRON_OK)
      return loaded;
  }
  runtime::LaunchConfig config = {.grid = {grid[0], grid[1], grid[2]}, .cooperative = variant->cooperative};
  if (!grid[0] || !grid[1] || !grid[2])
    return DITRON_OK;
  if (!variant->kernel.artifact().tensorMaps.empty())
    return guarded([&] { return launchWithTensorMaps(*variant, *stream, config, values); });
  constexpr size_t usualValues = 64;
  std::array<void *, usualValues> few;
  std::vector<void *> many;
  void **all = few.data();
  const size_t count = variant->kernel.artifact().parameters.size() + 1; // with the world view
  if (count > usualValues) {
    many.resize(count);
    all = many.data();
  }
  for (size_t i = 0; i + 1 < count; ++i)
    all[i] = const_cast<void *>(values[i]);
  return report(stream->stream.launch(*variant->loaded[stream->stream.rank()], config, all, count));
}

} // extern "C"
