// What the launcher holds for the ranks of the embedded runtime: the run's key, the store where they meet,
// and one progress page each.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/run/progress_page.h"
#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/plan/embedded_runtime.h"
#include "launch/plan/worker_plan.h"
#include "launch/store/store_server.h"

namespace fleetrun::launch {

class RuntimeSupport {
 public:
  // `ranks`: of the embedded runtime, 0 for any other program. They meet at that address, of this host. A single rank meets nobody:
  // it gets no store and no key. `say` takes lines for people.
  RuntimeSupport(EventLoop& loop, const std::string& address, int ranks, const std::string& run_id,
                 std::function<void(std::string_view line)> say);

  void begin_attempt(int attempt);  // new pages; the store lets in ranks of this attempt only
  EmbeddedPlan plan(const EmbeddedRuntime& embedded) const;
  const std::vector<ProgressPagePtr>& pages() const { return pages_; }

 private:
  void make_pages(int ranks);

  UniqueFd key_fd_;
  std::unique_ptr<StoreServer> store_;
  std::vector<UniqueFd> page_fds_;
  std::vector<ProgressPagePtr> pages_;
};

}  // namespace fleetrun::launch
