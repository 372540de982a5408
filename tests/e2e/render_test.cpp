// The batch files and manifests that fleetrun writes: read by the programs that check such files, and run with stand-ins for srun, ssh
// and so on that start everything on this host.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun::render_test {
namespace {

const std::string kSource = FLEETRUN_SOURCE_DIR;
const std::string kExamples = kSource + "/scripts/cluster";

// What no shell, YAML reader or systemd may change on the way to the program.
const Words kOddWords = {"two words",   "it's",       "say \"no\"", "$HOME",   "$(id)",  "`id`",
                         "back\\slash", "two\nlines", "#no",        "a,b",     "*",      "~",
                         "{a,b}",       "100%",       ";",          "",        "- x: y", "$$",
                         "%h",          "!x",         "\t",         "\xc3\xa9"};

constexpr const char* kSrun = R"(#!/bin/bash
while [[ $1 == --* ]]; do shift; done
runs=()
for ((node = 0; node < SLURM_JOB_NUM_NODES; ++node)); do
  SLURM_NODEID=$node "$@" &
  runs+=("$!")
done
code=0
for run in "${runs[@]}"; do wait "$run" || code=$?; done
exit "$code"
)";
constexpr const char* kScontrol = R"(#!/bin/bash
if [ "$1" = show ]; then echo 127.0.0.1; else echo "$@" >> requeued; fi
)";
// Without an environment and in another folder, as pbsdsh does.
constexpr const char* kPbsdsh = "#!/bin/bash\nshift 3\ncd / && exec env -i \"$@\"\n";
constexpr const char* kBlaunch =
    "#!/bin/bash\n[ \"$1 $3\" = '-z -no-shell' ] || exit 99\nshift 3\nexec \"$@\"\n";
// As a shell on another host: in a session of its own, with signals as usual. The host 127.0.0.9 cannot be reached.
constexpr const char* kSsh = R"(#!/bin/bash
[ "$5" = 127.0.0.9 ] && exit 255
exec env --default-signal=INT,QUIT,HUP,TERM,USR1,USR2 setsid --wait sh -c "$6"
)";
// In place of fleetrun: writes down its words.
constexpr const char* kShow = "#!/bin/bash\nprintf '%s\\0' \"$@\" > \"words$SLURM_NODEID\"\n";

// A folder with a batch file, and a PATH where the programs of batch systems are stand-ins.
struct Site {
  Site() {
    std::filesystem::create_directory(folder / "bin");
    for (const auto& [name, text] :
         {std::pair("srun", kSrun), std::pair("scontrol", kScontrol), std::pair("pbsdsh", kPbsdsh),
          std::pair("blaunch", kBlaunch), std::pair("ssh", kSsh), std::pair("show", kShow)}) {
      folder.write(std::string("bin/") + name, text);
      std::filesystem::permissions(folder / ("bin/" + std::string(name)), std::filesystem::perms::owner_all);
    }
    folder.write("nodes", "127.0.0.1\n127.0.0.1\n127.0.0.2\n");
  }

  // "batch" is the file of a run.
  void render(const std::string& target, const Words& own, const Words& words) const {
    Words command = {FLEETRUN_BINARY, "render", target, "--folder=" + folder.path()};
    command.insert(command.end(), own.begin(), own.end());
    command.emplace_back("--");
    command.insert(command.end(), words.begin(), words.end());
    const ChildResult result = run_child(command, options());
    REQUIRE_MESSAGE(result.code == 0, result.err);
    folder.write("batch", result.out);
  }

  // A run of two nodes with one rank each, in the shell.
  void render_two(const std::string& target, const std::string& script) const {
    Words words = {"--nproc_per_node=1", "--device=cpu", "--insecure", "--log_level=ERROR"};
    words.emplace_back(target == "ssh" ? "--ips=127.0.0.1,127.0.0.2" : "--nnodes=2");
    words.insert(words.end(), {"--", "/bin/bash", "-c", script});
    render(target, {std::string("--fleetrun=") + FLEETRUN_BINARY}, words);
  }

  ChildOptions options() const {
    const char* path = std::getenv("PATH");
    return {.folder = folder.path(),
            .environment = {{"PATH", folder.path() + "/bin:" + (path == nullptr ? "/usr/bin:/bin" : path)},
                            {"SLURM_JOB_ID", "77"},
                            {"SLURM_JOB_NUM_NODES", "2"},
                            {"SLURM_JOB_NODELIST", "n[1-2]"},
                            {"PBS_JOBID", "77.server"},
                            {"PBS_NODEFILE", "nodes"},
                            {"PBS_O_WORKDIR", folder.path()},
                            {"LSB_JOBID", "77"},
                            {"LSB_DJOB_HOSTFILE", "nodes"}}};
  }
  ChildResult run() const { return run_child({"/bin/bash", "batch"}, options()); }

  TemporaryFolder folder;
};

const Words kShellTargets = {"slurm", "pbs", "lsf", "ssh"};

// Both ranks say that they run, and wait for a signal that the rank handles.
constexpr const char* kWaitingRanks = "trap 'exit 5' USR1; touch up.$RANK; while :; do sleep 0.05; done";

void wait_for_ranks(const Site& site) {
  REQUIRE(comes_true([&] { return site.folder.has("up.0") && site.folder.has("up.1"); }, 60s));
}

std::vector<std::string> targets_offered() {
  std::istringstream lines(run_child({FLEETRUN_BINARY, "completion", "--offers", "--", "render", ""}).out);
  std::vector<std::string> names;
  std::string line;
  std::getline(lines, line);  // what the shell adds
  std::getline(lines, line);  // the front of the word
  while (std::getline(lines, line)) names.push_back(line.substr(0, line.find('\t')));
  return names;
}

std::vector<std::string> example_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kExamples))
    if (entry.path().extension() != ".md") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The command after "# Made by: ".
std::string made_by(const std::string& text) {
  const std::string mark = "# Made by: fleetrun ";
  const std::size_t start = text.find(mark);
  if (start == std::string::npos) return "";
  return text.substr(start + mark.size(), text.find('\n', start) - start - mark.size());
}

TEST_CASE("every example in scripts/cluster is what its command prints, and every target has one") {
  std::vector<std::string> shown;
  for (const std::string& file : example_files()) {
    INFO(file);
    const std::string text = content_of(file);
    const ChildResult result =
        run_child({"/bin/sh", "-c", std::string(FLEETRUN_BINARY) + " " + made_by(text)}, {.folder = kSource});
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(result.out == text);
    std::istringstream words(made_by(text));
    std::string render, target;
    words >> render >> target;
    shown.push_back(target);
  }
  std::vector<std::string> targets = targets_offered();
  std::sort(shown.begin(), shown.end());
  std::sort(targets.begin(), targets.end());
  CHECK(shown == targets);
}

TEST_CASE("bash and shellcheck find nothing wrong in the batch files, whatever the words are") {
  const bool has_shellcheck = has_program("shellcheck");
  const Site site;
  const auto check = [&](const std::string& path) {
    INFO(path);
    CHECK(run_child({"/bin/bash", "-n", path}).code == 0);
    if (!has_shellcheck) return;
    const ChildResult result = run_child({"/usr/bin/env", "shellcheck", "--shell=bash", path});
    CHECK_MESSAGE(result.code == 0, result.out);
  };
  for (const std::string& file : example_files())
    if (content_of(file).starts_with("#!")) check(file);
  for (const std::string& target : kShellTargets)
    for (const char* nodes : {"1", "2"}) {
      INFO(target << " on " << nodes);
      Words words = {"-n", "1", "--env=A=it's $x", "--log_dir=my logs", "--", "/bin/echo"};
      words.insert(words.begin(), target != "ssh"             ? std::string("--nnodes=") + nodes
                                  : std::string(nodes) == "1" ? "--ips=node1"
                                                              : "--ips=node1,node2");
      words.insert(words.end(), kOddWords.begin(), kOddWords.end());
      site.render(target, {}, words);
      check(site.folder / "batch");
    }
  if (!has_shellcheck) LEAVE_OUT("shellcheck is not installed");
}

TEST_CASE("a script for ssh ends the run when ssh does not reach a host, however early it says so") {
  const Site site;
  site.render("ssh", {std::string("--fleetrun=") + FLEETRUN_BINARY},
              {"--nproc_per_node=1", "--device=cpu", "--insecure", "--ips=127.0.0.1,127.0.0.9,127.0.0.2",
               "--", "/bin/true"});
  const ChildResult result = site.run();
  CHECK(result.code == 75);    // may be tried again
  CHECK(result.seconds < 60);  // --join_timeout is 600 s
}

TEST_CASE("every word reaches the program as it was typed") {
  for (const std::string& target : kShellTargets) {
    INFO(target);
    const Site site;
    Words words = {"-n", "1", "--", "/bin/echo"};
    if (target == "ssh") words.insert(words.begin(), "--ips=node1");
    words.insert(words.end(), kOddWords.begin(), kOddWords.end());
    site.render(target, {"--fleetrun=" + site.folder.path() + "/bin/show"}, words);
    ChildOptions options = site.options();
    options.environment["SLURM_JOB_NUM_NODES"] = "1";
    const ChildResult result = run_child({"/bin/bash", "batch"}, options);
    CHECK_MESSAGE(result.code == 0, result.err);
    const std::string got = site.folder.read(target == "slurm" ? "words0" : "words");
    std::string wanted;
    for (const std::string& word : Words{"--", "/bin/echo"}) wanted += word + '\0';
    for (const std::string& word : kOddWords) wanted += word + '\0';
    CHECK(got.ends_with(wanted));
  }
}

TEST_CASE("a batch file starts every node, and ends with the code of the run") {
  for (const std::string& target : kShellTargets) {
    INFO(target);
    const Site site;
    site.render_two(
        target,
        "touch up.$RANK; until [ -e up.0 ]; do sleep 0.05; done; [ $RANK = 1 ] && exit 7; while :; do sleep 0.05; done");
    const ChildResult result = site.run();
    CHECK_MESSAGE(result.code == 7, result.err);
    CHECK(site.folder.has("up.0"));
    CHECK(contains(result.err, "fleetrun: rank 1 exited with code 7"));
  }
}

TEST_CASE("hunt 44: a run that ends with 255 is not taken for a host that ssh cannot reach") {
  for (const char* nodes : {"--nnodes=2", "--nnodes=1:2"}) {
    INFO(nodes);
    const Site site;
    site.render("ssh", {std::string("--fleetrun=") + FLEETRUN_BINARY},
                {"--nproc_per_node=1", "--device=cpu", "--insecure", "--log_level=ERROR",
                 "--ips=127.0.0.1,127.0.0.2", nodes, "--max_restart=0", "--", "/bin/bash", "-c",
                 "[ $RANK = 1 ] && exit 255; while :; do sleep 0.05; done"});
    ChildOptions options = site.options();
    std::filesystem::create_directory(site.folder / "temporary");
    options.environment["TMPDIR"] = site.folder / "temporary";
    const ChildResult result = run_child({"/bin/bash", "batch"}, options);
    CHECK_MESSAGE(result.code == 255, result.err);
    CHECK_FALSE(contains(result.err, "stopping the run"));
    CHECK(contains(result.err, "fleetrun: rank 1 exited with code 255"));
  }
}

TEST_CASE("SIGTERM to a batch file stops the ranks of all nodes") {
  for (const char* target : {"pbs", "lsf", "ssh"}) {
    INFO(target);
    const Site site;
    site.render_two(target, kWaitingRanks);
    ChildProcess batch({"/bin/bash", "batch"}, site.options());
    wait_for_ranks(site);
    batch.send(SIGTERM);
    const ChildResult result = batch.wait();
    CHECK_MESSAGE(result.code == 143, result.err);
    CHECK(contains(result.err, "fleetrun: stopped by SIGTERM (15) on node 0 (127.0.0.1)"));
  }
}

TEST_CASE("Slurm's notice stops the run, and starts the job again only if it resumes") {
  for (const bool resumes : {false, true}) {
    const Site site;
    site.render_two("slurm", kWaitingRanks);
    std::string text = site.folder.read("batch");
    REQUIRE(contains(text, "\nresumes=false\n"));
    if (resumes) text.replace(text.find("resumes=false"), 13, "resumes=true");
    site.folder.write("batch", text);
    ChildProcess batch({"/bin/bash", "batch"}, site.options());
    wait_for_ranks(site);
    batch.send(SIGUSR1);
    const ChildResult result = batch.wait();
    CHECK_MESSAGE(result.code == 143, result.err);
    CHECK(site.folder.read("requeued") == (resumes ? "requeue 77\n" : ""));
  }
}

TEST_CASE("Slurm starts the job again after code 75, but not for ever") {
  for (const char* count : {"", "2", "3"}) {
    INFO("restarts before: " << count);
    const Site site;
    site.render_two("slurm", "exit 75");
    ChildOptions options = site.options();
    if (*count != '\0') options.environment["SLURM_RESTART_COUNT"] = count;
    CHECK(run_child({"/bin/bash", "batch"}, options).code == 75);
    CHECK(site.folder.has("requeued") == (std::string(count) != "3"));
  }
}

TEST_CASE("signals reach the run through ssh, and its exit code comes back") {
  for (const auto& each : {std::pair(SIGINT, 130), std::pair(SIGHUP, 129), std::pair(SIGUSR1, 5)}) {
    const auto& [signal, code] = each;
    INFO("signal " << each.first);
    const Site site;
    site.render_two("ssh", kWaitingRanks);
    ChildProcess batch({"/bin/bash", "batch"}, site.options());
    wait_for_ranks(site);
    batch.send(signal);
    const ChildResult result = batch.wait();
    CHECK_MESSAGE(result.code == code, result.err);
  }
}

TEST_CASE("a script for ssh that is killed leaves nothing behind on the hosts") {
  const Site site;
  site.render_two("ssh", "echo $$ > pid.$RANK; touch up.$RANK; while :; do sleep 0.05; done");
  ChildProcess batch({"/bin/bash", "batch"}, site.options());
  wait_for_ranks(site);
  const pid_t first = pid_in(site.folder, "pid.0", 60s), second = pid_in(site.folder, "pid.1", 60s);
  batch.send(SIGKILL);
  CHECK(comes_true([&] { return !is_alive(first) && !is_alive(second); }, 60s));
}

TEST_CASE("a host that ssh cannot reach stops the others, which wait for it") {
  const Site site;
  Words words = {"--ips=127.0.0.1,127.0.0.9", "-n", "1", "--device=cpu", "--insecure", "--", "/bin/true"};
  site.render("ssh", {std::string("--fleetrun=") + FLEETRUN_BINARY}, words);
  const ChildResult result = site.run();
  CHECK(result.code == 75);    // may be tried again
  CHECK(result.seconds < 30);  // much less than --join_timeout, 10 minutes
}

// The Python with kubernetes-validate; "" when there is none.
std::string python_for_manifests() {
  const char* chosen = std::getenv("FLEETRUN_PEERS_MANIFESTS");
  const char* home = std::getenv("HOME");
  const std::string folder =
      chosen != nullptr ? chosen
                        : std::string(home == nullptr ? "" : home) + "/.cache/fleetrun/peers-manifests";
  const std::string python = folder + "/bin/python3";
  return std::filesystem::exists(python) && run_child({python, "-c", "import kubernetes_validate"}).code == 0
             ? python
             : "";
}

constexpr const char* kNoValidator =
    "no Python has the package kubernetes-validate; scripts/setup --peers installs it";
const std::string kChecker = kSource + "/tests/e2e/render/check_manifests.py";

TEST_CASE("the schemas of Kubernetes, Kubeflow, JobSet and Volcano accept the manifests") {
  const std::string python = python_for_manifests();
  if (python.empty()) LEAVE_OUT(kNoValidator);
  const Site site;
  const auto check = [&](const std::string& path) {
    const ChildResult result = run_child({python, kChecker, path});
    INFO(path);
    CHECK_MESSAGE(result.code == 0, (result.out + result.err));
  };
  for (const std::string& file : example_files())
    if (file.ends_with(".yaml")) check(file);
  for (const char* target : {"k8s", "kubeflow", "jobset", "volcano"})
    for (const char* nodes : {"--nnodes=1", "--nnodes=3"}) {
      Words words = {nodes, "--nproc_per_node=2", "--device=cpu", "--timeout=5", "--", "/bin/echo"};
      words.insert(words.end(), kOddWords.begin(), kOddWords.end());
      site.render(target, {"--image=me/my:1", "--fleetrun=/opt/it's/fleetrun"}, words);
      check(site.folder / "batch");
    }
}

TEST_CASE("the schemas refuse a manifest with a mistake") {
  const std::string python = python_for_manifests();
  if (python.empty()) LEAVE_OUT(kNoValidator);
  const TemporaryFolder folder;
  for (const auto& each :
       {std::pair("resnet50.k8s.yaml", "completionMode"),
        std::pair("resnet50.k8s.yaml", "terminationGracePeriodSeconds"),
        std::pair("resnet50.kubeflow.yaml", "runPolicy"),
        std::pair("resnet50.kubeflow.yaml", "terminationGracePeriodSeconds"),
        std::pair("resnet50.jobset.yaml", "failurePolicy"),
        std::pair("resnet50.jobset.yaml", "completionMode"),
        std::pair("resnet50.jobset.yaml", "terminationGracePeriodSeconds"),
        std::pair("resnet50.volcano.yaml", "minAvailable"), std::pair("resnet50.volcano.yaml", "RestartJob"),
        std::pair("resnet50.volcano.yaml", "terminationGracePeriodSeconds")}) {
    const auto& [file, word] = each;
    std::string text = content_of(kExamples + "/" + file);
    text.replace(text.find(word), 3, "bad");
    folder.write("bad.yaml", text);
    INFO(each.first << ": " << each.second);
    CHECK(run_child({python, kChecker, folder / "bad.yaml"}).code == 1);
  }
}

TEST_CASE("Kubernetes passes every word as it was typed") {
  const std::string python = python_for_manifests();
  if (python.empty()) LEAVE_OUT(kNoValidator);
  for (const char* target : {"k8s", "kubeflow", "jobset", "volcano"}) {
    const Site site;
    Words words = {"--nproc_per_node=1", "--", "/bin/echo"};
    words.insert(words.end(), kOddWords.begin(), kOddWords.end());
    site.render(target, {}, words);
    const ChildResult result = run_child({python, kChecker, "--args", site.folder / "batch"});
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const Words got = nlohmann::json::parse(result.out).get<Words>();
    REQUIRE(got.size() > kOddWords.size());
    CHECK(Words(got.end() - std::ssize(kOddWords), got.end()) == kOddWords);
  }
}

TEST_CASE("systemd accepts the unit") {
  if (!has_program("systemd-analyze")) LEAVE_OUT("systemd-analyze is not installed");
  const Site site;
  const auto verify = [&](const Words& words) {
    site.render("systemd", {std::string("--fleetrun=") + FLEETRUN_BINARY}, words);
    site.folder.write("run.service", site.folder.read("batch"));
    return run_child({"/usr/bin/env", "systemd-analyze", "verify", site.folder / "run.service"});
  };
  Words odd = {"-n", "1", "--", "/bin/echo"};
  odd.insert(odd.end(), kOddWords.begin(), kOddWords.end());
  for (const Words& words : {Words{"-n", "1", "train.py"}, odd}) {
    const ChildResult result = verify(words);
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(result.err == "");
  }
}

// KillMode=mixed: systemd sends SIGTERM to the main process alone, and would kill what is left of the group.
TEST_CASE("SIGTERM to fleetrun alone, as systemctl stop of the unit sends it, leaves no process") {
  const Launch launch;
  ChildProcess unit({FLEETRUN_BINARY, "-n", "2", "--device=cpu", "--grace=0.1", "--", "/bin/bash", "-c",
                     ("(trap '' TERM; while :; do sleep 0.05; done) & echo $! > new.$RANK; "
                      "mv new.$RANK helper.$RANK; trap '' TERM; wait")},
                    launch.options());
  const pid_t first = launch.pid_in("helper.0"), second = launch.pid_in("helper.1");
  unit.send(SIGTERM);
  const ChildResult result = unit.wait();
  CHECK_MESSAGE(result.code == 143, result.err);  // SuccessExitStatus of the unit
  CHECK_FALSE(is_alive(first));
  CHECK_FALSE(is_alive(second));
}

TEST_CASE("a mistake in the command is reported, and nothing is printed") {
  const Launch launch;
  const auto refused = [&](const Words& words, int code, const std::string& message) {
    const ChildResult result = launch.run_words(words);
    INFO(words.back());
    CHECK(result.code == code);
    CHECK(result.out.empty());
    CHECK_MESSAGE(contains(result.err, message), result.err);
  };
  refused({"render"}, 2,
          "found no target, wanted slurm, pbs, lsf, k8s, kubeflow, jobset, volcano, systemd or ssh");
  refused({"render", "slum", "--", "train.py"}, 2, "did you mean slurm?");
  refused({"render", "slurm", "--nnodes=2", "train.py"}, 2, "unknown flag --nnodes");
  refused({"render", "slurm", "--", "-n", "1", "missing.json"}, 66, "missing.json");
  refused({"render", "slurm", "--"}, 2, "no script, program or job file given");
  refused({"render", "slurm", "--", "--ips=a,b", "train.py"}, 2, "Slurm chooses the hosts");
  refused({"render", "k8s", "--", "-n", "1", "--", "a\xff"}, 2, "is not UTF-8");
  launch.folder.write("bad.json", "{}");
  refused({"render", "slurm", "--", "-n", "1", "bad.json"}, 78, "bad.json");
}

}  // namespace
}  // namespace fleetrun::render_test
