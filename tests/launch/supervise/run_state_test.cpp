#include "launch/supervise/run_state.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::run_state_test {
namespace {

TEST_CASE("an attempt that has loaded a checkpoint, but done no step, counts as one without steps") {
  std::vector<ProgressPagePtr> pages;
  CHECK(highest_step(pages) == std::nullopt);
  for (int rank = 0; rank < 2; ++rank) pages.push_back(map_new_progress_page(make_progress_fd().get()));
  for (const ProgressPagePtr& page : pages) page->step = 100;
  CHECK(highest_step(pages) == 0);
  pages[1]->step = 101;
  pages[1]->first_step_ns = 1;
  CHECK(highest_step(pages) == 101);
}

}  // namespace
}  // namespace fleetrun::launch::run_state_test
