#include "launch/run/write_page.h"

#include <doctest/doctest.h>
#include <boost/asio/io_context.hpp>

#include "launch/logs/log_names.h"
#include "launch/run/plain_run.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::write_page_test {
namespace {

TEST_CASE("no page of a run that goes on replaces the page of its end") {
  const TemporaryFolder folder;
  const PlainRun run;
  const RunPlan plan = run.plan();
  const LogFolder logs(folder / "log");
  EventLoop loop;
  LivePage page(loop, {plan, logs, {run.state(), run.report}});
  page.finish();
  CHECK(logs.look(kPageName).has_value());
  loop.context().poll();
  CHECK(loop.context().stopped());  // the loop waits for nothing more
}

}  // namespace
}  // namespace fleetrun::launch::write_page_test
