#include "launch/page/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace fleetrun::launch::chart_test {
namespace {

TEST_CASE("of many points a chart keeps the first, lowest, highest and last one of each pixel column") {
  Points points;
  for (int i = 0; i < 20'000; ++i) points.emplace_back(i, std::sin(i * 0.37));
  points[7'777].second = 9;
  points[12'345].second = -9;
  const Points thinned = thin(points, 0, 19'999, 700);
  CHECK(thinned.size() <= 4 * 701);
  CHECK(thinned.front() == points.front());
  CHECK(thinned.back() == points.back());
  CHECK(std::is_sorted(thinned.begin(), thinned.end(), [](auto a, auto b) { return a.first < b.first; }));
  for (const int peak : {7'777, 12'345})
    CHECK(std::count(thinned.begin(), thinned.end(), points[static_cast<std::size_t>(peak)]) == 1);
}

TEST_CASE("a chart of few points shows all of them except NaN and values of 1e300 or more") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(thin({{0, 1}, {1, none}, {2, 3}}, 0, 2, 100) == Points{{0, 1}, {2, 3}});
  const Points odd = {{0, 1}, {1, 1e308}, {2, -1e308}, {3, 2}};
  CHECK(thin(odd, 0, 3, 100) == Points{{0, 1}, {3, 2}});
  const std::string drawn = draw_plot({.title = "Loss", .series = {{.name = "train", .points = odd}}},
                                      {.width = 100, .height = 50});
  CHECK(drawn.find("nan") == std::string::npos);
}

TEST_CASE("where the steps of a series begin lower again, another line begins") {
  const Points resumed = {{0, 4}, {50, 3}, {100, 2}, {50, 2}, {100, 1}};
  const std::string drawn = draw_plot({.title = "Loss", .series = {{.name = "train", .points = resumed}}},
                                      {.width = 100, .height = 30});
  CHECK(drawn.find("points=\"0.0,0.0 50.0,10.0 100.0,20.0\"") != std::string::npos);
  CHECK(drawn.find("points=\"50.0,20.0 100.0,30.0\"") != std::string::npos);
}

TEST_CASE("ticks are round numbers inside the limits") {
  CHECK(ticks(0, 10, 4) == std::vector<double>{0, 5, 10});
  CHECK(ticks(-1, 1, 4) == std::vector<double>{-1, -0.5, 0, 0.5, 1});
}

TEST_CASE("a chart without points is empty, and one of a single point shows it") {
  const PlotArea area = {.width = 100, .height = 50};
  CHECK(draw_plot({.title = "Loss", .series = {{.name = "train"}}}, area).empty());
  CHECK(draw_plot({.title = "Loss", .series = {{.name = "train", .points = {{5, 2}}}}}, area)
            .find("<circle cx=\"50.0\" cy=\"25.0\"") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::launch::chart_test
