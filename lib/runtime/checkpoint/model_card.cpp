#include "runtime/checkpoint/model_card.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/json/json_value.h"
#include "base/run/version.h"
#include "base/text/printable.h"
#include "job/keys/job_keys.h"
#include "job/parse_job.h"
#include "job/spec/data_set_facts.h"
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime {
namespace {

using job::ModelName;

constexpr int kFormat = 1;  // of the keys below
constexpr const char *kFormatKey = "fleetrun.format", *kVersionKey = "fleetrun.version";
constexpr const char *kNames = "class_names", *kDType = "train.dtype", *kAlgorithms = "algorithms",
                     *kSplit = "data.split";
constexpr std::array kRequired = {"model.name", "model.class_dim", "model.input_shape",
                                  "data.mean",  "data.std",        "data.augment"};
constexpr std::size_t kShownText = 40, kShownNames = 100;  // bytes
constexpr const char* kFromJob = "--job JOB.json takes it from the job of the training";

bool is_narrow(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

JsonValue parsed(const std::string& text) {
  const JsonDocument document = read_json(text);
  return document.problems.empty() ? document.root : JsonValue(text);
}

// The keys of a job that the metadata has, as the text of a job file.
std::string job_text_of(const Metadata& metadata) {
  const JsonValue shape = parsed(metadata.at("model.input_shape"));
  JsonValue model = JsonValue::object({{"name", metadata.at("model.name")},
                                       {"class_dim", parsed(metadata.at("model.class_dim"))},
                                       {"input_shape", shape}});
  if (const auto hidden = metadata.find("model.hidden"); hidden != metadata.end())
    model.add("hidden", parsed(hidden->second));
  const JsonValue train = JsonValue::object({{"format", "synthetic"},
                                             {"samples", 1},
                                             {"shape", shape},
                                             {"classes", parsed(metadata.at("model.class_dim"))},
                                             {"mean", parsed(metadata.at("data.mean"))},
                                             {"std", parsed(metadata.at("data.std"))},
                                             {"augment", metadata.at("data.augment")}});
  return to_json(JsonValue::object({{"model", model}, {"data", JsonValue::object({{"train", train}})}}));
}

// Of a key that need not be there.
std::string text_or(const Metadata& metadata, const char* key, const char* otherwise) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? otherwise : found->second;
}

[[noreturn]] void tell_damage(const std::string& path, std::string_view problem) {
  throw Error(ErrorKind::data, fmt::format("the metadata of {} are damaged: {}", path, problem), kFromJob);
}

[[noreturn]] void tell_damage(const std::string& path, const char* key, std::string_view found,
                              std::string_view wanted) {
  tell_damage(path, fmt::format("{}: found {}, wanted {}", key, shortened_quote(found, kShownText), wanted));
}

bool is_text(const JsonValue& value) { return value.is(JsonValue::Kind::text); }

std::vector<std::string> read_names(const Metadata& metadata, int classes, const std::string& path) {
  const std::string text = text_or(metadata, kNames, "[]");
  const JsonValue list = parsed(text);
  std::vector<std::string> names;
  for (const JsonValue& name : list.items) names.push_back(name.text);
  const std::set<std::string> different(names.begin(), names.end());
  if (!list.is(JsonValue::Kind::list) || !std::ranges::all_of(list.items, is_text) ||
      different.size() < names.size() || names.size() > static_cast<std::size_t>(classes))
    tell_damage(path, kNames, text, fmt::format("a list of different names, at most {}", classes));
  return names;
}

std::map<std::string, std::string> read_algorithms(const Metadata& metadata, const std::string& path) {
  const std::string text = text_or(metadata, kAlgorithms, "{}");
  const JsonValue object = parsed(text);
  if (!object.is(JsonValue::Kind::object) ||
      !std::ranges::all_of(object.members, is_text, &JsonMember::value))
    tell_damage(path, kAlgorithms, text, "an object of strings");
  std::map<std::string, std::string> algorithms;
  for (const JsonMember& choice : object.members) algorithms[choice.key] = choice.value.text;
  return algorithms;
}

DType read_dtype(const Metadata& metadata, const std::string& path) {
  const std::string text = text_or(metadata, kDType, "f32");
  const std::optional<DType> dtype = parse_dtype(text);
  if (dtype == DType::f32 || (dtype && is_narrow(*dtype))) return *dtype;
  tell_damage(path, kDType, text, R"(one of "f32", "f16", "bf16")");
}

std::optional<SplitFacts> read_split(const Metadata& metadata, const std::string& path) {
  if (!metadata.contains(kSplit)) return std::nullopt;
  const std::string& text = metadata.at(kSplit);
  std::optional<SplitFacts> split = read_split_facts(parsed(text));
  if (!split) tell_damage(path, kSplit, text, "an object with share, seed, train, evaluation and digest");
  return split;
}

void check_format(const Metadata& metadata, const std::string& path) {
  const std::string text = text_or(metadata, kFormatKey, "1");
  const JsonValue format = parsed(text);
  if (!format.is(JsonValue::Kind::integer) || format.integer < 1)
    tell_damage(path, kFormatKey, text, "a whole number of at least 1");
  if (format.integer > kFormat)
    throw Error(ErrorKind::protocol,
                fmt::format("{} has metadata of format {}, and this fleetrun reads up to format {}", path,
                            format.integer, kFormat),
                fmt::format("it was written by fleetrun {}", text_or(metadata, kVersionKey, "?")));
}

void check_complete(const Metadata& metadata, const std::string& path) {
  std::vector<std::string> missing;
  std::ranges::copy_if(kRequired, std::back_inserter(missing),
                       [&](const char* key) { return !metadata.contains(key); });
  if (missing.empty()) return;
  const bool is_bare = missing.size() == kRequired.size();
  throw Error(
      ErrorKind::data,
      fmt::format("{} has {}", path,
                  is_bare ? "weights only: its metadata does not say of which model they are, of which "
                            "classes, and how images are prepared"
                          : fmt::format("no metadata for {}", fmt::join(missing, ", "))),
      kFromJob);
}

job::JobSpec parse_keys(const Metadata& metadata, const std::string& path) {
  try {
    return job::parse_job_text(job_text_of(metadata), path, {}).spec;
  } catch (const Error& problem) {
    tell_damage(path, problem.message());
  }
}

// Between grey and colour images, the value of the grey channel counts for each colour.
bool is_same_scale(const std::vector<double>& one, const std::vector<double>& other) {
  if (one.size() == other.size()) return one == other;
  const std::vector<double>&few = one.size() < other.size() ? one : other, &many = &few == &one ? other : one;
  return few.size() == 1 && std::ranges::count(many, few.front()) == std::ssize(many);
}

}  // namespace

ModelCard make_model_card(const job::JobSpec& job, const ModelFacts& facts,
                          const std::vector<std::string>& class_names) {
  const job::DataSetSpec& set = job.data.test ? *job.data.test : job.data.train;
  return {.model = {.name = job.model.name,
                    .class_dim = facts.classes,
                    .input_shape = facts.input_shape,
                    .hidden = job.model.hidden},
          .class_names = class_names,
          .augment = job::without_chance(set.augment),
          .mean = set.mean,
          .deviation = set.deviation,
          .version = own_version()};
}

void add_facts_of_programs(ModelCard& card, const Program& training, const Program& evaluation) {
  for (const Op& op : training.ops)
    if (op.type == "conv2d" || op.type == "fc")
      if (const DType dtype = training.value(op.inputs.front()).dtype; is_narrow(dtype)) card.dtype = dtype;
  for (const Op& op : evaluation.ops)
    if (const auto algorithm = op.attributes.find(kAlgorithm); algorithm != op.attributes.end())
      card.algorithms[evaluation.value(op.outputs.front()).name] = std::get<std::string>(algorithm->second);
}

Metadata to_metadata(const ModelCard& card) {
  job::JobSpec job;
  job.model = card.model;
  job.data.train.augment = card.augment;
  const auto text = [](const auto& values) { return to_json(JsonValue(values)); };
  const auto& [channels, height, width] = *card.model.input_shape;
  Metadata metadata = {{kFormatKey, std::to_string(kFormat)},
                       {kVersionKey, card.version},
                       {"model.name", job::value_text(job, "model.name")},
                       {"model.class_dim", std::to_string(*card.model.class_dim)},
                       {"model.input_shape", text(std::vector<int>{channels, height, width})},
                       {"data.mean", text(card.mean)},
                       {"data.std", text(card.deviation)},
                       {"data.augment", job::value_text(job, "data.train.augment")},
                       {kDType, std::string(describe(card.dtype))}};
  if (card.model.name == ModelName::mlp) metadata["model.hidden"] = text(card.model.hidden);
  if (!card.class_names.empty()) metadata[kNames] = text(card.class_names);
  if (card.split) metadata[kSplit] = to_json(as_json(*card.split));
  if (card.lacks_averages) metadata[kWeightsOfStep] = "without averaging";
  if (card.algorithms.empty()) return metadata;
  JsonValue algorithms = JsonValue::object();
  for (const auto& [weight, algorithm] : card.algorithms) algorithms.add(weight, algorithm);
  metadata[kAlgorithms] = to_json(algorithms);
  return metadata;
}

ModelCard read_model_card(const Metadata& metadata, const std::string& path) {
  check_format(metadata, path);
  check_complete(metadata, path);
  const job::JobSpec job = parse_keys(metadata, path);
  const job::DataSetSpec& set = job.data.train;
  return {.model = job.model,
          .class_names = read_names(metadata, *job.model.class_dim, path),
          .augment = job::without_chance(set.augment),
          .mean = set.mean,
          .deviation = set.deviation,
          .dtype = read_dtype(metadata, path),
          .algorithms = read_algorithms(metadata, path),
          .split = read_split(metadata, path),
          .lacks_averages = metadata.contains(kWeightsOfStep),
          .version = text_or(metadata, kVersionKey, "?")};
}

std::string warning_about_averages(const ModelCard& card, const std::string& path) {
  if (!card.lacks_averages) return "";
  return fmt::format(
      "warning: {} has the weights of one step, and the training evaluated moving averages (optimizer.ema_evaluate): "
      "scores differ from those of the training; model.safetensors and best.safetensors in its output.dir have the averages",
      path);
}

std::string_view set_of_card(const job::JobSpec& job) { return job.data.test ? "data.test" : "data.train"; }

std::vector<std::string> differences_of_scale(const ModelCard& was, const ModelCard& now,
                                              std::string_view set, std::string_view when) {
  std::vector<std::string> lines;
  const auto compare = [&](const char* key, const std::vector<double>& before,
                           const std::vector<double>& value) {
    if (!is_same_scale(before, value))
      lines.push_back(fmt::format("warning: {}.{} is [{}], and was [{}] {}", set, key, fmt::join(value, ", "),
                                  fmt::join(before, ", "), when));
  };
  compare("mean", was.mean, now.mean);
  compare("std", was.deviation, now.deviation);
  return lines;
}

std::vector<std::string> differences_of_pixels(const ModelCard& was, const ModelCard& now,
                                               std::string_view set, std::string_view when) {
  std::vector<std::string> lines = differences_of_scale(was, now, set, when);
  const auto [channels, height, width] = *was.model.input_shape;
  const auto [now_channels, now_height, now_width] = *now.model.input_shape;
  if (height != now_height || width != now_width)
    lines.insert(lines.begin(), fmt::format("warning: the images of {} are {}x{} pixels, and were {}x{} {}",
                                            set, now_width, now_height, width, height, when));
  return lines;
}

std::string difference_of_classes(const Metadata& was, const ModelCard& now) {
  const Metadata here = to_metadata(now);
  const auto names_in = [](const Metadata& metadata) { return text_or(metadata, kNames, ""); };
  const bool differ = !names_in(was).empty() && !names_in(here).empty() && names_in(was) != names_in(here);
  if (!differ || text_or(was, "model.class_dim", "") != text_or(here, "model.class_dim", "")) return "";
  return fmt::format(
      "warning: model.pretrained was trained for the classes {}, and data.train has {}: the last layer starts from the weights for those",
      printable_start(names_in(was), kShownNames), printable_start(names_in(here), kShownNames));
}

std::string difference_of_split(const Metadata& was, const ModelCard& now) {
  const auto then = was.contains(kSplit) ? read_split_facts(parsed(was.at(kSplit))) : std::nullopt;
  if (!then || !now.split || now.split->share == 0) return "";
  const std::string difference = difference_of(*then, *now.split);
  const bool has_same_names =
      !now.class_names.empty() && text_or(was, kNames, "") == to_metadata(now).at(kNames);
  const bool may_be_the_same =
      has_same_names || then->train + then->evaluation == now.split->train + now.split->evaluation;
  if (difference.empty() || !may_be_the_same) return "";
  const std::string keys = keys_that_differ(*then, *now.split);
  return fmt::format(
      "warning: model.pretrained was trained {}: it may be evaluated here on samples that it was trained on{}",
      difference, keys.empty() ? "" : fmt::format("; {} sets aside the same samples as then", keys));
}

}  // namespace fleetrun::runtime
