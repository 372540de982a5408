#include "launch/cli/command_line.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error/error.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::command_line_test {
namespace {

using Words = std::vector<std::string>;

LaunchOptions parse(const Words& arguments, const Environment& environment = {}) {
  return parse_launch_options(arguments, environment).options;
}

std::string error_of(const Words& arguments, const Environment& environment = {}) {
  try {
    parse_launch_options(arguments, environment);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return error.message();
  }
  return "no error";
}

Environment with(const std::string& name, const std::string& value) {
  Environment environment;
  environment.set(name, value);
  return environment;
}

TEST_CASE("without flags everything has its default") {
  const LaunchOptions options = parse({"train.py"});
  CHECK_FALSE(options.gpus.value);
  CHECK_FALSE(options.nproc_per_node.value);
  CHECK(options.ips.value == "127.0.0.1");
  CHECK(options.log_dir.value == "log");
  CHECK(options.log_dir.origin == Origin::fallback);
  CHECK(options.grace.value == std::chrono::seconds(10));
  CHECK(options.program == "train.py");
  CHECK(options.arguments.empty());
}

TEST_CASE("a value may follow its flag or an equals sign, and dashes may stand for underscores") {
  for (const Words& words : {Words{"--nproc_per_node", "4", "x"}, Words{"--nproc_per_node=4", "x"},
                             Words{"--nproc-per-node=4", "x"}, Words{"--nproc-per-node", "4", "x"}})
    CHECK(parse(words).nproc_per_node.value == 4);
}

TEST_CASE("the names that the original has for one flag are one flag") {
  for (const char* name : {"--gpus", "--selected_gpus", "--devices"}) {
    const LaunchOptions options = parse({name, "0,1", "x"});
    CHECK(options.gpus.value == "0,1");
    CHECK(options.gpus.source == name);  // as the user wrote it
    CHECK(options.gpus.origin == Origin::flag);
  }
}

TEST_CASE("nothing after the program is interpreted") {
  const LaunchOptions options =
      parse({"--grace=1", "train.py", "--gpus=7", "--", "-h", "", "--no such\nflag"});
  CHECK(options.arguments == Words{"--gpus=7", "--", "-h", "", "--no such\nflag"});
  CHECK_FALSE(options.gpus.value);
}

TEST_CASE("after -- a program may have any name") {
  CHECK(parse({"--", "ps", "-e"}).program == "ps");
  CHECK(parse({"--", "--odd"}).program == "--odd");
  CHECK(parse({"-"}).program == "-");
}

TEST_CASE("an empty word is not a program") {
  CHECK(error_of({""}) == "the name of the script, program or job file is empty");
  CHECK(error_of({"--gpus=0", "", "train.py"}) == "the name of the script, program or job file is empty");
  CHECK(parse({"train.py", ""}).arguments == Words{""});
}

TEST_CASE("a flag wins over the environment, which wins over the default") {
  const Environment environment = with("PADDLE_NPROC_PER_NODE", "3");
  CHECK(parse({"x"}, environment).nproc_per_node.value == 3);
  CHECK(parse({"x"}, environment).nproc_per_node.origin == Origin::environment);
  CHECK(parse({"x"}, environment).nproc_per_node.source == "PADDLE_NPROC_PER_NODE");
  CHECK(parse({"--nproc_per_node=5", "x"}, environment).nproc_per_node.value == 5);
  CHECK(parse({"x"}, with("PADDLE_LOG_DIR", "")).log_dir.value == "log");
}

TEST_CASE("the last one of a repeated flag counts") {
  CHECK(parse({"--log_dir=a", "--log_dir=b", "x"}).log_dir.value == "b");
}

TEST_CASE("an empty value is as if the flag were not given, and takes no other word") {
  CHECK_FALSE(parse({"--gpus=", "x"}).gpus.value);
  CHECK(parse({"--gpus=", "x"}).program == "x");
  CHECK(parse({"--gpus", "", "x"}).program == "x");
  CHECK(parse({"--log_dir", "--gpus=", "x"}).log_dir.value == "--gpus=");
  CHECK(parse({"x", "--lr="}).arguments == Words{"--lr="});
}

TEST_CASE("a value keeps the equals signs at its end") {
  CHECK(parse({"--log_dir=d=", "x"}).log_dir.value == "d=");
  CHECK(parse({"--log_dir==", "x"}).log_dir.value == "=");
  const auto variables = parse({"--env=TOKEN=YWJjZA==", "--env=FOO=", "--env", "BAR=", "x"}).env.value;
  REQUIRE(variables.size() == 3);
  CHECK(variables[0].setting == "TOKEN=YWJjZA==");
  CHECK(variables[1].setting == "FOO=");
  CHECK(variables[2].setting == "BAR=");
}

TEST_CASE("a subcommand looks into the folder of --log_dir, the environment or the file of FLEETRUN_CONFIG") {
  const TemporaryFolder folder;
  folder.write("fleet.json", R"({"log_dir": "from_file"})");
  Environment environment = with("FLEETRUN_CONFIG", folder / "fleet.json");
  CHECK(find_log_dir({}, {}) == "log");
  CHECK(find_log_dir({}, environment) == "from_file");
  environment.set("PADDLE_LOG_DIR", "from_environment");
  environment.set("PADDLE_BACKUP_ENV_PATH", "from_environment/backup_env.0.json");  // as inside a worker
  CHECK(find_log_dir({}, environment) == "from_environment");
  CHECK(find_log_dir({.flags = {{"--log_dir", "given"}}, .rest = {}}, environment) == "given");
}

TEST_CASE("a value may begin with a dash") {
  CHECK(parse({"--log_dir", "-odd", "x"}).log_dir.value == "-odd");
}

TEST_CASE("unknown flags are refused with what was probably meant") {
  CHECK(error_of({"--nproc", "2", "x"}) == "unknown flag --nproc; did you mean --nproc_per_node?");
  CHECK(error_of({"--gpu=0", "x"}) == "unknown flag --gpu; did you mean --gpus?");
  CHECK(error_of({"--zzzzzzzz", "x"}) == "unknown flag --zzzzzzzz");
  CHECK(error_of({"-y", "x"}) == "unknown flag -y");
  CHECK(error_of({"--elastic_pre_hook=x", "x"}) == "unknown flag --elastic_pre_hook");
  CHECK(error_of({"--elastic_levle=1", "x"}) ==
        "unknown flag --elastic_levle");  // a hidden one is not offered
}

TEST_CASE("a bad value is quoted, with its flag or variable") {
  CHECK(error_of({"--nproc_per_node=two", "x"}) ==
        "--nproc_per_node is \"two\", must be a whole number between 1 and 65536, or auto, gpu or cpu");
  CHECK(error_of({"x"}, with("PADDLE_NPROC_PER_NODE", "0")) ==
        "PADDLE_NPROC_PER_NODE is \"0\", must be a whole number between 1 and 65536");
  CHECK(error_of({"--start_port=70000", "x"}) ==
        "--start_port is \"70000\", must be a port between 1 and 65535");
  CHECK(error_of({"--grace=-1", "x"}) == "--grace is \"-1\", must be a number of seconds, 0 or more");
  CHECK(error_of({"--grace=nan", "x"}) == "--grace is \"nan\", must be a number of seconds, 0 or more");
  CHECK(error_of({"--device=tpu", "x"}) == "--device is \"tpu\", must be cpu, cuda or auto");
  CHECK(error_of({"--timeout=1e18", "x"}) ==
        "--timeout is \"1e18\", must be at most 10000000 seconds, which are four months");
  CHECK(error_of({"--gpus"}) == "--gpus needs a value");
  CHECK(error_of({"-n"}) == "-n needs a value");
  CHECK(error_of({"--help=1", "x"}) == "--help takes no value");
}

TEST_CASE("hunt 18: a name of a run, or of its folder of logs, has no line breaks") {
  CHECK(error_of({"--job_id=two\nlines", "x"}) ==
        "--job_id is \"two?lines\", must be a name without line breaks or other control characters");
  CHECK(error_of({"--log_dir=two\nlines", "x"}) ==
        "--log_dir is \"two?lines\", must be a name without line breaks or other control characters");
  CHECK(error_of({"--job_id=r\xc3\xa9sum\xc3\xa9 7", "x"}) == "no error");
}

TEST_CASE("the number of nodes may be a range, which makes a run elastic") {
  CHECK(*parse({"x"}, with("PADDLE_NNODES", "2:4")).nnodes.value == NodeRange{2, 4});
  for (const char* text : {"0", "4:2", "2:", ":4", "2:4:6", "two"})
    CHECK(
        error_of({"--nnodes=" + std::string(text), "x"}) ==
        fmt::format("--nnodes is \"{}\", must be a whole number between 1 and 65536, or MIN:MAX such as 2:4",
                    text));
  CHECK(parse({"--elastic_timeout=5", "--spares=1", "x"}).spares.value == 1);
  CHECK(parse({"--elastic_timeout=5", "x"}).elastic_timeout.value == std::chrono::seconds(5));
  CHECK(parse({"--rejoin_at=a,[fd00::1],fd00::2", "x"}).rejoin_at.value == "a,fd00::1,fd00::2");
  CHECK(error_of({"--rejoin_at=a,b:6069", "x"}) ==
        "--rejoin_at is \"a,b:6069\", must be hosts without ports, such as 10.0.0.2,10.0.0.3");
  CHECK(parse({"x"}).elastic_timeout.value == std::chrono::seconds(30));
}

TEST_CASE("PaddlePaddle's flags for elastic runs name what stands for them, and harmless values are taken") {
  CHECK(parse({"--elastic_level=1", "x"}).notes ==
        std::vector<std::string>{"--elastic_level has no effect: --nnodes=MIN:MAX makes a run elastic, and "
                                 "--max_restart says how often it may start again"});
  CHECK(parse({"--elastic_level=-1", "--legacy=False", "--sort_ip=True", "x"}).program == "x");
  CHECK(*parse({"--nnodes=3:3", "x"}).nnodes.value == NodeRange{3, 3});
  CHECK(*parse({"--rank=2", "x"}).node_rank.value == 2);
  CHECK_FALSE(parse({"--rank=-1", "x"}).node_rank.value);  // as PaddlePaddle writes "not given"
  CHECK(parse({"--nnodes=1", "--rank=0", "--max_restart=0", "--run_mode=collective", "x"}).program == "x");
}

TEST_CASE("what a launcher was told about its nodes is not meant for a run that one of its ranks starts") {
  for (const char* of_a_rank : {"PADDLE_GLOBAL_RANK", "TORCHELASTIC_RUN_ID"}) {
    Environment environment = with(of_a_rank, "1");
    for (const auto& [name, value] : {std::pair("PADDLE_NNODES", "2"), std::pair("PADDLE_RANK", "1"),
                                      std::pair("PADDLE_IPS", "10.0.0.1,10.0.0.2"),
                                      std::pair("PADDLE_JOB_ID", "mine"), std::pair("PET_NNODES", "2")})
      environment.set(name, value);
    for (const CalledAs name : {CalledAs::fleetrun, CalledAs::torchrun}) {
      const LaunchOptions options = parse_launch_options({"x"}, environment, name).options;
      CHECK_FALSE(options.nnodes.value);
      CHECK_FALSE(options.node_rank.value);
      CHECK(options.ips.value == "127.0.0.1");
      CHECK(options.job_id.value == "mine");
    }
    CHECK(*parse({"--nnodes=3", "x"}, environment).nnodes.value == NodeRange{3, 3});
  }
}

TEST_CASE("the nodes in the file of FLEETRUN_CONFIG are not meant for a run that a rank starts") {
  const TemporaryFolder folder;
  folder.write("fleet.json", R"({"ips": "10.0.0.1,10.0.0.2", "nproc_per_node": 2})");
  Environment environment = with("FLEETRUN_CONFIG", folder / "fleet.json");
  CHECK(parse({"x"}, environment).ips.value == "10.0.0.1,10.0.0.2");
  environment.set("PADDLE_GLOBAL_RANK", "1");
  CHECK(parse({"x"}, environment).ips.value == "127.0.0.1");
  CHECK(parse({"x"}, environment).nproc_per_node.value->number == 2);
  CHECK(parse({"--config=" + (folder / "fleet.json"), "x"}, environment).ips.value == "10.0.0.1,10.0.0.2");
}

TEST_CASE("what ends a run or starts it again has its times and counts") {
  const LaunchOptions given = parse({"--max_restart=3", "--restart_delay=0.5", "--timeout=60",
                                     "--hang_timeout=0", "--straggler_after=0", "--early_exit_wait=5",
                                     "--log_rule=loss within 10s", "--cgroup=none", "x"});
  CHECK(given.max_restart.value == 3);
  CHECK(given.restart_delay.value == std::chrono::milliseconds(500));
  CHECK(given.timeout.value == std::chrono::seconds(60));
  CHECK_FALSE(given.hang_timeout.value);
  CHECK(given.hang_timeout.origin == Origin::flag);
  CHECK_FALSE(given.straggler_after.value);
  CHECK(parse({"train.py"}).straggler_after.value == std::chrono::seconds(20));
  CHECK(given.early_exit_wait.value == std::chrono::seconds(5));
  CHECK(given.log_rule.value->within == std::chrono::seconds(10));
  CHECK(given.cgroup.value == UseCgroup::none);
  CHECK(parse({"x"}, with("PADDLE_MAX_RESTART", "2")).max_restart.value == 2);
  CHECK(error_of({"--max_restart=many", "x"}) ==
        "--max_restart is \"many\", must be a whole number between 0 and 65536");
  CHECK_FALSE(parse({"x"}).restart_window.value);
  CHECK(parse({"--restart_window=3600", "x"}).restart_window.value == std::chrono::hours(1));
  CHECK_FALSE(parse({"--restart_window=0", "x"}).restart_window.value);
  CHECK(parse({"x"}).no_restart_on.value.empty());
  CHECK(parse({"--no_restart_on=3,137", "x"}).no_restart_on.value == std::vector{3, 137});
  for (const std::string text : {"0", "256", "3;4", "3,-1"})
    CHECK(error_of({"--no_restart_on=" + text, "x"}) ==
          "--no_restart_on is \"" + text + "\", must be exit codes between 1 and 255, such as 3,137");
  CHECK(error_of({"--cgroup=yes", "x"}) == "--cgroup is \"yes\", must be auto or none");
}

TEST_CASE("parameter-server flags are known and answered") {
  CHECK(error_of({"--server_num=2", "x"}) == "--server_num: parameter-server training is not supported yet");
  CHECK(error_of({"--heter-workers", "a", "x"}) ==
        "--heter_workers: parameter-server training is not supported yet");
  CHECK(error_of({"--run_mode=ps", "x"}) == "--run_mode is \"ps\": only collective is supported yet");
  CHECK(parse({"--servers=", "x"}).program == "x");
}

TEST_CASE("a command line without a program says so") {
  CHECK(error_of({"--gpus=0"}) == "no script, program or job file given");
  CHECK(error_of({}) == "no script, program or job file given");
}

TEST_CASE("help and version are answers, whatever else is there") {
  CHECK(parse_launch_options({"--version"}, {}).answer->starts_with("fleetrun "));
  const std::string help = *parse_launch_options({"--gpus=0", "-h"}, {}).answer;
  CHECK(help.find("--nproc_per_node") != std::string::npos);
  CHECK(help.find("--server_num") == std::string::npos);
}

TEST_CASE("a log level is one of the original's") {
  CHECK(parse({"--log_level=WARNING", "x"}).log_level.value == LogLevel::warning);
  CHECK(parse({"x"}, with("PADDLE_LOG_LEVEL", "DEBUG")).log_level.value == LogLevel::debug);
  CHECK(error_of({"--log_level=loud", "x"}) ==
        "--log_level is \"loud\", must be DEBUG, INFO, WARNING, ERROR or CRITICAL");
}

TEST_CASE("an optional value stands after an equals sign only") {
  const CommandLine line = parse_launch_options({"--show_config", "json", "x"}, {});
  CHECK(line.answer->starts_with("gpus "));
  CHECK(parse_launch_options({"--show_config=json", "x"}, {}).answer->starts_with("{"));
  CHECK(error_of({"--show_config=xml", "x"}) == "--show_config is \"xml\", must be text or json");
}

TEST_CASE("metrics are for this host, unless an address is given") {
  CHECK(parse({"--metrics_port=9100", "train.py"}).metrics_port.value == Endpoint{"127.0.0.1", 9100});
  CHECK(parse({"--metrics_port=0", "train.py"}).metrics_port.value == Endpoint{"127.0.0.1", 0});
  CHECK(parse({"--metrics_port=0.0.0.0:9100", "train.py"}).metrics_port.value == Endpoint{"0.0.0.0", 9100});
  CHECK(parse({"--metrics_port=[::1]:9100", "train.py"}).metrics_port.value == Endpoint{"::1", 9100});
  for (const char* bad : {"65536", "-1", "x", ":9100", "0.0.0.0:"})
    CHECK(error_of({"--metrics_port=" + std::string(bad), "train.py"}) ==
          "--metrics_port is \"" + std::string(bad) +
              "\", must be a port, 0 for any that is free, or ADDRESS:PORT");
}

TEST_CASE("seconds may have a fraction") {
  CHECK(parse({"--grace=0.25", "x"}).grace.value == std::chrono::milliseconds(250));
  CHECK(parse({"--grace=0", "x"}).grace.value == std::chrono::seconds(0));
}

TEST_CASE("the nodes are examined before a run only with --preflight") {
  CHECK_FALSE(parse({"train.py"}).preflight.value);
  CHECK(parse({"--preflight", "train.py"}).preflight.value);
}

}  // namespace
}  // namespace fleetrun::launch::command_line_test
