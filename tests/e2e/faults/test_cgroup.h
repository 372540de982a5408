// A cgroup with a limit, made by a test to run a launcher in.
#pragma once
#include <optional>
#include <string>
#include <utility>

namespace fleetrun {

class TestCgroup {
 public:
  // By names of version 1 ("memory.limit_in_bytes"), or of version 2 when `controller` is only there. None where this
  // process may not make one.
  static std::optional<TestCgroup> make(const std::string& controller);
  TestCgroup(TestCgroup&& other) noexcept : path_(std::exchange(other.path_, "")), version_(other.version_) {}
  TestCgroup& operator=(TestCgroup&&) = delete;
  ~TestCgroup();  // removes it when it is empty

  bool set(const std::string& file, const std::string& value) const;  // false: there is no such limit
  int version() const { return version_; }
  const std::string& path() const { return path_; }
  std::string enter() const { return "echo $$ > " + path_ + "/cgroup.procs"; }  // for a shell

 private:
  TestCgroup(std::string path, int version) : path_(std::move(path)), version_(version) {}

  std::string path_;
  int version_;
};

}  // namespace fleetrun
