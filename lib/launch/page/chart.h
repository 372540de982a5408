// Line charts as SVG.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace fleetrun::launch {

using Points = std::vector<std::pair<double, double>>;  // x and y

struct Series {
  std::string name;
  Points points;
  bool dots = false;  // draws each point, not only the line
  std::size_t color = 0;
};

struct Chart {
  std::string title;
  std::string unit = {};  // of y
  std::vector<Series> series;
};

struct PlotArea {
  double left = 0, top = 0, width = 0, height = 0;  // in units of the picture
};

// What a picture of `columns` pixel columns shows of the points: of each column the first, the lowest, the highest and the last
// one (M4: Jugel, Jerzak, Hackenbroich, Markl, "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014). The line
// through them has the same pixels as the line through all points. Points with a number that is not finite, or 1e300 or more, are left out.
// The x of `points` never falls.
Points thin(const Points& points, double first_x, double last_x, std::size_t columns);

// Round numbers from about `low` to about `high`, at most `most` + 1 of them.
std::vector<double> ticks(double low, double high, int most);

// Axes, lines and labels inside the area; "" when no series has a point. A line's points and the limits of both axes are in the
// markup (data-x, data-y), from which the script of the page reads the values under the pointer.
std::string draw_plot(const Chart& chart, const PlotArea& area);

constexpr std::size_t kColors = 8;
// Rules of CSS for the classes that draw_plot uses, in light and dark.
std::string chart_style();

}  // namespace fleetrun::launch
