#include "launch/page/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "launch/page/markup.h"

namespace fleetrun::launch {
namespace {

constexpr double kColumnsPerUnit = 2;  // a unit of the picture has about two pixels on a good screen
constexpr int kMostTicks = 4;

// Of Paul Tol's and Okabe and Ito's palettes: told apart by people who see few colours.
constexpr std::array<std::string_view, kColors> kLight = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                          "#a87900", "#3a8bbb", "#882255", "#555555"};
constexpr std::array<std::string_view, kColors> kDark = {"#56b4e9", "#ff9d4d", "#2fd1a0", "#f0a0cf",
                                                         "#f0e442", "#9ad0f5", "#dd77aa", "#bbbbbb"};

struct Limits {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  // A line of one height, or of one point, lies in the middle.
  void widen() {
    if (low < high) return;
    const double room = std::max(std::abs(low) / 2, 0.5);
    low -= room;
    high += room;
  }
};

// The difference of two larger numbers may be no number.
bool can_be_drawn(double value) { return std::abs(value) < 1e300; }

bool can_be_drawn(const std::pair<double, double>& point) {
  return can_be_drawn(point.first) && can_be_drawn(point.second);
}

// The points of one pixel column that count, in the order of x.
void add_column(const Points& points, std::size_t begin, std::size_t end, Points& thinned) {
  const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = points.begin() + static_cast<std::ptrdiff_t>(end);
  const auto by_y = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [lowest, highest] = std::minmax_element(first, last, by_y);
  std::array kept = {first, lowest, highest, last - 1};
  std::sort(kept.begin(), kept.end());
  const auto different = std::unique(kept.begin(), kept.end());
  std::for_each(kept.begin(), different, [&](const auto& one) { thinned.push_back(*one); });
}

class Plot {
 public:
  Plot(const Chart& chart, const PlotArea& area) : chart_(chart), area_(area) {
    for (const Series& series : chart.series)
      for (const auto& point : series.points) {
        if (!can_be_drawn(point)) continue;
        x_.take(point.first);
        y_.take(point.second);
      }
    empty_ = x_.empty();
    x_.widen();
    y_.widen();
  }

  bool empty() const { return empty_; }

  std::string draw() const {
    std::string text = fmt::format(
        "<g class=\"plot\" data-area=\"{} {} {} {}\" data-x=\"{:.9g} {:.9g}\" data-y=\"{:.9g} {:.9g}\">",
        area_.left, area_.top, area_.width, area_.height, x_.low, x_.high, y_.low, y_.high);
    text += grid();
    for (const Series& series : chart_.series) text += line(series);
    return text + "</g>";
  }

 private:
  double place_x(double x) const { return area_.left + (x - x_.low) / (x_.high - x_.low) * area_.width; }
  double place_y(double y) const {
    return area_.top + area_.height - (y - y_.low) / (y_.high - y_.low) * area_.height;
  }

  std::string grid() const {
    std::string text;
    const double bottom = area_.top + area_.height;
    for (const double y : ticks(y_.low, y_.high, kMostTicks))
      text += fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"y\" x=\"{3}\" "
          "y=\"{4:.1f}\">{5}</text>",
          area_.left, area_.left + area_.width, place_y(y), area_.left - 5, place_y(y) + 3.5,
          short_number(y));
    for (const double x : ticks(x_.low, x_.high, kMostTicks))
      text += fmt::format("<text class=\"x\" x=\"{:.1f}\" y=\"{}\">{}</text>", place_x(x), bottom + 14,
                          short_number(x));
    return text;
  }

  // Where x falls, another line begins: a resume on more ranks has fewer steps in an epoch, and gives lower numbers to them.
  std::string line(const Series& series) const {
    std::string lines;
    for (auto first = series.points.begin(); first != series.points.end();) {
      const auto falls = [](const auto& one, const auto& next) { return next.first < one.first; };
      auto last = std::adjacent_find(first, series.points.end(), falls);
      if (last != series.points.end()) ++last;
      lines += rising_line(Points(first, last), series);
      first = last;
    }
    return fmt::format("<g class=\"c{}\">{}</g>", series.color % kColors, lines);
  }

  std::string rising_line(const Points& all, const Series& series) const {
    const Points points = thin(all, x_.low, x_.high, static_cast<std::size_t>(area_.width * kColumnsPerUnit));
    std::string places, dots;
    for (const auto& [x, y] : points) {
      places += fmt::format("{}{:.1f},{:.1f}", places.empty() ? "" : " ", place_x(x), place_y(y));
      if (series.dots || points.size() == 1)
        dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>", place_x(x), place_y(y));
    }
    return fmt::format("<polyline data-name=\"{}\" points=\"{}\"/>{}", escape_markup(series.name), places,
                       dots);
  }

  const Chart& chart_;
  const PlotArea& area_;
  Limits x_, y_;
  bool empty_ = false;
};

std::string color_rules(const std::array<std::string_view, kColors>& colors) {
  std::string text;
  for (std::size_t i = 0; i < kColors; ++i) text += fmt::format(".c{}{{color:{}}}", i, colors[i]);
  return text;
}

}  // namespace

Points thin(const Points& points, double first_x, double last_x, std::size_t columns) {
  Points drawn;
  drawn.reserve(points.size());
  std::copy_if(points.begin(), points.end(), std::back_inserter(drawn),
               [](const auto& point) { return can_be_drawn(point); });
  if (drawn.size() <= 4 * columns || first_x >= last_x) return drawn;
  const double width = (last_x - first_x) / static_cast<double>(columns);
  const auto column_of = [&](std::size_t i) { return std::floor((drawn[i].first - first_x) / width); };
  Points thinned;
  for (std::size_t begin = 0; begin < drawn.size();) {
    std::size_t end = begin + 1;
    while (end < drawn.size() && column_of(end) == column_of(begin)) ++end;
    add_column(drawn, begin, end, thinned);
    begin = end;
  }
  return thinned;
}

std::vector<double> ticks(double low, double high, int most) {
  const double wanted = (high - low) / most;
  const double power = std::pow(10, std::floor(std::log10(wanted)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power < wanted) continue;
    step = factor * power;
    break;
  }
  std::vector<double> values;
  const auto first = static_cast<std::int64_t>(std::ceil(low / step));
  const auto last = static_cast<std::int64_t>(std::floor(high / step));
  for (std::int64_t i = first; i <= last; ++i) values.push_back(static_cast<double>(i) * step);
  return values;
}

std::string draw_plot(const Chart& chart, const PlotArea& area) {
  const Plot plot(chart, area);
  return plot.empty() ? "" : plot.draw();
}

std::string chart_style() {
  return ".plot line{stroke:#8884;stroke-width:1}.plot text{fill:currentColor;opacity:.75;font:11px system-ui,sans-serif}"
         ".plot .y{text-anchor:end}.plot .x{text-anchor:middle}"
         ".plot polyline{fill:none;stroke:currentColor;stroke-width:1.5;stroke-linejoin:round}"
         ".plot circle{fill:currentColor}" +
         color_rules(kLight) + "@media(prefers-color-scheme:dark){" + color_rules(kDark) + "}";
}

}  // namespace fleetrun::launch
