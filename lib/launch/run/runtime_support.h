// What the launcher holds for the ranks of the embedded runtime: the run's key, the store where they meet,
// and one progress page each.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run/progress_page.h"
#include "base/run/run_key.h"
#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/plan/embedded_runtime.h"
#include "launch/plan/worker_plan.h"
#include "launch/store/store_server.h"

namespace fleetrun::launch {

struct RuntimeRanks {
  std::string job_text;  // of the job file; "": there is none
  int here = 0;          // ranks of the embedded runtime on this node; 0 for other programs
  int world = 0;
  std::string run_id;
  std::string address;                          // address at which ranks reach the store
  std::vector<std::string> own_addresses = {};  // others, at which ranks of other nodes may reach it
  std::optional<RunKey> key;                    // none: make a new key
  bool serves_store = true;                     // false: the store of another node serves these ranks
  bool may_grow = false;                        // ranks of other nodes may come
};

class RuntimeSupport {
 public:
  // A single rank has nobody to meet, so it gets no store and no key. `say` gets lines for the user.
  RuntimeSupport(EventLoop& loop, const RuntimeRanks& ranks, std::function<void(std::string_view line)> say);

  // This node has become the first one: the ranks meet here, at this numeric address, or at another one of this host. Does nothing when it
  // serves already.
  void serve_store(const std::string& address, const std::vector<std::string>& own_addresses);

  // Makes new pages. The store now admits only ranks of this attempt, and there are `world` of them.
  void begin_attempt(int attempt, int world);
  bool needs_store() const { return store_options_.has_value(); }                   // the ranks here do
  Endpoint store() const { return store_ ? store_->endpoint() : store_endpoint_; }  // port 0: none
  std::vector<std::string> store_also_at() const;  // other addresses, if the store is here
  void meet_at(const Endpoint& store) { store_endpoint_ = store; }
  EmbeddedPlan plan(const EmbeddedRuntime& embedded) const;
  const std::vector<ProgressPagePtr>& pages() const { return pages_; }

 private:
  void make_pages(int ranks);

  EventLoop& loop_;
  std::optional<StoreServerOptions> store_options_;  // none: the ranks need no store
  Endpoint store_endpoint_;
  UniqueFd job_fd_, key_fd_;
  std::unique_ptr<StoreServer> store_;
  std::vector<UniqueFd> page_fds_;
  std::vector<ProgressPagePtr> pages_;
};

}  // namespace fleetrun::launch
