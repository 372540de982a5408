#include "runtime/data/split_facts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/data/fact_hash.h"

namespace fleetrun::runtime {
namespace {

// The length of the folder, with its "/", that all files of both sets are in.
std::size_t shared_folder(const DataSet& train, const DataSet& evaluation) {
  const std::string first = train.source_of(0);
  std::size_t same = first.size();
  for (const DataSet* set : {&train, &evaluation})
    for (int sample = 0; sample < set->size(); ++sample) {
      const std::string file = set->source_of(sample);
      const auto end = first.begin() + static_cast<std::ptrdiff_t>(same);
      const auto parts = std::mismatch(first.begin(), end, file.begin(), file.end());
      same = static_cast<std::size_t>(parts.first - first.begin());
    }
  return same == 0 ? 0 : first.rfind('/', same - 1) + 1;
}

void add_samples(const DataSet& set, std::size_t folder, FactHash& hash) {
  for (int sample = 0; sample < set.size(); ++sample) {
    const std::int32_t label = set.label(sample);
    hash.add(std::string_view(set.source_of(sample)).substr(folder));
    hash.add(&label, sizeof label);
  }
}

}  // namespace

SplitFacts make_split_facts(double share, std::int64_t seed, const DataSet& train,
                            const DataSet& evaluation) {
  const std::size_t folder = shared_folder(train, evaluation);
  FactHash hash;
  add_samples(train, folder, hash);
  add_samples(evaluation, folder, hash);
  return {.share = share,
          .seed = seed,
          .train = train.size(),
          .evaluation = evaluation.size(),
          .digest = hash.text()};
}

JsonValue as_json(const SplitFacts& facts) {
  if (facts.share == 0) return JsonValue::object({{"share", 0}});
  return JsonValue::object({{"share", facts.share},
                            {"seed", facts.seed},
                            {"train", facts.train},
                            {"evaluation", facts.evaluation},
                            {"digest", facts.digest}});
}

std::optional<SplitFacts> read_split_facts(const JsonValue& json) {
  using Kind = JsonValue::Kind;
  const JsonMember* const share = json.is(Kind::object) ? json.find("share") : nullptr;
  if (share == nullptr || (!share->value.is(Kind::number) && !share->value.is(Kind::integer)))
    return std::nullopt;
  if (share->value.number == 0) return SplitFacts{};
  const JsonValue* const seed = json.find("seed", Kind::integer);
  const JsonValue* const train = json.find("train", Kind::integer);
  const JsonValue* const evaluation = json.find("evaluation", Kind::integer);
  const JsonValue* const digest = json.find("digest", Kind::text);
  if (seed == nullptr || train == nullptr || evaluation == nullptr || digest == nullptr) return std::nullopt;
  return SplitFacts{.share = share->value.number,
                    .seed = seed->integer,
                    .train = train->integer,
                    .evaluation = evaluation->integer,
                    .digest = digest->text};
}

std::string difference_of(const SplitFacts& was, const SplitFacts& now) {
  if (was.share == 0) return fmt::format("without data.split, the job has {}", now.share);
  if (was.share != now.share) return fmt::format("with data.split {}, the job has {}", was.share, now.share);
  if (was.seed != now.seed) return fmt::format("with train.seed {}, the job has {}", was.seed, now.seed);
  if (was.train != now.train && was.evaluation == 0)
    return fmt::format("with {} samples to train on, now there are {}", was.train, now.train);
  if (was.train != now.train || was.evaluation != now.evaluation)
    return fmt::format("with {} samples to train on and {} to evaluate on, now there are {} and {}",
                       was.train, was.evaluation, now.train, now.evaluation);
  return was.digest == now.digest ? "" : "with other files or labels in data.train";
}

std::string keys_that_differ(const SplitFacts& was, const SplitFacts& now) {
  if (was.share == 0) return "";
  std::vector<std::string> keys;
  if (was.share != now.share) keys.push_back(fmt::format("data.split={}", was.share));
  if (was.seed != now.seed) keys.push_back(fmt::format("train.seed={}", was.seed));
  return fmt::format("{}", fmt::join(keys, " "));
}

}  // namespace fleetrun::runtime
