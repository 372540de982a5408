#include "runtime/training/setup/class_weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/json/json_value.h"
#include "base/text/printable.h"
#include "base/text/suggest.h"

namespace fleetrun::runtime {
namespace {

// Only the ratios of the weights count. The largest weight is kept below 2^97 and above 2^-97, so that neither the sum of 2^31 weights
// nor its inverse leaves the range of a float. A factor of 2^n rounds nothing.
constexpr int kLargestSize = 96;

std::string name_of_class(std::size_t label, const DataSet& train) {
  return label < train.class_names().size() ? printable(train.class_names()[label]) : std::to_string(label);
}

std::vector<float> balanced_weights(const DataSet& train, std::size_t classes) {
  std::vector<std::int64_t> counts(classes, 0);
  for (const std::int32_t label : train.labels()) ++counts[static_cast<std::size_t>(label)];
  const auto present = static_cast<double>(classes) - static_cast<double>(std::ranges::count(counts, 0));
  std::vector<float> weights(classes, 1.0F);
  for (std::size_t i = 0; i < classes; ++i)
    if (counts[i] > 0)
      weights[i] = static_cast<float>(train.size() / (present * static_cast<double>(counts[i])));
  return weights;
}

// By the name of the class, or its number where classes have no names.
std::size_t label_of(const std::string& name, const DataSet& train, std::size_t classes) {
  std::vector<std::string> names = train.class_names();
  if (names.empty())
    for (std::size_t label = 0; label < classes; ++label) names.push_back(std::to_string(label));
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const auto meant = closest(name, names);
  throw Error(
      ErrorKind::config,
      fmt::format("data.class_weights has a weight for {}, which is not a class of data.train{}",
                  shortened_quote(name, 60), meant ? fmt::format("; did you mean \"{}\"?", *meant) : ""));
}

}  // namespace

std::vector<float> resolve_class_weights(const job::ClassWeights& wanted, const DataSet& train, int classes) {
  const auto count = static_cast<std::size_t>(classes);
  if (wanted.balanced) return balanced_weights(train, count);
  if (wanted.by_number.empty()) {
    std::vector<float> weights(count, 1.0F);
    for (const auto& [name, weight] : wanted.by_name)
      weights[label_of(name, train, count)] = static_cast<float>(weight);
    return weights;
  }
  if (wanted.by_number.size() != count)
    throw Error(ErrorKind::config,
                fmt::format("data.class_weights has {} weights, wanted {}: one for each class",
                            wanted.by_number.size(), count));
  return {wanted.by_number.begin(), wanted.by_number.end()};
}

std::string describe_class_weights(const std::vector<float>& weights, const DataSet& train) {
  const auto [least, most] = std::ranges::minmax_element(weights);
  const auto named = [&](auto place) {
    return fmt::format("{:.4g} ({})", *place,
                       name_of_class(static_cast<std::size_t>(place - weights.begin()), train));
  };
  return fmt::format("data.class_weights: from {} to {}", named(least), named(most));
}

void SampleWeights::set_classes(std::vector<float> weights) {
  const int size = std::ilogb(*std::ranges::max_element(weights));
  const int kept = std::clamp(size, -kLargestSize, kLargestSize);
  for (float& weight : weights) weight = std::ldexp(weight, kept - size);
  of_classes_ = std::move(weights);
}

const float* SampleWeights::of_batch(const std::int32_t* labels, comm::Communicator* ranks) {
  std::array<float, 2> sums = {0, static_cast<float>(weights_.size())};  // of the weights, of the samples
  double sum = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const std::int32_t label = labels[i];
    if (label < 0)
      weights_[i] = 0;
    else  // the loss reports a label that is not a class
      weights_[i] = static_cast<std::size_t>(label) < of_classes_.size()
                        ? of_classes_[static_cast<std::size_t>(label)]
                        : 1.0F;
    sum += static_cast<double>(weights_[i]);
  }
  sums[0] = static_cast<float>(sum);
  const std::array<float, 2> own = sums;
  if (ranks != nullptr && ranks->size() > 1)
    ranks->all_reduce({sums.data(), sums.size(), DType::f32}, comm::ReduceOp::sum);
  const float factor = sums[0] > 0 ? sums[1] / sums[0] : 0;
  for (float& weight : weights_) weight *= factor;
  // In f64, where the quotient of two sums cannot become infinite. A batch without weights has the loss 0.
  to_own_loss_ = own[0] > 0 ? double{sums[0]} / double{own[0]} * double{own[1]} / double{sums[1]} : 1;
  return weights_.data();
}

}  // namespace fleetrun::runtime
