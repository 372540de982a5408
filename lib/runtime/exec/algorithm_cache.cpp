#include "runtime/exec/algorithm_cache.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/system/file.h"
#include "base/system/file_lock.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kMostBytes = 16 << 20;  // some 80,000 problems; a network has a hundred

Choices parse(const std::string& text, const std::string& path, const std::string& place) {
  const auto refuse = [&](const std::string& what) {
    return Error(ErrorKind::data, fmt::format("{} is not a list of algorithms: {}", path, what));
  };
  const JsonDocument document = read_json(text);
  if (!document.problems.empty())
    throw refuse(
        fmt::format("line {}: {}", document.problems[0].position.line, document.problems[0].message));
  const JsonMember* const where = document.root.find("place");
  if (where == nullptr || where->value.text != place)
    throw refuse(fmt::format("its place is not \"{}\"", place));
  const JsonMember* const algorithms = document.root.find("algorithms");
  if (algorithms == nullptr || !algorithms->value.is(JsonValue::Kind::object)) throw refuse("it has none");
  Choices choices;
  for (const JsonMember& choice : algorithms->value.members) {
    if (!choice.value.is(JsonValue::Kind::text)) throw refuse("an algorithm is not a text");
    choices[choice.key] = choice.value.text;
  }
  return choices;
}

std::string print(const Choices& choices, const std::string& place) {
  JsonValue algorithms = JsonValue::object();
  for (const auto& [problem, algorithm] : choices) algorithms.add(problem, algorithm);
  JsonValue root = JsonValue::object();
  root.add("place", place);
  root.add("algorithms", std::move(algorithms));
  return to_json_lines(root);
}

}  // namespace

std::string cache_folder(const Environment& environment) {
  if (std::string own = environment.get_or("FLEETRUN_CACHE_DIR", ""); !own.empty()) return own;
  const std::string cache = environment.get_or("XDG_CACHE_HOME", "");
  if (cache.starts_with('/')) return cache + "/fleetrun";  // the specification has relative ones ignored
  const std::string home = environment.get_or("HOME", "");
  if (home.empty())
    throw Error(ErrorKind::config, "none of FLEETRUN_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder");
  std::error_code problem;
  if (!std::filesystem::is_directory(home, problem))
    throw Error(ErrorKind::config, fmt::format("HOME is {}, which is not a folder", home),
                "FLEETRUN_CACHE_DIR names another folder");
  return home + "/.cache/fleetrun";
}

AlgorithmCache::AlgorithmCache(const std::string& folder, std::string place)
    : folder_(folder),
      place_(std::move(place)),
      path_(fmt::format("{}/algorithms-{:016x}.json", folder, XXH3_64bits(place_.data(), place_.size()))) {}

Choices AlgorithmCache::read() const {
  std::error_code none;
  if (!std::filesystem::exists(path_, none)) return {};
  return parse(read_file(path_, kMostBytes), path_, place_);
}

Choices AlgorithmCache::add(const Choices& choices) const {
  make_directories(folder_);
  const UniqueFd locked = lock_file(path_ + ".lock");
  Choices known;
  try {
    known = read();
  } catch (const Error&) {
    // It was told when it was read first; what is written now can be understood again.
  }
  const std::size_t before = known.size();
  known.insert(choices.begin(), choices.end());
  if (known.size() != before) replace_file(path_, print(known, place_));
  return known;
}

}  // namespace fleetrun::runtime
