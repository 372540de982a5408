#include "runtime/checkpoint/correct_powers.h"

#include <string_view>
#include <utility>

namespace fleetrun::runtime {
namespace {

// By the ends of the names of the states.
constexpr std::pair<std::string_view, const char*> kPowers[] = {
    {".beta1_pow", "beta1"}, {".beta2_pow", "beta2"}, {"ema.decay_pow", "ema_decay"}};

// By what each of these states is to be multiplied.
std::map<std::string_view, double> factors_of(const std::map<std::string, double>& saved,
                                              const std::map<std::string, double>& now) {
  std::map<std::string_view, double> factors;
  for (const auto& [ending, decay] : kPowers) {
    const auto was = saved.find(decay), is = now.find(decay);
    if (was == saved.end() || is == now.end() || was->second == is->second) continue;
    if (was->second > 0) factors[ending] = is->second / was->second;  // otherwise the power stays 0
  }
  return factors;
}

// "f1.weight.beta1_pow.3", which is rank 3's own, without the rank.
std::string_view without_rank(std::string_view name) {
  const std::size_t dot = name.find_last_not_of("0123456789");
  return dot == std::string_view::npos || name[dot] != '.' ? name : name.substr(0, dot);
}

PlainTensors plain_tensors_of(const Safetensors& file) {
  PlainTensors tensors;
  for (const auto& [name, tensor] : file.tensors) tensors[name] = {tensor.shape, to_floats(tensor)};
  return tensors;
}

Safetensors multiplied(const Safetensors& file, const std::map<std::string_view, double>& factors,
                       const std::string& path) {
  PlainTensors tensors = plain_tensors_of(file);
  for (auto& [name, tensor] : tensors)
    for (const auto& [ending, factor] : factors)
      if (without_rank(name).ends_with(ending))
        for (float& power : tensor.values) power = static_cast<float>(power * factor);
  return parse_safetensors(format_tensors(tensors), path);
}

}  // namespace

void correct_powers(Checkpoint& checkpoint, const std::map<std::string, double>& decays) {
  const auto factors = factors_of(checkpoint.state.decays, decays);
  if (factors.empty()) return;
  for (const char* name : {kOptimizerFile, kRankStatesFile})
    if (const auto file = checkpoint.files.find(name); file != checkpoint.files.end())
      file->second = multiplied(file->second, factors, checkpoint.path + "/" + name);
}

}  // namespace fleetrun::runtime
