#include "runtime/eval/confusion_svg.h"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "base/text/printable.h"
#include "base/text/xml.h"

namespace fleetrun::runtime {
namespace {

// In the picture's units, which are pixels unless it is scaled.
constexpr double kGrid = 640;  // the largest side of the matrix
constexpr double kLargestCell = 48, kSmallestNamedCell = 9, kLargestLetter = 13;
constexpr double kMargin = 16, kHead = 56;
constexpr double kWidthOfLetter = 0.62;  // of its height, in most fonts
constexpr std::size_t kMostCounts = 20;  // classes whose cells have their counts
constexpr std::size_t kLongestAxisName = 24;
constexpr std::size_t kMostCells =
    20000;  // those with the most images; a larger picture would take seconds to open

constexpr const char* kStyle =
    "<style>text{font-family:system-ui,sans-serif;fill:#1f2328}.paper{fill:#fff}.frame{fill:none;stroke:#8c959f}"
    ".hit{fill:#0969da}.miss{fill:#cf5a00}.on{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.frame{stroke:#6e7681}"
    ".hit{fill:#2f81f7}.miss{fill:#db6d28}.on{fill:#fff}}</style>\n";

struct Layout {
  std::size_t classes = 0;
  double cell = 0, letter = 0;
  double names = 0;  // room for the names of the classes, beside and below the matrix
  bool has_names = false, has_counts = false;

  double left() const { return kMargin + 20 + names; }
  double side() const { return cell * static_cast<double>(classes); }
  double at(std::int32_t place) const { return cell * static_cast<double>(place); }
};

std::string shown_name(const EvalReport& report, std::size_t label) {
  return printable_start(report.subject.classes[label], kLongestAxisName);
}

Layout plan_layout(const EvalReport& report) {
  Layout layout = {.classes = report.subject.classes.size()};
  layout.cell = std::min(kLargestCell, kGrid / static_cast<double>(layout.classes));
  layout.has_names = layout.cell >= kSmallestNamedCell;
  layout.has_counts = layout.classes <= kMostCounts;
  layout.letter = std::min(kLargestLetter, layout.cell * 0.9);
  std::size_t longest = 0;
  for (std::size_t i = 0; layout.has_names && i < layout.classes; ++i)
    longest = std::max(longest, shown_name(report, i).size());
  layout.names = kWidthOfLetter * layout.letter * static_cast<double>(longest) + 8;
  return layout;
}

using Cell = std::pair<std::pair<std::int32_t, std::int32_t>, std::int64_t>;

std::vector<Cell> drawn_cells(const EvalReport& report) {
  std::vector<Cell> cells(report.confusion.begin(), report.confusion.end());
  if (cells.size() <= kMostCells) return cells;
  std::stable_sort(cells.begin(), cells.end(),
                   [](const Cell& a, const Cell& b) { return a.second > b.second; });
  cells.resize(kMostCells);
  return cells;
}

// Pale cells have letters in the colour of other text, and strong ones in white.
void draw_count(const Layout& layout, const Cell& cell, double share, std::string& svg) {
  const auto& [label, predicted] = cell.first;
  const double letter =
      std::min(layout.letter,
               layout.cell / (kWidthOfLetter * static_cast<double>(std::to_string(cell.second).size() + 1)));
  fmt::format_to(std::back_inserter(svg),
                 "<text{} x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\">{}</text>\n",
                 share > 0.5 ? " class=\"on\"" : "", layout.at(predicted) + layout.cell / 2,
                 layout.at(label) + layout.cell / 2 + 0.35 * letter, letter, cell.second);
}

void draw_cells(const EvalReport& report, const Layout& layout, std::string& svg) {
  std::map<std::int32_t, std::int64_t> images;
  for (const ClassQuality& one : report.by_class) images[one.label] = one.images;
  svg += "<g text-anchor=\"middle\">\n";
  for (const Cell& cell : drawn_cells(report)) {
    const auto& [label, predicted] = cell.first;
    const double share = static_cast<double>(cell.second) / static_cast<double>(images[label]);
    fmt::format_to(std::back_inserter(svg),
                   "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
                   "fill-opacity=\"{:.2f}\"/>\n",
                   label == predicted ? "hit" : "miss", layout.at(predicted), layout.at(label), layout.cell,
                   layout.cell, 0.1 + 0.9 * share);
    if (layout.has_counts) draw_count(layout, cell, share, svg);
  }
  svg += "</g>\n";
}

void draw_names(const EvalReport& report, const Layout& layout, std::string& svg) {
  if (!layout.has_names) return;
  for (std::size_t i = 0; i < layout.classes; ++i) {
    const std::string name = xml_text(shown_name(report, i));
    const double middle = layout.at(static_cast<std::int32_t>(i)) + layout.cell / 2 + 0.35 * layout.letter;
    fmt::format_to(std::back_inserter(svg),
                   "<text x=\"-6\" y=\"{0:.1f}\" font-size=\"{1:.1f}\" text-anchor=\"end\">{2}</text>\n"
                   "<text transform=\"translate({0:.1f},{3:.1f}) rotate(-90)\" font-size=\"{1:.1f}\" "
                   "text-anchor=\"end\">{2}</text>\n",
                   middle, layout.letter, name, layout.side() + 6);
  }
}

std::string title_of(const EvalReport& report) {
  return fmt::format("accuracy {:.4f}, {}, {}", report.score.acc1, plural(report.score.samples, "image"),
                     plural(report.subject.classes.size(), "class", "es"));
}

}  // namespace

std::string confusion_svg(const EvalReport& report) {
  const Layout layout = plan_layout(report);
  const double width = std::max(layout.left() + layout.side() + kMargin, 420.0);
  const double height = kHead + layout.side() + layout.names + 20 + kMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\">\n<title>Confusion matrix: {2}</title>\n{3}<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
      "<text x=\"{4:.0f}\" y=\"26\" font-size=\"16\">{2}</text>\n",
      width, height, title_of(report), kStyle, kMargin);
  fmt::format_to(std::back_inserter(svg), "<text x=\"{:.0f}\" y=\"44\" font-size=\"11\">{}</text>\n", kMargin,
                 xml_text(report.subject.model));
  fmt::format_to(
      std::back_inserter(svg),
      "<text transform=\"translate({:.0f},{:.1f}) rotate(-90)\" font-size=\"12\" text-anchor=\"middle\">"
      "label</text>\n<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\" text-anchor=\"middle\">predicted</text>\n",
      kMargin + 8, kHead + layout.side() / 2, layout.left() + layout.side() / 2, height - kMargin);
  fmt::format_to(std::back_inserter(svg), "<g transform=\"translate({:.1f},{:.0f})\">\n", layout.left(),
                 kHead);
  draw_cells(report, layout, svg);
  fmt::format_to(std::back_inserter(svg), "<rect class=\"frame\" width=\"{0:.1f}\" height=\"{0:.1f}\"/>\n",
                 layout.side());
  draw_names(report, layout, svg);
  return svg + "</g>\n</svg>\n";
}

}  // namespace fleetrun::runtime
