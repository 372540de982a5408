#include "runtime/training/trainer/pipeline_links.h"

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::runtime {

// Each rank meets the one before it first, so the ranks do not wait for each other in a circle.
PipelineLinks::PipelineLinks(const comm::Party& all, int stages, const Make& make) {
  const int stage = all.rank % stages, first = all.rank - stage;
  for (const int lower : {all.rank - 1, all.rank}) {
    if (lower < first || lower + 1 >= first + stages) continue;
    add(all, {lower, lower + 1}, fmt::format("values of rank {} for rank {}", lower, lower + 1), make);
    add(all, {lower + 1, lower}, fmt::format("gradients of rank {} for rank {}", lower + 1, lower), make);
  }
  std::vector<int> of_stages, of_replicas;
  for (int rank = first; rank < first + stages; ++rank) of_stages.push_back(rank);
  for (int rank = stage; rank < all.size; rank += stages) of_replicas.push_back(rank);
  add(all, of_stages, fmt::format("stages of ranks {} to {}", first, first + stages - 1), make);
  add(all, of_replicas, fmt::format("replicas of stage {}", stage), make);
}

void PipelineLinks::add(const comm::Party& all, const std::vector<int>& ranks, const std::string& name,
                        const Make& make) {
  stores_.push_back(std::make_unique<comm::PartOfStore>(all.store, fmt::format("pipeline, {}/", name)));
  const auto own = std::find(ranks.begin(), ranks.end(), all.rank) - ranks.begin();
  const comm::Party party = {*stores_.back(), static_cast<int>(own), static_cast<int>(ranks.size()), ranks};
  links_.push_back({name, make(party, static_cast<int>(links_.size()), name)});
}

}  // namespace fleetrun::runtime
