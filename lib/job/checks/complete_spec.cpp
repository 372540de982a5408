#include "job/checks/complete_spec.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/plural.h"
#include "job/checks/check_class_balance.h"
#include "job/checks/check_dgc.h"
#include "job/checks/check_evaluation.h"
#include "job/checks/check_local_training.h"
#include "job/checks/check_optimizer.h"
#include "job/checks/check_pipeline.h"
#include "job/spec/data_set_facts.h"

namespace fleetrun::job {
namespace {

constexpr double kNoMean = 0;        // taken from a pixel
constexpr double kWholeRange = 255;  // divides a pixel, so that 0..255 becomes 0..1
constexpr int kIdxChannels = 1;      // LeCun's format holds grey images

struct NamedSet {
  std::string path;  // "data.train"
  const DataSetSpec* set;
};

// The data sets whose own keys are all right.
std::vector<NamedSet> data_sets(const Draft& draft) {
  std::vector<NamedSet> sets;
  if (draft.has("data.train") && !draft.has_problem("data.train"))
    sets.push_back({"data.train", &draft.spec.data.train});
  if (draft.has("data.test") && !draft.has_problem("data.test"))
    sets.push_back({"data.test", &*draft.spec.data.test});
  return sets;
}

// A shorter training than the file was written for: what the file says about later steps is not a mistake then.
bool was_shortened(const std::string& path, const Draft& draft) {
  return draft.on_command_line("train.max_steps") && !draft.on_command_line(path);
}

void check_warmup(const ScheduleSpec& rate, Draft& draft) {
  const std::string path = "optimizer.learning_rate.warmup_steps";
  const auto& max_steps = draft.spec.train.max_steps;
  if (!draft.has(path) || !max_steps || rate.warmup_steps < *max_steps) return;
  if (was_shortened(path, draft))
    draft.notes.push_back(
        fmt::format("{} is {}: the training ends before, after the {} steps of the command line", path,
                    rate.warmup_steps, *max_steps));
  else
    draft.report(path, fmt::format("{}, wanted fewer than train.max_steps, which is {}", rate.warmup_steps,
                                   *max_steps));
}

void check_schedule(Draft& draft) {
  if (draft.has_problem("optimizer.learning_rate")) return;
  const ScheduleSpec& rate = draft.spec.optimizer.learning_rate;
  const std::string boundaries = "optimizer.learning_rate.boundaries";
  const std::string values = "optimizer.learning_rate.values";
  if (draft.has(boundaries) && draft.has(values) && rate.values.size() != rate.boundaries.size() + 1)
    draft.report(values, fmt::format("a list of {}, wanted {}: one more than boundaries, which has {}",
                                     rate.values.size(), rate.boundaries.size() + 1, rate.boundaries.size()));
  const auto unordered =
      std::adjacent_find(rate.boundaries.begin(), rate.boundaries.end(), std::greater_equal<>());
  if (draft.has(boundaries) && unordered != rate.boundaries.end())
    draft.report(boundaries,
                 fmt::format("{} after {}, wanted ascending numbers", *(unordered + 1), *unordered));
  check_warmup(rate, draft);
  const std::string end = "optimizer.learning_rate.end";
  if (draft.has(end) && rate.end >= rate.base)
    draft.report(end, fmt::format("{}, wanted less than optimizer.learning_rate.base, which is {}", rate.end,
                                  rate.base));
}

void check_channels(const NamedSet& named, Draft& draft) {
  const int channels = channels_of(*named.set);
  const auto check = [&](const std::string& key, const std::vector<double>& list) {
    if (draft.has(named.path + key) && list.size() != static_cast<std::size_t>(channels))
      draft.report(named.path + key, fmt::format("a list of {}, wanted {}: the samples have {}", list.size(),
                                                 channels, plural(channels, "channel")));
  };
  check(".mean", named.set->mean);
  check(".std", named.set->deviation);
  if (draft.has(named.path + ".channels") && !is_colour_or_grey(channels))
    draft.report(named.path + ".channels", fmt::format("{}, wanted {}", channels, kColourOrGrey));
}

void check_generated_shape(const NamedSet& named, Draft& draft) {
  if (named.set->format != DataFormat::synthetic) return;
  const auto& [channels, height, width] = named.set->shape;
  const std::string key = named.path + ".shape";
  if (!is_colour_or_grey(channels))
    draft.report(key, fmt::format("{}, wanted {}", plural(channels, "channel"), kColourOrGrey));
  else if (width > kMostPixels / height)
    draft.report(key, fmt::format("{}x{} pixels, wanted at most {}", width, height, kMostPixels));
}

void check_classes(const NamedSet& named, Draft& draft) {
  const auto classes = known_classes(*named.set);
  const auto& class_dim = draft.spec.model.class_dim;
  if (!classes || !class_dim || !draft.has("model.class_dim") || *class_dim >= *classes) return;
  draft.report("model.class_dim", fmt::format("{}, wanted at least {}: {} has {} classes", *class_dim,
                                              *classes, named.path, *classes));
}

void check_shape(const NamedSet& named, Draft& draft) {
  const auto& wanted = draft.spec.model.input_shape;
  if (!wanted) return;
  const auto shape = known_shape(*named.set);
  if (shape && *shape != *wanted)
    draft.report("model.input_shape",
                 fmt::format("[{}], wanted [{}]: the samples of {} have that shape", fmt::join(*wanted, ", "),
                             fmt::join(*shape, ", "), named.path));
  else if (!shape && (*wanted)[0] != channels_of(*named.set))
    draft.report("model.input_shape", fmt::format("{} channels, wanted {} as {} has", (*wanted)[0],
                                                  channels_of(*named.set), named.path));
}

void check_test_set(const std::vector<NamedSet>& sets, Draft& draft) {
  if (sets.size() < 2) {
    if (draft.has("train.eval_every") && draft.spec.train.eval_every > 0 && !draft.has("data.test") &&
        !draft.has("data.split"))
      draft.notes.push_back("train.eval_every has no effect without data.test or data.split");
    return;
  }
  const DataSetSpec& train = *sets[0].set;
  const DataSetSpec& test = *sets[1].set;
  const auto train_classes = known_classes(train);
  const auto test_classes = known_classes(test);
  if (channels_of(train) != channels_of(test))
    draft.report("data.test", fmt::format("samples with {}, wanted {} as data.train has",
                                          plural(channels_of(test), "channel"), channels_of(train)));
  if (train_classes && test_classes && *test_classes > *train_classes)
    draft.report("data.test", fmt::format("{} classes, wanted at most {} as data.train has", *test_classes,
                                          *train_classes));
}

void check_decoder(const std::vector<NamedSet>& sets, Draft& draft) {
  if (!draft.has("data.use_dali") || !draft.spec.data.use_dali) return;
  const auto has_files = [](const NamedSet& named) { return has_image_files(*named.set); };
  if (!sets.empty() && std::ranges::none_of(sets, has_files))
    draft.notes.push_back(
        "data.use_dali has no effect: only image_folder and image_list have files to decode");
}

void check_split(Draft& draft) {
  if (draft.has("data.split") && draft.has("data.test"))
    draft.report("data.split",
                 fmt::format("{} beside data.test, wanted one of the two (data.test=null drops data.test)",
                             draft.spec.data.split.value_or(0)));
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char letter) { return std::isalnum(letter) != 0 || letter == '_'; });
}

void check_env(Draft& draft) {
  for (const auto& [name, value] : draft.spec.env) {
    const std::string path = child_path("env", name);
    if (!is_variable_name(name)) draft.report(path, "no name of a variable, wanted letters, digits and _");
    if (name.starts_with("FLEETRUN_"))
      draft.report(
          path,
          "a reserved name, wanted one that does not begin with FLEETRUN_; set this one in fleetrun's own environment");
  }
}

void check_trace(Draft& draft) {
  const auto& steps = draft.spec.output.trace;
  if (!steps || !draft.has("output.trace") || draft.has_problem("output.trace")) return;
  const auto& [first, last] = *steps;
  const auto& max_steps = draft.spec.train.max_steps;
  if (last < first)
    draft.report("output.trace", fmt::format("{} after {}, wanted ascending numbers", last, first));
  else if (max_steps && first > *max_steps && was_shortened("output.trace", draft))
    draft.notes.push_back(fmt::format(
        "output.trace begins at step {}: the training ends before, after the {} steps of the command line",
        first, *max_steps));
  else if (max_steps && first > *max_steps)
    draft.report("output.trace", fmt::format("steps from {}, wanted at most train.max_steps, which is {}",
                                             first, *max_steps));
}

// The pixels that a model is evaluated on are brought to the range that it was trained with.
void inherit(const std::string& key, const std::vector<double>& train, std::vector<double>& test,
             Draft& draft) {
  if (draft.has("data.test" + key)) {
    if (test != train)
      draft.notes.push_back(fmt::format(
          "data.test{0} differs from data.train{0}: the model is evaluated on pixels of another range than it is trained on",
          key));
  } else if (channels_of(draft.spec.data.train) == channels_of(*draft.spec.data.test)) {
    test = train;
  }
}

void check_chance(Draft& draft) {
  const Augment augment = draft.spec.data.test->augment;
  if (augment != without_chance(augment))
    draft.notes.push_back(fmt::format(
        "data.test.augment is random: the model is evaluated on random parts of the images; {} is the same without chance",
        augment == Augment::crop_flip ? "none" : "resize_crop"));
}

void complete_set(DataSetSpec& set, bool has_channels) {
  if (set.format == DataFormat::idx && !has_channels) set.channels = kIdxChannels;
  set.channels = channels_of(set);
  const auto count = static_cast<std::size_t>(set.channels);
  if (set.mean.empty()) set.mean.assign(count, kNoMean);
  if (set.deviation.empty()) set.deviation.assign(count, kWholeRange);
}

// Sums of the ranks' means follow the number of ranks, which train.global_batch is to make irrelevant. Where ranks do not sum their
// gradients, each rank counts the same, however many samples it has.
void check_global_batch(Draft& draft) {
  const std::optional<int>& samples = draft.spec.train.global_batch;
  if (!samples) return;
  const StrategySpec& strategy = draft.spec.strategy;
  const char* const by_ranks = strategy.localsgd            ? "localsgd"
                               : strategy.adaptive_localsgd ? "adaptive_localsgd"
                               : strategy.dgc               ? "dgc"
                                                            : nullptr;
  if (by_ranks != nullptr)
    draft.report(
        "train.global_batch",
        fmt::format("{} beside strategy.{}, wanted data.batch_size: every rank counts the same there",
                    *samples, by_ranks));
  if (strategy.build_strategy.gradient_scale_strategy != GradientScale::One) return;
  draft.report(
      "train.global_batch",
      fmt::format("{} with strategy.build_strategy.gradient_scale_strategy One, wanted data.batch_size "
                  "or gradient_scale_strategy CoeffNumDevice: with One the gradients grow with the "
                  "number of ranks",
                  *samples));
}

}  // namespace

void complete_spec(Draft& draft) {
  JobSpec& spec = draft.spec;
  if (!spec.train.epochs && !spec.train.max_steps) spec.train.epochs = 1;
  if (draft.has("train.early_stopping") && !spec.train.early_stopping) spec.train.early_stopping.emplace();
  complete_set(spec.data.train, draft.has("data.train.channels"));
  if (!spec.data.test) return;
  complete_set(*spec.data.test, draft.has("data.test.channels"));
  inherit(".mean", spec.data.train.mean, spec.data.test->mean, draft);
  inherit(".std", spec.data.train.deviation, spec.data.test->deviation, draft);
  check_chance(draft);
}

void find_contradictions(Draft& draft) {
  check_schedule(draft);
  const std::vector<NamedSet> sets = data_sets(draft);
  for (const NamedSet& named : sets) {
    check_channels(named, draft);
    check_generated_shape(named, draft);
    check_classes(named, draft);
    check_shape(named, draft);
  }
  check_test_set(sets, draft);
  check_decoder(sets, draft);
  check_split(draft);
  check_env(draft);
  check_trace(draft);
  check_global_batch(draft);
  check_class_balance(draft);
  check_evaluation(draft);
  check_optimizer(draft);
  check_local_training(draft);
  check_dgc(draft);
  check_pipeline(draft);
}

void note_settings_without_switch(const Key& keys, Draft& draft) {
  constexpr std::string_view kEnding = "_configs";
  const Key& strategy = *keys.find("strategy");
  for (const Key& settings : strategy.members) {
    const std::string path = child_path("strategy", settings.name);
    if (!settings.name.ends_with(kEnding) || draft.written.count(path) == 0) continue;
    const std::string name = settings.name.substr(0, settings.name.size() - kEnding.size());
    const Key* key = strategy.find(name);
    if (key == nullptr || key->kind != ValueKind::boolean || key->show(draft.spec).boolean) continue;
    draft.notes.push_back(
        fmt::format("{} of {} has no effect: strategy.{} is false", path, draft.place_of(path), name));
  }
  if (draft.spec.strategy.use_hierarchical_allreduce.value_or(false)) return;
  for (const std::string path :
       {"strategy.hierarchical_allreduce_inter_nranks", "strategy.hierarchical_allreduce_algorithm"})
    if (draft.written.count(path) > 0)
      draft.notes.push_back(
          fmt::format("{} of {} has no effect: strategy.use_hierarchical_allreduce is not true", path,
                      draft.place_of(path)));
}

}  // namespace fleetrun::job
