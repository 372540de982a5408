#include "launch/page/overlay.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/page/markup.h"

namespace fleetrun::launch {
namespace {

constexpr double kChartWidth = 480, kChartHeight = 260;  // of one chart; two stand beside each other
constexpr PlotArea kChartPlot = {.left = 52, .top = 30, .width = 416, .height = 200};
constexpr double kLegendLine = 18;

std::string draw_legend(const std::vector<NamedHistory>& histories, double top) {
  std::string text;
  for (std::size_t i = 0; i < histories.size(); ++i) {
    const double y = top + kLegendLine * static_cast<double>(i);
    text += fmt::format(
        "<g class=\"c{0}\"><line x1=\"{1}\" x2=\"{2}\" y1=\"{3}\" y2=\"{3}\" stroke=\"currentColor\" "
        "stroke-width=\"3\"/></g><text x=\"{4}\" y=\"{5}\">{6}</text>",
        i % kColors, kChartPlot.left, kChartPlot.left + 24, y, kChartPlot.left + 32, y + 4,
        escape_markup(histories[i].name));
  }
  return text;
}

}  // namespace

std::string overlay_svg(const std::vector<NamedHistory>& histories) {
  const std::vector<Chart> charts = charts_of(histories);
  if (charts.empty()) throw Error(ErrorKind::config, "found no logged step, wanted at least one");
  std::string text;
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const Chart& chart = charts[i];
    text += fmt::format(
        "<g transform=\"translate({} {})\"><text class=\"title\" x=\"{}\" y=\"18\">{}{}</text>{}</g>",
        static_cast<double>(i % 2) * kChartWidth, static_cast<double>(i / 2) * kChartHeight, kChartPlot.left,
        chart.title, chart.unit.empty() ? "" : ", " + chart.unit, draw_plot(chart, kChartPlot));
  }
  const double charts_height = kChartHeight * static_cast<double>((charts.size() + 1) / 2);
  const double height = charts_height + kLegendLine * static_cast<double>(histories.size()) + 10;
  return fmt::format(
             "{}\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\">"
             "<style>svg{{color:#1f2328;background:#fff;font:12px system-ui,sans-serif}}text{{fill:currentColor}}"
             ".title{{font-weight:600;font-size:13px}}",
             kOverlayStart, 2 * kChartWidth, height, 2 * kChartWidth, height) +
         chart_style() + "@media(prefers-color-scheme:dark){svg{color:#e6edf3;background:#0d1117}}</style>" +
         text + draw_legend(histories, charts_height + 8) + "</svg>\n";
}

}  // namespace fleetrun::launch
