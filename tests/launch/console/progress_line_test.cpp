#include "launch/console/progress_line.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::progress_line_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("training shows the first rank's place and everybody's speed") {
  const Progress first = {.phase = Phase::training,
                          .epoch = 2,
                          .epochs = 12,
                          .step = 340,
                          .steps = 3910,
                          .loss = 1.234567,
                          .images_per_second = 500};
  Progress second = first;
  second.step = 339;
  second.images_per_second = 524.04;
  CHECK(progress_text({first, second}) ==
        "training  epoch 2 of 0-11  step 340/3910  loss 1.23457  1024.0 images/s");
}

TEST_CASE("the time that is left is shown in few words") {
  const Progress first = {
      .phase = Phase::training, .epoch = 0, .epochs = 1, .step = 3, .steps = 9, .loss = 2};
  const auto eta = [&](Clock::duration left) { return progress_text({first}, 200, left); };
  CHECK(eta(7s) == "training  epoch 0  step 3/9  loss 2.00000  0.0 images/s  ETA 0:07");
  CHECK(eta(200s).ends_with("  ETA 3:20"));
  CHECK(eta(1h + 63s).ends_with("  ETA 1:01:03"));
  CHECK(eta(51h).ends_with("  ETA 2 d 3 h"));
}

TEST_CASE("before the first loss none is shown") {
  const Progress first = {.phase = Phase::training, .step = 0, .steps = 9};
  CHECK(progress_text({first}) == "training  epoch 0  step 0/9  0.0 images/s");
}

TEST_CASE("the time that is left follows from the steps since the run began or stood still") {
  TimeLeft left;
  const auto at = [&](std::uint64_t step, Clock::duration time) {
    return left.look({.phase = Phase::training, .step = step, .steps = 110}, TimePoint(time));
  };
  CHECK_FALSE(at(0, 0s));
  CHECK_FALSE(at(10, 60s));  // the first steps tune and fill caches
  CHECK_FALSE(at(11, 60500ms));
  CHECK(at(20, 70s) == 90s);
  CHECK(at(20, 71s) == 89s);
  CHECK(at(20, 200s) == 0s);
  left.begin_anew();
  CHECK_FALSE(at(20, 1000s));
  CHECK(at(40, 1010s) == 35s);
  CHECK_FALSE(at(5, 1011s));  // a restart
  CHECK(at(6, 1013s) == 208s);
  CHECK(at(110, 1100s) == 0s);
}

TEST_CASE("a line is cut between characters") {
  CHECK(first_columns("a\xe2\x96\x88\xe2\x96\x88z", 2) == "a\xe2\x96\x88");
  CHECK(first_columns("ab", 9) == "ab");
}

TEST_CASE("hunt 137: wide characters need two columns, and colours and accents none") {
  CHECK(first_columns("\u8bad\u7ec3\u4e2d", 5) == "\u8bad\u7ec3");
  CHECK(first_columns("\U0001f680 go", 4) == "\U0001f680 g");
  CHECK(first_columns("e\u0301a", 1) == "e\u0301");
  CHECK(first_columns("\x1b[31m[0]\x1b[0m ab", 5) == "\x1b[31m[0]\x1b[0m a");
}

TEST_CASE("a narrow terminal shows what matters most") {
  const Progress first = {.phase = Phase::training,
                          .epoch = 2,
                          .epochs = 12,
                          .step = 340,
                          .steps = 3910,
                          .loss = 1.234567,
                          .images_per_second = 500};
  const auto text = [&](std::size_t width) { return progress_text({first}, width, 200s); };
  CHECK(text(81) == "training  epoch 2 of 0-11  step 340/3910  loss 1.23457  500.0 images/s  ETA 3:20");
  CHECK(text(79) == "training  epoch 2 of 0-11  step 340/3910  loss 1.23457  ETA 3:20");
  CHECK(text(60) == "epoch 2 of 0-11  step 340/3910  loss 1.23457  ETA 3:20");
  CHECK(text(50) == "epoch 2 of 0-11  step 340/3910  ETA 3:20");
  CHECK(text(35) == "epoch 2 of 0-11  step 340/3910");
  CHECK(text(19) == "step 340/3910");
  CHECK(text(5) == "step ");
  CHECK(progress_text({{.phase = Phase::joining}, {.phase = Phase::starting}}, 19) == "joining  waiting fo");
  for (std::size_t width = 0; width < 200; ++width) CHECK(text(width).size() <= width);
}

TEST_CASE("totals that are not known are left out") {
  CHECK(progress_text(
            {{.phase = Phase::training, .epoch = 1, .step = 5, .loss = 2, .images_per_second = 10}}) ==
        "training  epoch 1  step 5  loss 2.00000  10.0 images/s");
}

TEST_CASE("before training those who are behind are named") {
  CHECK(progress_text({{.phase = Phase::joining}, {.phase = Phase::starting}, {.phase = Phase::starting}}) ==
        "joining  waiting for ranks 1, 2");
  CHECK(progress_text({{.phase = Phase::starting}, {.phase = Phase::joining}}) ==
        "starting  waiting for rank 0");
  CHECK(progress_text({{.phase = Phase::loading}}) == "loading");
  CHECK(progress_text({}).empty());
}

TEST_CASE("what a worker writes on its page is what is read") {
  const UniqueFd fd = make_progress_fd();
  const ProgressPagePtr page = map_new_progress_page(fd.get());
  const ProgressPagePtr worker = map_inherited_progress_page(fd.get());
  worker->phase = Phase::evaluating;
  worker->step = 77;
  worker->loss = 0.5;
  const Progress progress = read_progress(*page);
  CHECK(progress.phase == Phase::evaluating);
  CHECK(progress.step == 77);
  CHECK(progress.loss == 0.5);
}

}  // namespace
}  // namespace fleetrun::launch::progress_line_test
