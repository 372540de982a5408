#include "runtime/training/pipeline_links.h"

#include <fmt/format.h>

namespace fleetrun::runtime {

// Each rank meets the one before it first, so the ranks do not wait for each other in a circle.
PipelineLinks::PipelineLinks(const comm::Party& all, const Make& make) {
  for (const int lower : {all.rank - 1, all.rank}) {
    if (lower < 0 || lower + 1 >= all.size) continue;
    add(all, lower, lower + 1, make);
    add(all, lower + 1, lower, make);
  }
}

void PipelineLinks::add(const comm::Party& all, int sender, int receiver, const Make& make) {
  stores_.push_back(
      std::make_unique<comm::PartOfStore>(all.store, fmt::format("pipeline {} to {}/", sender, receiver)));
  const comm::Party party = {
      *stores_.back(), all.rank == sender ? 0 : 1, 2, {all.name_of(sender), all.name_of(receiver)}};
  const char* const what = sender < receiver ? "values" : "gradients";
  links_.push_back(
      {fmt::format("{} of rank {} for rank {}", what, all.name_of(sender), all.name_of(receiver)),
       make(party, static_cast<int>(links_.size()))});
}

}  // namespace fleetrun::runtime
