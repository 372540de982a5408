#include "launch/page/history_charts.h"

#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

struct Curves {
  const char *title, *unit;
  const char *train, *test;  // columns; null: none
};
constexpr std::array<Curves, 4> kCharts = {{{"Loss", "", "loss", "test_loss"},
                                            {"Accuracy", "", "acc1", "test_acc1"},
                                            {"Learning rate", "", "learning_rate", nullptr},
                                            {"Throughput", "images/s", "images_per_second", nullptr}}};

Points points_of(const History& history, const char* column) {
  const std::vector<double>* const steps = history.find("step");
  const std::vector<double>* const values = column == nullptr ? nullptr : history.find(column);
  Points points;
  if (steps == nullptr || values == nullptr) return points;
  points.reserve(steps->size());
  for (std::size_t row = 0; row < steps->size(); ++row)
    if (std::isfinite((*values)[row])) points.emplace_back((*steps)[row], (*values)[row]);
  return points;
}

}  // namespace

std::vector<Chart> charts_of(const std::vector<NamedHistory>& histories) {
  std::vector<Chart> charts;
  const bool alone = histories.size() == 1;
  for (const Curves& curves : kCharts) {
    Chart chart = {.title = curves.title, .unit = curves.unit, .series = {}};
    for (std::size_t i = 0; i < histories.size(); ++i) {
      const auto& [name, history] = histories[i];
      for (const bool test : {false, true}) {
        Points points = points_of(history, test ? curves.test : curves.train);
        if (points.empty()) continue;
        const char* const what = test ? "test" : curves.test == nullptr ? "" : "train";
        chart.series.push_back(
            {.name = alone ? what : fmt::format("{}{}{}", name, *what == 0 ? "" : " ", what),
             .points = std::move(points),
             .dots = test,
             .color = alone ? std::size_t{test} : i});
      }
    }
    if (!chart.series.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace fleetrun::launch
