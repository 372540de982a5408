// The communicators of neighbouring stages of a pipeline.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/collective/communicator.h"
#include "comm/rendezvous/exchange.h"
#include "comm/rendezvous/part_of_store.h"

namespace fleetrun::runtime {

struct PipelineLink {
  std::string name;  // "values of rank 1 for rank 2"
  std::unique_ptr<comm::Communicator> communicator;
};

class PipelineLinks {
 public:
  // `number` counts the communicators of this rank.
  using Make = std::function<std::unique_ptr<comm::Communicator>(const comm::Party& party, int number)>;

  // Every rank calls it. The store of `all` outlives the links.
  PipelineLinks(const comm::Party& all, const Make& make);

  // By number, as communicator_for() in pipeline_turns.h counts them. In each, rank 0 sends and rank 1 receives.
  std::vector<PipelineLink> take() { return std::move(links_); }

 private:
  void add(const comm::Party& all, int sender, int receiver, const Make& make);

  std::vector<std::unique_ptr<comm::PartOfStore>> stores_;
  std::vector<PipelineLink> links_;
};

}  // namespace fleetrun::runtime
