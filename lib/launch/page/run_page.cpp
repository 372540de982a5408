#include "launch/page/run_page.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/page/history_charts.h"
#include "launch/page/markup.h"
#include "launch/page/page_style.h"

namespace fleetrun::launch {
namespace {

constexpr double kWidth = 420, kHeight = 190;  // of a chart; also about its pixels on a phone
constexpr PlotArea kPlot = {.left = 46, .top = 8, .width = 366, .height = 156};
constexpr double kKibOfMib = 1024;
constexpr std::string_view kRunningMain =
    "<main data-running>";  // then a page that was opened as a file loads itself again
// Of what a step of a job consists, and an evaluation. The rest of a rank's time belongs to no step.
constexpr std::array kPartsOfStep = {TimeUse::data, TimeUse::compute, TimeUse::communication};

std::size_t index_of(TimeUse use) { return static_cast<std::size_t>(use); }

std::string section(const std::string& title, const std::string& content, const char* classes = "wide") {
  return content.empty()
             ? ""
             : fmt::format("<section class=\"{}\"><h2>{}</h2>{}</section>\n", classes, title, content);
}

std::string pre(const std::string& text) {
  return text.empty() ? "" : "<pre>" + escape_markup(text) + "</pre>";
}

std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

std::string folded(const char* id, const std::string& summary, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<details id=\"{}\"><summary>{}</summary>{}</details>", id, summary, content);
}

std::string link(const std::string& file) {
  const std::string safe = escape_markup(file);
  return file.empty() ? "" : fmt::format("<a href=\"{0}\">{0}</a>", safe);
}

std::string duration(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long>(seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string header(const PageFacts& facts) {
  const bool good = facts.end && facts.end->exit_code == 0;
  const std::string state = !facts.end ? "running"
                            : good     ? "finished"
                                       : fmt::format("ended with code {}", facts.end->exit_code);
  std::string text =
      fmt::format("<header><h1>{} <span class=\"state {}\">{}</span></h1>", escape_markup(facts.name),
                  !facts.end ? "run"
                  : good     ? "good"
                             : "bad",
                  state);
  text += fmt::format("<p>{} on {}, since {}, {} {}</p>", plural(facts.ranks.size(), "rank"),
                      escape_markup(facts.host), facts.started, facts.end ? "took" : "so far",
                      duration(facts.seconds));
  text += fmt::format("<p>{}</p><p>run {}, fleetrun {}</p>", escape_markup(facts.command),
                      escape_markup(facts.run_id), escape_markup(facts.version));
  if (!facts.progress.empty()) text += "<p>" + escape_markup(facts.progress) + "</p>";
  return text + "<p id=\"watch\"></p></header>\n";
}

// What failed, why, and what the other ranks did.
std::string cause(const PageFacts& facts) {
  if (!facts.end || facts.end->exit_code == 0) return "";
  const PageEnd& end = *facts.end;
  std::string text = fmt::format("<p><b>{}</b></p>", escape_markup(end.message));
  if (end.message.find(end.exception) == std::string::npos)
    text += "<p>" + escape_markup(end.exception) + "</p>";
  for (const std::string& fact : end.evidence) text += "<p>" + escape_markup(fact) + "</p>";
  if (!end.last_lines.empty()) text += "<h2>Last lines of its log</h2>" + pre(lines(end.last_lines));
  if (!end.roll_call.empty()) text += "<h2>What the ranks were doing</h2>" + pre(lines(end.roll_call));
  text += folded("printed", "What fleetrun printed", pre(end.text));
  return section("Cause: " + escape_markup(end.cause), text, "wide cause");
}

std::string charts(const PageFacts& facts) {
  std::string text;
  for (const Chart& chart : charts_of({{"", facts.history}})) {
    std::string key;
    if (chart.series.size() > 1)
      for (const Series& series : chart.series)
        key += fmt::format("<span class=\"c{}\"><i></i><span>{}</span></span>", series.color, series.name);
    text += fmt::format(
        "<section><output></output><h2>{} <small>{}</small></h2><svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" "
        "aria-label=\"{}\">{}</svg>{}</section>\n",
        chart.title, chart.unit, kWidth, kHeight, chart.title, draw_plot(chart, kPlot),
        key.empty() ? "" : "<div class=\"key\">" + key + "</div>");
  }
  return text;
}

// A bar in which each part has its share of `whole`.
std::string bar(const std::vector<std::pair<std::size_t, double>>& parts, double whole) {
  std::string text = "<div class=\"bar\">";
  for (const auto& [color, part] : parts)
    if (part > 0)
      text += fmt::format("<i class=\"c{}\" style=\"width:{:.2f}%\"></i>", color, 100 * part / whole);
  return text + "</div>";
}

std::string goodput(const PageFacts& facts) {
  TimeUses sums{};
  for (const PageRank& rank : facts.ranks)
    for (std::size_t use = 0; use < kTimeUses; ++use) sums[use] += rank.spent_ns[use];
  const auto whole = static_cast<double>(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}));
  if (whole <= 0) return "";
  std::vector<std::pair<std::size_t, double>> parts;
  std::string key;
  for (std::size_t use = 0; use < kTimeUses; ++use) {
    const auto part = static_cast<double>(sums[use]);
    parts.emplace_back(use, part);
    key += fmt::format("<span class=\"c{}\"><i></i><span>{} {:.1f} %</span></span>", use, kTimeUseNames[use],
                       100 * part / whole);
  }
  return section("Goodput <small>where the time of the ranks went</small>",
                 bar(parts, whole) + "<div class=\"key\">" + key + "</div>");
}

double ms_per_step(const PageRank& rank, TimeUse use) {
  return rank.steps == 0
             ? 0
             : static_cast<double>(rank.spent_ns[index_of(use)]) / 1e6 / static_cast<double>(rank.steps);
}

double ms_per_step(const PageRank& rank) {
  double sum = 0;
  for (const TimeUse use : kPartsOfStep) sum += ms_per_step(rank, use);
  return sum;
}

std::string row(const PageRank& rank, double slowest) {
  std::string text = fmt::format("<tr class=\"{}\"><td class=\"n\">{}</td><td>{}</td>",
                                 escape_markup(rank.role), rank.rank, escape_markup(rank.state));
  text += rank.peak_kib == 0 ? "<td class=\"n\"></td>"
                             : fmt::format("<td class=\"n\">{:.0f} MiB</td>",
                                           static_cast<double>(rank.peak_kib) / kKibOfMib);
  if (slowest > 0) {
    std::vector<std::pair<std::size_t, double>> parts;
    for (const TimeUse use : kPartsOfStep) {
      parts.emplace_back(index_of(use), ms_per_step(rank, use));
      text += fmt::format("<td class=\"n\">{:.2f}</td>", parts.back().second);
    }
    text += fmt::format("<td class=\"n\">{:.2f}</td><td>{}</td>", ms_per_step(rank), bar(parts, slowest));
  }
  return text + "<td>" + link(rank.log) + "</td></tr>\n";
}

std::string ranks(const PageFacts& facts) {
  double slowest = 0;
  for (const PageRank& rank : facts.ranks) slowest = std::max(slowest, ms_per_step(rank));
  std::string text =
      "<div class=\"scroll\"><table><tr><th class=\"n\">rank</th><th>state</th><th class=\"n\">memory</th>";
  if (slowest > 0) {
    for (const TimeUse use : kPartsOfStep)
      text += fmt::format("<th class=\"n c{}\">{}</th>", index_of(use), kTimeUseNames[index_of(use)]);
    text += "<th class=\"n\">step, ms</th><th></th>";
  }
  text += "<th>log</th></tr>\n";
  for (const PageRank& rank : facts.ranks) text += row(rank, slowest);
  return section(slowest > 0
                     ? "Ranks <small>milliseconds per step, with evaluations, and the most memory</small>"
                     : "Ranks",
                 text + "</table></div>");
}

std::string restarts(const PageFacts& facts) {
  std::string text;
  for (const PageAttempt& attempt : facts.attempts)
    text += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td></tr>", attempt.number,
                        escape_markup(attempt.message), escape_markup(attempt.folder));
  if (text.empty()) return "";
  return section(
      fmt::format("Restarts: {}", facts.attempts.size()),
      "<div class=\"scroll\"><table><tr><th class=\"n\">attempt</th><th>how it ended</th><th>logs</th></tr>" +
          text + "</table></div>");
}

std::string keys(const PageFacts& facts, bool set) {
  std::string text;
  for (const PageKey& key : facts.job)
    if (key.is_set == set)
      text += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"soft\">{}</td></tr>", escape_markup(key.key),
                          escape_markup(key.value), escape_markup(key.origin));
  return text.empty() ? "" : "<div class=\"scroll\"><table>" + text + "</table></div>";
}

std::string job(const PageFacts& facts) {
  return section("Job", keys(facts, true) +
                            folded("defaults", "All other keys, with their defaults", keys(facts, false)));
}

std::string files(const PageFacts& facts) {
  std::string text;
  for (const std::string& file : facts.files) text += (text.empty() ? "" : ", ") + link(file);
  return section("Files", text);
}

}  // namespace

std::string run_page(const PageFacts& facts) {
  return page_head(facts.name + " - fleetrun") + "<body>" + std::string(facts.end ? "<main>" : kRunningMain) +
         "\n" + header(facts) + cause(facts) + charts(facts) + goodput(facts) + ranks(facts) +
         restarts(facts) + section("Notes", pre(lines(facts.notes))) + job(facts) + files(facts) + "</main>" +
         page_script() + "</body></html>\n";
}

std::string page_after_end(std::string page) {
  const std::size_t at = page.find(kRunningMain);
  if (at == std::string::npos) return page;
  page.replace(
      at, kRunningMain.size(),
      "<main>\n" + section("fleetrun was killed",
                           "<p>Nobody has written how this run ended. The rest of the page is from the "
                           "time when it still ran.</p>"));
  return page;
}

std::string waiting_page(const std::string& folder) {
  return page_head("fleetrun") + "<body>" + std::string(kRunningMain) +
         "<header><h1>Waiting for a run</h1><p>No run has written its page in " + escape_markup(folder) +
         " yet.</p><p id=\"watch\"></p></header></main>" + page_script() + "</body></html>\n";
}

}  // namespace fleetrun::launch
