#include "runtime/checkpoint/manifest.h"

#include <climits>

#include <fmt/format.h>
#include <xxhash.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"

namespace fleetrun::runtime {
namespace {

constexpr int kVersion = 1;
constexpr const char* kContent = "checkpoint";
constexpr const char* kChecksum = "xxh3_128";

std::string checksum_of(std::string_view content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

JsonValue merged_content(const MergedGradients& merged) {
  JsonValue content = JsonValue::object();
  content.add("batches", merged.batches);
  content.add("k_steps", merged.k_steps);
  content.add("scaling", merged.scaling);
  return content;
}

JsonValue improvement_content(const Improvement& improvement) {
  JsonValue content = JsonValue::object();
  if (improvement.best) content.add("best", as_json(*improvement.best));
  content.add("evaluations", improvement.evaluations);
  content.add("epoch", improvement.epoch);
  content.add("steps", improvement.steps);
  if (improvement.place > 0) content.add("place", improvement.place);
  return content;
}

JsonValue content_of(const Manifest& manifest) {
  JsonValue files = JsonValue::object();
  for (const auto& [name, facts] : manifest.files) {
    JsonValue file = JsonValue::object();
    file.add("bytes", facts.bytes);
    file.add(kChecksum, facts.checksum);
    files.add(name, std::move(file));
  }
  const TrainingState& state = manifest.state;
  JsonValue content = JsonValue::object();
  content.add("version", kVersion);
  content.add("steps", state.steps);
  content.add("epoch", state.epoch);
  content.add("batch", state.batch);
  content.add("world_size", state.world_size);
  content.add("batch_size", state.batch_size);
  content.add("seed", state.seed);
  content.add("model", state.model);
  content.add("optimizer", state.optimizer);
  if (state.samples > 0) content.add("samples", state.samples);
  if (state.shift != 0) content.add("shift", state.shift);
  if (state.global_batch > 0) content.add("global_batch", state.global_batch);
  for (const auto& [name, decay] : state.decays) content.add(name, decay);
  if (state.shuffle) content.add("shuffle", *state.shuffle);
  if (state.uneven) content.add("uneven", *state.uneven == job::Uneven::pad ? "pad" : "drop");
  if (state.sampler == job::Sampler::balanced) content.add("sampler", job::kBalanced);
  if (state.split) content.add("split", as_json(*state.split));
  if (state.best) content.add("best", as_json(*state.best));
  if (state.improvement.steps >= 0) content.add("improvement", improvement_content(state.improvement));
  if (state.merged.batches > 0) content.add("merged", merged_content(state.merged));
  content.add("files", std::move(files));
  return content;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  const JsonValue& member(const JsonValue& object, const char* key, JsonValue::Kind kind) const {
    const JsonMember* found = object.is(JsonValue::Kind::object) ? object.find(key) : nullptr;
    if (found == nullptr || !found->value.is(kind)) fail(fmt::format("it has no proper {}", key));
    return found->value;
  }

  std::string text(const JsonValue& object, const char* key) const {
    return member(object, key, JsonValue::Kind::text).text;
  }

  std::int64_t number(const JsonValue& object, const char* key, std::int64_t low, std::int64_t high) const {
    const std::int64_t value = member(object, key, JsonValue::Kind::integer).integer;
    if (value < low || value > high)
      fail(fmt::format("{} is {}, wanted a number from {} to {}", key, value, low, high));
    return value;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::data, fmt::format("{}: {}", path_, problem));
  }

 private:
  const std::string& path_;
};

MergedGradients read_merged(const JsonValue& content, const Reader& reader) {
  return {.batches = static_cast<int>(reader.number(content, "batches", 1, INT_MAX)),
          .k_steps = static_cast<int>(reader.number(content, "k_steps", 2, INT_MAX)),
          .scaling = reader.text(content, "scaling")};
}

ScoredEpoch read_best(const JsonValue& content, const Reader& reader) {
  const std::optional<ScoredEpoch> best =
      read_scored_epoch(reader.member(content, "best", JsonValue::Kind::object));
  if (!best) reader.fail("it has no proper best");
  return *best;
}

SplitFacts read_split(const JsonValue& content, const Reader& reader) {
  const std::optional<SplitFacts> split =
      read_split_facts(reader.member(content, "split", JsonValue::Kind::object));
  if (!split) reader.fail("it has no proper split");
  return *split;
}

Improvement read_improvement(const JsonValue& content, const Reader& reader) {
  Improvement improvement = {
      .evaluations = static_cast<int>(reader.number(content, "evaluations", 0, INT_MAX)),
      .epoch = static_cast<int>(reader.number(content, "epoch", 0, INT_MAX)),
      .steps = reader.number(content, "steps", 0, INT64_MAX)};
  if (content.find("place") != nullptr) improvement.place = reader.number(content, "place", 0, INT64_MAX);
  if (content.find("best") != nullptr) improvement.best = read_best(content, reader);
  return improvement;
}

std::map<std::string, double> read_decays(const JsonValue& content) {
  std::map<std::string, double> decays;
  for (const char* name : {"beta1", "beta2", "ema_decay"})
    if (const JsonMember* found = content.find(name)) decays[name] = found->value.number;
  return decays;
}

Manifest read_content(const JsonValue& content, const Reader& reader) {
  const auto count = [&](const char* key, int low) {
    return static_cast<int>(reader.number(content, key, low, INT_MAX));
  };
  Manifest manifest;
  manifest.state = {.steps = reader.number(content, "steps", 0, INT64_MAX),
                    .epoch = count("epoch", 0),
                    .batch = count("batch", 0),
                    .world_size = count("world_size", 1),
                    .batch_size = count("batch_size", 1),
                    .seed = reader.number(content, "seed", INT64_MIN, INT64_MAX),
                    .model = reader.text(content, "model"),
                    .optimizer = reader.text(content, "optimizer")};
  if (content.find("samples") != nullptr)
    manifest.state.samples = count("samples", 1);  // older ones have none
  if (content.find("shift") != nullptr)
    manifest.state.shift = reader.number(content, "shift", -INT64_MAX, INT64_MAX);
  if (content.find("global_batch") != nullptr) manifest.state.global_batch = count("global_batch", 1);
  manifest.state.decays = read_decays(content);
  if (content.find("shuffle") != nullptr)
    manifest.state.shuffle = reader.member(content, "shuffle", JsonValue::Kind::boolean).boolean;
  if (content.find("uneven") != nullptr)
    manifest.state.uneven = reader.text(content, "uneven") == "pad" ? job::Uneven::pad : job::Uneven::drop;
  if (content.find("sampler") != nullptr)
    manifest.state.sampler =
        reader.text(content, "sampler") == job::kBalanced ? job::Sampler::balanced : job::Sampler::all;
  if (content.find("split") != nullptr) manifest.state.split = read_split(content, reader);
  if (content.find("best") != nullptr) manifest.state.best = read_best(content, reader);
  if (content.find("improvement") != nullptr)
    manifest.state.improvement =
        read_improvement(reader.member(content, "improvement", JsonValue::Kind::object), reader);
  if (content.find("merged") != nullptr)
    manifest.state.merged = read_merged(reader.member(content, "merged", JsonValue::Kind::object), reader);
  for (const JsonMember& file : reader.member(content, "files", JsonValue::Kind::object).members)
    manifest.files[file.key] = {.bytes = reader.number(file.value, "bytes", 0, INT64_MAX),
                                .checksum = reader.text(file.value, kChecksum)};
  return manifest;
}

}  // namespace

FileFacts facts_of(std::string_view content) {
  return {static_cast<std::int64_t>(content.size()), checksum_of(content)};
}

std::string format_manifest(const Manifest& manifest) {
  JsonValue content = content_of(manifest);
  JsonValue whole = JsonValue::object();
  const std::string checksum = checksum_of(to_json(content));
  whole.add(kContent, std::move(content));
  whole.add(kChecksum, checksum);
  return to_json_lines(whole);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const Reader reader(path);
  const JsonDocument document = read_json(text);
  if (!document.problems.empty()) {
    const JsonProblem& problem = document.problems.front();
    reader.fail(fmt::format("line {}, column {}: {}", problem.position.line, problem.position.column,
                            problem.message));
  }
  const JsonValue& content = reader.member(document.root, kContent, JsonValue::Kind::object);
  const std::int64_t version = reader.number(content, "version", INT64_MIN, INT64_MAX);
  if (version > kVersion)
    throw Error(
        ErrorKind::protocol,
        fmt::format("{}: a checkpoint of version {}, this build reads version {}", path, version, kVersion),
        "a newer fleetrun wrote it and can read it");
  if (version != kVersion)
    reader.fail(fmt::format("a checkpoint of version {}, this build reads version {}", version, kVersion));
  const std::string found = checksum_of(to_json(content)), wanted = reader.text(document.root, kChecksum);
  if (found != wanted)
    reader.fail(fmt::format("its checksum is {}, it says {}: it was changed", found, wanted));
  return read_content(content, reader);
}

}  // namespace fleetrun::runtime
