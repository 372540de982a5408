#include "runtime/tune/tune_cache.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/run/version.h"
#include "base/system/file.h"
#include "base/system/file_lock.h"

namespace fleetrun::runtime {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kMostBytes = 16 << 20;  // a result has about 5,000

constexpr std::array kThatMatter = {"model.",
                                    "data.batch_size",
                                    "data.loader_threads",
                                    "data.prefetch",
                                    "data.use_dali",
                                    "data.train.",
                                    "optimizer.name",
                                    "optimizer.gradient_clip",
                                    "optimizer.ema_decay",
                                    "strategy.",
                                    "train.threads",
                                    "train.global_batch",
                                    "env"};
constexpr std::array kThatDoNot = {"model.pretrained", "data.train.seed", "strategy.auto"};

template <std::size_t Size>
bool begins_with_one(const std::string& key, const std::array<const char*, Size>& names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return key.starts_with(name); });
}

std::string hash_of(const std::string& text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

// Variables of the ranks may be secrets, and the file is for anybody.
bool is_variable(const std::string& key) { return key.starts_with("env"); }

// The object "tuned" of the file.
JsonValue parse(const std::string& text, const std::string& path, const std::string& place) {
  const JsonDocument document = read_json(text);
  const JsonValue* const tuned = document.root.find("tuned", Kind::object);
  const JsonMember* const where = document.root.find("place");
  if (!document.problems.empty() || tuned == nullptr)
    throw Error(ErrorKind::data, fmt::format("{} is not a list of tuned jobs", path));
  if (where == nullptr || where->value.text != place)
    throw Error(ErrorKind::data,
                fmt::format("{} is not a list of tuned jobs: its place is not \"{}\"", path, place));
  return *tuned;
}

}  // namespace

std::string describe(const TuneKey& key) {
  std::string text =
      fmt::format("fleetrun={} ranks={} ranks_per_node={} threads={} amp={} memory={}", own_version(),
                  key.ranks, key.ranks_per_node, key.threads, key.amp, key.memory);
  for (const job::KeyValue& value : key.values)
    if (begins_with_one(value.key, kThatMatter) && !begins_with_one(value.key, kThatDoNot) &&
        !value.origin.starts_with("default"))
      text += fmt::format(" {}={}", value.key, is_variable(value.key) ? hash_of(value.value) : value.value);
  return text;
}

TuneCache::TuneCache(const std::string& folder, std::string place)
    : folder_(folder),
      place_(std::move(place)),
      path_(fmt::format("{}/tuned-{}.json", folder, hash_of(place_))) {}

std::optional<Tuned> TuneCache::read(const std::string& key) const {
  std::error_code none;
  if (!std::filesystem::exists(path_, none)) return std::nullopt;
  const JsonValue all = parse(read_file(path_, kMostBytes), path_, place_);
  const JsonValue* const found = all.find(hash_of(key), Kind::object);
  if (found == nullptr) return std::nullopt;
  const JsonMember* const job = found->find("job");
  if (job == nullptr || job->value.text != key) return std::nullopt;
  return parse_tuned(*found);
}

void TuneCache::write(const std::string& key, const Tuned& tuned) const {
  make_directories(folder_);
  const UniqueFd locked = lock_file(path_ + ".lock");
  JsonValue all = JsonValue::object();
  try {
    std::error_code none;
    if (std::filesystem::exists(path_, none)) all = parse(read_file(path_, kMostBytes), path_, place_);
  } catch (const Error&) {
    // The error was printed when the file was read; what is written now can be understood again.
  }
  JsonValue entry = as_json(tuned);
  entry.add("job", key);
  if (JsonMember* const known = all.find(hash_of(key)))
    known->value = std::move(entry);
  else
    all.add(hash_of(key), std::move(entry));
  replace_file(path_, to_json_lines(JsonValue::object({{"place", place_}, {"tuned", all}})));
}

}  // namespace fleetrun::runtime
