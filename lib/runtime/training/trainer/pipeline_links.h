// The communicators of a stage of a pipeline.
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
  std::string name;  // "values of rank 1 for rank 2", "stages of ranks 0 to 3"
  std::unique_ptr<comm::Communicator> communicator;
};

class PipelineLinks {
 public:
  // `number` counts the communicators of this rank, `name` is that of the link.
  using Make = std::function<std::unique_ptr<comm::Communicator>(const comm::Party& party, int number,
                                                                 const std::string& name)>;

  // Every rank calls it. The store of `all` outlives the links. The ranks are replicas of a pipeline of so many stages.
  PipelineLinks(const comm::Party& all, int stages, const Make& make);

  // By number, as pipeline_turns.h counts them: those of neighbours, in which rank 0 sends and rank 1 receives, then that of all
  // stages of the pipeline, then that of the ranks that have this stage.
  std::vector<PipelineLink> take() { return std::move(links_); }

 private:
  // `ranks`: the members, in their order.
  void add(const comm::Party& all, const std::vector<int>& ranks, const std::string& name, const Make& make);

  std::vector<std::unique_ptr<comm::PartOfStore>> stores_;
  std::vector<PipelineLink> links_;
};

}  // namespace fleetrun::runtime
