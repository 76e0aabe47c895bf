//===- CacheCommand.cpp - ditron cache --------------------------------------------------------------------------------===//
//
// Looks at the compiled kernels on disk, checks them, and makes room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/Command.h"

#include "ditron/cache/KernelStore.h"
#include "ditron/compiler/Identity.h"

#include <cstdio>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr const char *footer =
    R"(Compiled kernels are kept in DITRON_CACHE_DIR, else in $XDG_CACHE_HOME/ditron, else in ~/.cache/ditron. The folder must
belong to the user and be writable by nobody else, or it is ignored. DITRON_CACHE=0 does without, DITRON_CACHE_MB limits the
size. `ditron compile` always compiles; `run`, `bench` and the library look here first.)";

struct PruneArguments {
  uint64_t megabytes = 0;
  bool all = false;
  bool otherBuilds = false;
};

Expected<std::unique_ptr<cache::KernelStore>> openStore(const Knobs &knobs) {
  if (knobs.cacheDir.empty())
    return invalidArgument(
        "there is no cache: neither DITRON_CACHE_DIR, XDG_CACHE_HOME nor HOME is set to an absolute path");
  return cache::KernelStore::openExisting(knobs.cacheDir, static_cast<uint64_t>(knobs.cacheMegabytes) << 20);
}

/// An entry that this program would look for.
bool isOfThisBuild(const cache::Entry &entry) {
  return entry.compiler.starts_with(compiler::compilerIdentity(entry.artifact.target));
}

std::string formatBytes(uint64_t bytes) {
  return bytes < 10000 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} MB", static_cast<double>(bytes) / (1 << 20));
}

Status printPath(const Knobs &knobs) {
  Expected<std::unique_ptr<cache::KernelStore>> store = openStore(knobs);
  if (knobs.cacheDir.empty())
    return store.status();
  fmt::print("{}\n", knobs.cacheDir);
  // A folder that is not there yet is made when the first kernel is kept.
  if (!store.isOk() && store.status().code() != StatusCode::NotFound)
    return store.status();
  if (!knobs.cache)
    fmt::print(stderr, "note: not used, since DITRON_CACHE=0\n");
  return Status::ok();
}

Status list(const Knobs &knobs) {
  Expected<std::unique_ptr<cache::KernelStore>> store = openStore(knobs);
  if (!store.isOk() && store.status().code() == StatusCode::NotFound) {
    fmt::print("no kernels in {}\n", knobs.cacheDir);
    return Status::ok();
  }
  DITRON_RETURN_IF_ERROR(store.status());
  DITRON_ASSIGN_OR_RETURN(const std::vector<cache::StoredFile> files, (*store)->list());
  uint64_t total = 0, count = 0;
  for (const cache::StoredFile &file : files) {
    total += file.bytes;
    if (file.isTemporary)
      continue;
    ++count;
    const std::time_t used = std::chrono::system_clock::to_time_t(file.usedAt);
    Expected<cache::Entry> entry = (*store)->read(file);
    const std::string when = fmt::format("{:%Y-%m-%d %H:%M}", *std::localtime(&used));
    if (!entry.isOk())
      fmt::print("{}  {}  {:>9}  {}\n", file.name.substr(0, 12), when, formatBytes(file.bytes),
                 entry.status().message());
    else
      fmt::print("{}  {}  {:>9}  {} for {}, {} warps ({}){}\n", file.name.substr(0, 12), when, formatBytes(file.bytes),
                 entry->artifact.kernel, entry->artifact.target, entry->artifact.numWarps, entry->signature,
                 isOfThisBuild(*entry) ? "" : ", of another build of Ditron");
  }
  fmt::print("{} {} in {}: {} of {} MB\n", count, count == 1 ? "kernel" : "kernels", knobs.cacheDir, formatBytes(total),
             knobs.cacheMegabytes);
  return Status::ok();
}

/// Names the files that are no entries. They do no harm: the kernel is compiled again.
Status verify(const Knobs &knobs) {
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<cache::KernelStore> store, openStore(knobs));
  DITRON_ASSIGN_OR_RETURN(const std::vector<cache::StoredFile> files, store->list());
  uint64_t good = 0, bad = 0, unfinished = 0;
  for (const cache::StoredFile &file : files) {
    if (file.isTemporary) {
      ++unfinished;
      continue;
    }
    Expected<cache::Entry> entry = store->read(file);
    ++(entry.isOk() ? good : bad);
    if (!entry.isOk())
      fmt::print("{}/{}: {}\n", knobs.cacheDir, file.name, entry.status().message());
  }
  fmt::print("{} good, {} bad, {} being written\n", good, bad, unfinished);
  return bad == 0
             ? Status::ok()
             : invalidArgument(fmt::format("{} of the files cannot be used; `ditron cache prune` removes them", bad));
}

Status prune(const Knobs &knobs, const PruneArguments &arguments) {
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<cache::KernelStore> store, openStore(knobs));
  DITRON_ASSIGN_OR_RETURN(const std::vector<cache::StoredFile> files, store->list());
  uint64_t removedFiles = 0, removedBytes = 0;
  for (const cache::StoredFile &file : files) {
    if (file.isTemporary)
      continue;
    Expected<cache::Entry> entry = store->read(file);
    if (entry.isOk() && !(arguments.otherBuilds && !isOfThisBuild(*entry)))
      continue;
    DITRON_RETURN_IF_ERROR(store->remove(file));
    ++removedFiles;
    removedBytes += file.bytes;
  }
  const uint64_t most = arguments.all ? 0 : arguments.megabytes ? arguments.megabytes << 20 : store->limitBytes();
  DITRON_ASSIGN_OR_RETURN(const cache::PruneResult result, store->prune(most));
  fmt::print("removed {} ({}), kept {} ({})\n", removedFiles + result.removedFiles,
             formatBytes(removedBytes + result.removedBytes), result.keptFiles, formatBytes(result.keptBytes));
  return Status::ok();
}

} // namespace

void addCacheCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("cache", "Look at the compiled kernels kept on disk, check them, make room");
  command->require_subcommand(1);
  command->footer(footer);
  command->add_subcommand("path", "Print the folder")->callback([&context] {
    context.finish(printPath(context.knobs));
  });
  command->add_subcommand("ls", "List the kernels, the most recently used first")->callback([&context] {
    context.finish(list(context.knobs));
  });
  command->add_subcommand("verify", "Read every file and name those that cannot be used")->callback([&context] {
    context.finish(verify(context.knobs));
  });
  CLI::App *pruning = command->add_subcommand("prune", "Remove what cannot be used and what was used longest ago");
  auto arguments = std::make_shared<PruneArguments>();
  pruning->add_option("--mb", arguments->megabytes, "What the rest may take; default is DITRON_CACHE_MB")
      ->check(integerBetween(1, 1 << 20))
      ->type_name("MEGABYTES");
  pruning->add_flag("--other-builds", arguments->otherBuilds, "Remove what other builds of Ditron compiled, too");
  pruning->add_flag("--all", arguments->all, "Remove everything");
  pruning->callback([arguments, &context] { context.finish(prune(context.knobs, *arguments)); });
}

} // namespace ditron::tool
