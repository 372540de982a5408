#include "launch/run/runtime_support.h"

#include <chrono>
#include <utility>

#include "base/run/job_text.h"

namespace fleetrun::launch {

RuntimeSupport::RuntimeSupport(EventLoop& loop, const RuntimeRanks& ranks,
                               std::function<void(std::string_view line)> say)
    : loop_(loop) {
  if (!ranks.job_text.empty()) job_fd_ = put_job_text(ranks.job_text);
  make_pages(ranks.here);
  for (const ProgressPagePtr& page : pages_)
    page->run_start_ns = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  if (ranks.here == 0 || (ranks.world <= 1 && !ranks.may_grow)) return;
  StoreServerOptions options;
  if (ranks.address != "localhost") options.address = ranks.address;
  options.key = ranks.key ? *ranks.key : make_run_key();
  options.run_id = ranks.run_id;
  options.world_size = ranks.world;
  options.say = std::move(say);
  key_fd_ = put_run_key(options.key);
  store_options_ = std::move(options);
  if (ranks.serves_store) serve_store(store_options_->address, ranks.own_addresses);
}

void RuntimeSupport::serve_store(const std::string& address, const std::vector<std::string>& own_addresses) {
  if (store_ || !store_options_) return;
  store_options_->address = address;
  store_options_->own_addresses = own_addresses;
  store_ = std::make_unique<StoreServer>(loop_, *store_options_);
  store_endpoint_ = store_->endpoint();
}

std::vector<std::string> RuntimeSupport::store_also_at() const {
  return store_ ? store_->also_at() : std::vector<std::string>();
}

void RuntimeSupport::make_pages(int ranks) {
  page_fds_.clear();
  pages_.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    page_fds_.push_back(make_progress_fd());
    pages_.push_back(map_new_progress_page(page_fds_.back().get()));
  }
}

void RuntimeSupport::begin_attempt(int attempt, int world) {
  const int ranks = static_cast<int>(pages_.size());
  const std::vector<ProgressPagePtr> before = std::exchange(pages_, {});
  make_pages(ranks);
  for (std::size_t i = 0; i < before.size(); ++i) before[i]->carry_over_to(*pages_[i]);
  if (store_) store_->begin_attempt(attempt, world);
}

EmbeddedPlan RuntimeSupport::plan(const EmbeddedRuntime& embedded) const {
  EmbeddedPlan plan = {.job_environment = embedded.environment,
                       .threads = embedded.threads,
                       .store = store_endpoint_,
                       .key_fd = key_fd_.get(),
                       .job_fd = job_fd_.get(),
                       .progress_fds = {}};
  for (const UniqueFd& fd : page_fds_) plan.progress_fds.push_back(fd.get());
  return plan;
}

}  // namespace fleetrun::launch
