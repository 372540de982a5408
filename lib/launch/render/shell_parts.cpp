#include "launch/render/shell_parts.h"

#include <fmt/format.h>

#include "launch/cli/flags/shell_words.h"
#include "launch/render/batch_text.h"

namespace fleetrun::launch {
namespace {

// shellcheck takes a comma between words without quotes for a mistake.
std::string quote_item(const std::string& word) {
  const std::string quoted = quote_word(word);
  return quoted == word && word.find(',') != std::string::npos ? quote_always(word) : quoted;
}

}  // namespace

std::string file_header(const BatchRun& run, const std::string& what, const std::string& how) {
  return as_comment(what + "\nMade by: " + quote_words(run.made_by) + "\n\n" + how);
}

std::string arguments_array(const BatchRun& run) {
  std::string text = "arguments=(\n";
  for (const auto* words : {&run.flags, &run.program})
    for (const std::string& word : *words) text += "  " + quote_item(word) + "\n";
  return text + ")\n";
}

std::string nnodes_value(const BatchRun& run, const std::string& most) {
  return run.least_to_start ? fmt::format("{}:{}", *run.least_to_start, most) : most;
}

std::string program_name(const BatchRun& run) {
  return quote_word(run.own.fleetrun.empty() ? "fleetrun" : run.own.fleetrun);
}

std::string change_folder(const BatchRun& run) {
  return run.own.folder.empty() ? "" : "cd " + quote_word(run.own.folder) + " || exit 66\n";
}

std::string wait_for_run(const BatchRun& run) {
  return std::string(run.nodes > 1 ? "began=$(date +%s)\n" : "") +
         R"(# A signal interrupts wait, so a trap asks for another one.
again=true
while $again; do
  again=false
  wait "$run"
  code=$?
done
)";
}

std::string start_nodes(const BatchRun& run, const std::string& others) {
  if (run.nodes == 1)
    return R"("$fleetrun" --log_dir="$logs" "${arguments[@]}" &
run=$!
)";
  return fill(R"(# start RANK WORDS: becomes fleetrun as this node; the words start a program on its host.
start() {
  local rank=$1
  shift
  exec "$@" "$fleetrun" --nnodes="<<nnodes>>" --node_rank="$rank" --master="${hosts[0]}:$port" \
    --log_dir="$logs/node-$rank" "${arguments[@]}"
}

<<others>>
start 0 env &
run=$!
)",
              {{"others", others}, {"nnodes", nnodes_value(run, "${#hosts[@]}")}});
}

std::string meeting_port(const BatchRun& run, const std::string& job_number) {
  if (run.port) return "# The nodes meet at the first one.\nport=" + std::to_string(*run.port) + "\n";
  return "# The nodes meet at the first one. The port depends on the job, because another job may use the same node.\n"
         "port=$((15000 + " +
         job_number + " % 10000))\n";
}

std::string code_of_finished_run(const BatchRun& run) {
  if (run.nodes == 1) return "";
  return R"(# When this run has finished, the code of a node that was lost before does not count.
if [ "$code" != 0 ] && find "$logs" -path '*/node-*/report.json' -newermt "@$began" \
  -exec grep -q '^  "cause": "finished"' {} \; -print -quit 2>/dev/null | grep -q .; then
  code=0
fi
)";
}

std::string wait_for_first_node(const BatchRun& run) {
  return R"(
# fleetrun stops the ranks of all nodes. A rank of a job file with checkpoints saves one first.
trap 'again=true; kill -s TERM "$run"' INT TERM

)" + wait_for_run(run) +
         R"(
# All nodes end with the same exit code.
wait
)" + code_of_finished_run(run) +
         "exit \"$code\"\n";
}

}  // namespace fleetrun::launch
