#include "runtime/training/trainer/training_communicators.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "comm/collective/hierarchical.h"
#include "job/spec/settle_pipeline.h"
#include "job/spec/settle_strategy.h"

namespace fleetrun::runtime {
namespace {

comm::HierarchicalAlgorithm algorithm_of(const job::StrategySpec& strategy) {
  return strategy.hierarchical_allreduce_algorithm == job::HierarchicalAlgorithm::leader
             ? comm::HierarchicalAlgorithm::leader
             : comm::HierarchicalAlgorithm::scatter;
}

}  // namespace

TrainingCommunicators::TrainingCommunicators(const job::StrategySpec& strategy, comm::World& world,
                                             Device& device, FlightRecords* records)
    : world_(world), device_(device) {
  made_.push_back({nullptr, device.make_communicator(world.party(), 0)});
  comm::Communicator* const own = made_.back().communicator.get();
  flat_ = own != nullptr ? own : world.communicator.get();
  make_gradients(strategy, "");
  if (records != nullptr) record_in(*records);
}

TrainingCommunicators::TrainingCommunicators(const job::StrategySpec& strategy, comm::World& world,
                                             Device& device, const std::string& name)
    : world_(world), device_(device) {
  if (world.env.world_size > 1) made_.push_back({nullptr, world.more(world.party(), name)});
  flat_ = made_.empty() ? world.communicator.get() : made_.back().communicator.get();
  make_gradients(strategy, name + "-");
}

void TrainingCommunicators::make_gradients(const job::StrategySpec& strategy, const std::string& prefix) {
  const comm::Party all = world_.party();
  same_layers_ = flat_;
  if (strategy.pipeline) add_links(job::stages_of(strategy, all.size), prefix);
  const bool in_groups = strategy.use_hierarchical_allreduce.value_or(false);
  if (!in_groups && !strategy.pipeline) add(flat_, "communicator 0");
  for (int i = static_cast<int>(of_gradients_.size()); i < strategy.nccl_comm_num; ++i) {
    const comm::MakeCommunicator make = [&](const comm::Party& party, const std::string& name) {
      auto of_device = device_.make_communicator(party, i);
      return of_device ? std::move(of_device) : world_.more(party, name);
    };
    const std::string name = prefix + std::to_string(i);
    auto made = in_groups
                    ? comm::make_hierarchical({.party = all,
                                               .group_size = strategy.hierarchical_allreduce_inter_nranks,
                                               .algorithm = algorithm_of(strategy),
                                               .name = name},
                                              make)
                    : make(all, name);
    add(made.get(), fmt::format("communicator {}", i));
    made_.push_back({nullptr, std::move(made)});
  }
  if (job::shards_in_groups(strategy)) add_groups(strategy, prefix);
}

void TrainingCommunicators::add(comm::Communicator* communicator, const std::string& name) {
  of_gradients_.push_back(communicator);
  names_.push_back(name);
}

// Those of the groups of sharding, then those of the ranks with the same place in their groups. Each group has names of its own: the
// collectives of two groups are not the same ones.
void TrainingCommunicators::add_groups(const job::StrategySpec& strategy, const std::string& prefix) {
  const int degree = *strategy.sharding_configs.sharding_degree, rank = world_.env.rank;
  for (const auto& [make_circle, circle_name] :
       {std::pair(&comm::make_group, fmt::format("group {}", rank / degree)),
        std::pair(&comm::make_places, fmt::format("places {}", rank % degree))})
    for (int i = 0; i < strategy.nccl_comm_num; ++i) {
      const int number = static_cast<int>(of_gradients_.size());
      const auto make = [&](const comm::Party& party, const std::string& name) {
        auto of_device = device_.make_communicator(party, number);
        return of_device ? std::move(of_device) : world_.more(party, name);
      };
      comm::Circle circle =
          make_circle({world_.party(), degree, fmt::format("{}sharding {}", prefix, i)}, make);
      add(circle.communicator.get(), fmt::format("communicator {}, {}", number, circle_name));
      made_.push_back(std::move(circle));
    }
}

TrainingCommunicators::~TrainingCommunicators() {
  if (std::uncaught_exceptions() == 0) return;
  std::move(made_.begin(), made_.end(), std::back_inserter(world_.left_connected));
}

void TrainingCommunicators::add_links(int stages, const std::string& prefix) {
  const auto make = [&](const comm::Party& party, int number, const std::string& name) {
    auto of_device = device_.make_communicator(party, number);
    return of_device ? std::move(of_device) : world_.more(party, prefix + name);
  };
  links_ = std::make_unique<PipelineLinks>(world_.party(), stages, make);
  for (PipelineLink& link : links_->take()) {
    add(link.communicator.get(), link.name);
    made_.push_back({nullptr, std::move(link.communicator)});
  }
  same_layers_ = of_gradients_.back();
}

void TrainingCommunicators::record_in(FlightRecords& records) const {
  world_.communicator->record_in(records, "world");
  if (flat_ != world_.communicator.get()) flat_->record_in(records, "device");
  for (std::size_t i = 0; i < of_gradients_.size(); ++i)
    if (of_gradients_[i] != flat_) of_gradients_[i]->record_in(records, names_[i]);
}

std::string describe_communicators(const job::StrategySpec& strategy) {
  const int count = strategy.nccl_comm_num;
  if (strategy.pipeline)
    return "each stage of the pipeline sends to its neighbours by a communicator of the two";
  std::string text = fmt::format("all-reduces by {}", plural(count, "communicator"));
  if (strategy.use_hierarchical_allreduce.value_or(false))
    text += fmt::format(
        ", in groups of {} ranks by {}", strategy.hierarchical_allreduce_inter_nranks,
        algorithm_of(strategy) == comm::HierarchicalAlgorithm::leader ? "their leaders" : "slices");
  if (strategy.sharding)
    text += fmt::format(", sharded by {} ranks, {}", strategy.sharding_configs.sharding_degree.value_or(0),
                        plural(strategy.sharding_configs.dp_degree.value_or(1), "group"));
  if (!strategy.sync_nccl_allreduce) return text + ", beside the computation";
  return text + fmt::format(
                    ", each waited for; num_threads {}",
                    std::max(job::communicator_count(strategy) + 1, strategy.execution_strategy.num_threads));
}

}  // namespace fleetrun::runtime
