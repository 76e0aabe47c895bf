//===- DiskCache.cpp - Compiled kernels of earlier processes ------------------------------------------------------------===//
//
// Keys, and the way between compilations and cache entries.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/jit/DiskCache.h"

#include "ditron/cache/Sha256.h"
#include "ditron/compiler/Compiler.h"
#include "ditron/compiler/Identity.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>

namespace ditron::jit {

namespace {

using Clock = std::chrono::steady_clock;

/// Processes that compile many kernels should not say the same many times.
void warnOnce(const std::string &reason) {
  static std::atomic_flag warned;
  if (!warned.test_and_set())
    fmt::print(stderr,
               "warning: compiled kernels are not kept: {} (DITRON_CACHE_DIR names another folder, DITRON_CACHE=0 does "
               "without)\n",
               reason);
}

void addTime(compiler::CompileReport &report, const char *name, Clock::time_point since) {
  const std::chrono::duration<double, std::milli> elapsed = Clock::now() - since;
  report.times.push_back({name, elapsed.count(), compiler::Phase::Cache});
}

/// Names the contents of a program or library that options point at.
std::string stampOf(const std::string &file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  const auto time = std::filesystem::last_write_time(file, error).time_since_epoch().count();
  return file.empty() || error ? "" : fmt::format("{} {}", size, time);
}

} // namespace

std::unique_ptr<DiskCache> DiskCache::open(const Knobs &knobs, std::string_view target) {
  if (!knobs.usesCache() || !knobs.dumpKernel.empty())
    return nullptr;
  Expected<std::unique_ptr<cache::KernelStore>> store =
      cache::KernelStore::open(knobs.cacheDir, static_cast<uint64_t>(knobs.cacheMegabytes) << 20);
  if (!store.isOk()) {
    warnOnce(store.status().message());
    return nullptr;
  }
  std::string identity = compiler::compilerIdentity(target);
  identity += fmt::format(", {}, {}", stampOf(knobs.ptxas), stampOf(knobs.libdevice));
  return std::unique_ptr<DiskCache>(new DiskCache(std::move(store).value(), std::move(identity)));
}

std::string DiskCache::keyOf(const VariantRequest &request) const {
  cache::Sha256 hash;
  // With the length before each part no two lists of parts give the same bytes.
  for (std::string_view part :
       {std::string_view(identity), std::string_view(request.source.path), std::string_view(request.source.text),
        std::string_view(request.kernel), std::string_view(request.signature)})
    hash.add(fmt::format("{}:{}", part.size(), part));
  for (const SourceText &file : request.source.imported)
    for (std::string_view part : {std::string_view(file.module), std::string_view(file.path), std::string_view(file.text)})
      hash.add(fmt::format("{}:{}", part.size(), part));
  for (const auto *settings : {&request.source.defines, &request.source.environment}) {
    hash.add(fmt::format("{}:", settings->size()));
    for (const auto &[name, value] : *settings)
      hash.add(fmt::format("{}:{}{}:{}", name.size(), name, value.size(), value));
  }
  hash.add(request.options.key());
  return hash.finish();
}

std::optional<Artifact> DiskCache::find(const VariantRequest &request, compiler::CompileReport &report) {
  const auto start = Clock::now();
  std::optional<cache::Entry> entry = store->find(keyOf(request));
  addTime(report, "lookup", start);
  if (!entry)
    return std::nullopt;
  report.isFromCache = true;
  report.messages += entry->messages;
  report.printed += entry->printed;
  return std::move(entry->artifact);
}

void DiskCache::keep(const VariantRequest &request, const Artifact &artifact, compiler::CompileReport &report) {
  const auto start = Clock::now();
  cache::Entry entry;
  entry.key = keyOf(request);
  entry.compiler = identity;
  entry.signature = request.signature;
  entry.options = request.options.key();
  entry.messages = report.messages;
  entry.printed = report.printed;
  entry.artifact = artifact;
  if (Status kept = store->keep(entry); !kept.isOk())
    warnOnce(kept.message());
  addTime(report, "keeping", start);
}

Expected<Artifact> findOrCompile(DiskCache *cache, const VariantRequest &request,
                                 const frontend::KernelSignature &signature, compiler::CompileReport &report) {
  if (std::optional<Artifact> found = cache ? cache->find(request, report) : std::nullopt)
    return std::move(*found);
  Expected<Artifact> artifact =
      compiler::compileKernel(request.source, request.kernel, signature, request.options, &report);
  if (cache && artifact.isOk())
    cache->keep(request, *artifact, report);
  return artifact;
}

} // namespace ditron::jit
