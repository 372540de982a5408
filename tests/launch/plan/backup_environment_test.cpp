#include "launch/plan/backup_environment.h"

#include <sys/stat.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.h"

namespace fleetrun::launch {
namespace {

TEST_CASE("the backup has what PaddlePaddle asks for and no secret") {
  Environment worker;
  worker.set("PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:1,127.0.0.1:2");
  worker.set("KEYBOARD", "us");
  worker.set("TOKENIZERS_PARALLELISM", "false");
  worker.set("PROXY", "http://me:hush@proxy:3128/");
  for (const char* name : {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_PASSWORD", "WANDB_API_KEY", "apikey",
                           "GITHUB_TOKENS", "MLFLOW_TRACKING_PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS"})
    worker.set(name, "hush");
  const std::string text = backup_environment(worker);
  CHECK(text.find("hush") == std::string::npos);
  const auto json = nlohmann::json::parse(text);
  CHECK(json["PADDLE_TRAINER_ENDPOINTS"] == "127.0.0.1:1,127.0.0.1:2");
  CHECK(json["KEYBOARD"] == "us");
  CHECK(json["TOKENIZERS_PARALLELISM"] == "false");
  CHECK(json["HF_TOKEN"] == "***");
  CHECK(json["PROXY"] == "http://me:***@proxy:3128/");
}

TEST_CASE("a password is found in a value of any length, and each of several") {
  Environment worker;
  const std::string user(200'000, 'a');
  worker.set("LONG", "http://" + user + ":hush@host and ftp://b:hush@host");
  worker.set("NONE", "http://" + user);
  worker.set("PORT", "http://host:80/x@y");
  const auto json = nlohmann::json::parse(backup_environment(worker));
  CHECK(json["LONG"] == "http://" + user + ":***@host and ftp://b:***@host");
  CHECK(json["NONE"] == "http://" + user);
  CHECK(json["PORT"] == "http://host:80/x@y");
}

TEST_CASE("a value that is not UTF-8 makes no invalid JSON") {
  Environment worker;
  worker.set("NAME", "a\xff");
  CHECK(nlohmann::json::parse(backup_environment(worker))["NAME"] == "a\xEF\xBF\xBD");
}

TEST_CASE("the file is for our user only, also where an older one of ours was for all") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  logs.write("backup_env.0.json", "old");
  ::chmod((folder / "log/backup_env.0.json").c_str(), 0644);
  Environment worker;
  worker.set("PADDLE_BACKUP_ENV_PATH", folder / "log/backup_env.0.json");
  write_backup_environment(worker, logs);
  struct stat facts {};
  REQUIRE(::stat((folder / "log/backup_env.0.json").c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  CHECK(nlohmann::json::parse(folder.read("log/backup_env.0.json")).size() == 1);
  write_backup_environment(Environment(), logs);  // names no file, makes none
}

}  // namespace
}  // namespace fleetrun::launch
