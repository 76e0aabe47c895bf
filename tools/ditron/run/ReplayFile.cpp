//===- ReplayFile.cpp - A failed run, to be repeated ------------------------------------------------------------------===//

#include "run/ReplayFile.h"

#include "ditron/cache/Sha256.h"
#include "ditron/compiler/KernelInterface.h"
#include "ditron/support/OutputFile.h"
#include "ditron/support/Suggest.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <span>

namespace ditron::tool {

namespace {

using Json = nlohmann::ordered_json;
constexpr int currentVersion = 1;

std::string hashOf(std::string_view text) {
  cache::Sha256 hash;
  hash.add(text);
  return hash.finish();
}

/// The object's members are these, and of these types.
Status checkMembers(const Json &object) {
  struct Member {
    const char *name;
    bool isRight;
  };
  const auto has = [&](const char *name, auto test) { return object.contains(name) && test(object.at(name)); };
  const auto isTexts = [](const Json &value) {
    return value.is_array() && std::ranges::all_of(value, [](const Json &word) { return word.is_string(); });
  };
  const auto isHashes = [](const Json &value) {
    return value.is_object() && std::ranges::all_of(value, [](const Json &hash) { return hash.is_string(); });
  };
  const Member members[] = {
      {"ditron_replay", has("ditron_replay", [](const Json &value) { return value == currentVersion; })},
      {"command", has("command", isTexts)},
      {"schedule", has("schedule", [](const Json &value) { return value.is_object(); })},
      {"files", has("files", isHashes)},
      {"failure", has("failure", [](const Json &value) { return value.is_string(); })}};
  std::vector<std::string> names;
  for (const Member &member : members) {
    names.push_back(member.name);
    if (!member.isRight)
      return invalidArgument(object.contains(member.name) ? fmt::format("{} is {}, which this version does not read",
                                                                        member.name, object.at(member.name).dump())
                                                          : fmt::format("{} is missing", member.name));
  }
  names.emplace_back("reference");
  for (const auto &[name, value] : object.items())
    if (std::ranges::find(names, name) == names.end())
      return invalidArgument(fmt::format("'{}' is no part of a replay file{}", name, didYouMean(name, names)));
  return Status::ok();
}

} // namespace

void addFile(Replay &replay, const std::string &path, std::string_view text) { replay.files[path] = hashOf(text); }

void addFiles(Replay &replay, const compiler::KernelSource &source) {
  addFile(replay, source.path, source.text);
  for (const auto &imported : compiler::readImports(source).imported)
    addFile(replay, imported.path, imported.text);
}

Status writeReplay(const Replay &replay, const std::string &path) {
  Json object = {{"ditron_replay", currentVersion},
                 {"command", replay.command},
                 {"schedule", Json::parse(replay.schedule.toJson())},
                 {"files", replay.files},
                 {"failure", replay.failure}};
  if (replay.reference)
    object["reference"] = Json::parse(replay.reference->toJson());
  const std::string text = object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  DITRON_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  DITRON_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(text))));
  DITRON_RETURN_IF_ERROR(file.complete());
  return file.commit();
}

Expected<Replay> readReplay(const std::string &path) {
  DITRON_ASSIGN_OR_RETURN(const compiler::KernelSource text, compiler::KernelSource::read(path));
  const Json object = Json::parse(text.text, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&](const std::string &what) {
    return invalidArgument(fmt::format("{} is no replay file: {}", path, what));
  };
  if (!object.is_object())
    return wrong("not a JSON object");
  if (const Status members = checkMembers(object); !members.isOk())
    return wrong(members.message());
  Replay replay;
  replay.command = object.at("command").get<std::vector<std::string>>();
  replay.files = object.at("files").get<std::map<std::string, std::string>>();
  replay.failure = object.at("failure").get<std::string>();
  for (const char *name : {"schedule", "reference"}) {
    if (!object.contains(name))
      continue;
    Expected<sim::Schedule> schedule = sim::Schedule::fromJson(object.at(name).dump());
    if (!schedule.isOk())
      return wrong(schedule.status().message());
    if (std::string_view(name) == "schedule")
      replay.schedule = *schedule;
    else
      replay.reference = *schedule;
  }
  if (replay.command.empty() || replay.command.front() != "run")
    return wrong("its command is not `run`");
  for (const auto &[file, hash] : replay.files) {
    DITRON_ASSIGN_OR_RETURN(const compiler::KernelSource now, compiler::KernelSource::read(file));
    if (hashOf(now.text) != hash)
      return invalidArgument(
          fmt::format("{}: {} has changed since; explore again: the schedule may not fail any more", path, file));
  }
  return replay;
}

std::vector<std::string> wordsToReplay(const std::vector<std::string> &words) {
  std::vector<std::string> kept;
  constexpr std::string_view withValue[] = {"--explore", "--replay-file", "--seed"};
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--results-may-differ")
      continue;
    const auto *const named = std::ranges::find_if(withValue, [&](std::string_view name) {
      return word == name || (word.starts_with(name) && word[name.size()] == '=');
    });
    if (named == std::end(withValue))
      kept.emplace_back(word);
    else if (word == *named)
      ++i;
  }
  return kept;
}

} // namespace ditron::tool
