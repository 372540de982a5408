// Lists from public sources:
//   unkaktus/robin, batchsystem/slurm/list_test.go
//   mila-iqia/milabench, tests/test_slurm.py
//   the tests of aedttest.clusters.job_hosts (parse_hosts_slurm)
//   Lightning-AI/pytorch-lightning, tests/tests_fabric/plugins/environments/test_slurm.py
#include "launch/schedulers/slurm_lists.h"

#include <doctest/doctest.h>

#include "launch/schedulers/facts.h"

namespace fleetrun::launch::slurm_lists_test {
namespace {

using Words = std::vector<std::string>;

Words hosts(const std::string& text) { return expand_hosts("LIST", text); }

std::string error_in(const std::string& text) {
  return test::error_of([&] { hosts(text); });
}

TEST_CASE("brackets become the hosts that they stand for, in their order") {
  CHECK(hosts("node1") == Words{"node1"});
  CHECK(hosts("alpha,beta,gamma") == Words{"alpha", "beta", "gamma"});
  CHECK(hosts("host[5-9,1]") == Words{"host5", "host6", "host7", "host8", "host9", "host1"});
  CHECK(hosts("1.2.3.[089,100-101]") == Words{"1.2.3.089", "1.2.3.100", "1.2.3.101"});
  CHECK(hosts("node1,cn-d[003-004,006],node5,kep-d[03-04,06]") ==
        Words{"node1", "cn-d003", "cn-d004", "cn-d006", "node5", "kep-d03", "kep-d04", "kep-d06"});
  CHECK(hosts("i01r07c03s[10-12,14]opa,i01r07c04s[10-12],i01r07c05s[12-13]") ==
        Words{"i01r07c03s10opa", "i01r07c03s11opa", "i01r07c03s12opa", "i01r07c03s14opa", "i01r07c04s10",
              "i01r07c04s11", "i01r07c04s12", "i01r07c05s12", "i01r07c05s13"});
  const Words many = hosts("host_a[2-5,7,14-15],host_b,host_c[008-010,012,017-019],host_d[099-101]");
  CHECK(many.size() == 18);
  CHECK(many[10] == "host_c010");
  CHECK(many.back() == "host_d101");
}

TEST_CASE("of several brackets in a name, the last varies fastest") {
  CHECK(hosts("node[001-002,7],gpu-a[1-2]b[3-4]") ==
        Words{"node001", "node002", "node7", "gpu-a1b3", "gpu-a1b4", "gpu-a2b3", "gpu-a2b4"});
}

TEST_CASE("the width of the first number counts, and longer numbers stay whole") {
  CHECK(hosts("n[08-11]") == Words{"n08", "n09", "n10", "n11"});
  CHECK(hosts("n[98-101]") == Words{"n98", "n99", "n100", "n101"});
}

TEST_CASE("lists that make no sense are errors that quote them") {
  CHECK(error_in("node[1-2") == "LIST is \"node[1-2\": the last bracket is not closed");
  CHECK(error_in("node1-2]") == "LIST is \"node1-2]\": its brackets do not match at ']'");
  CHECK(error_in("node[1[2]]") == "LIST is \"node[1[2]]\": its brackets do not match at '['");
  CHECK(error_in("node[]") == "LIST is \"\": must be a number or a range such as 01-16");
  CHECK(error_in("node[a-b]") == "LIST is \"a\": must be a number or a range such as 01-16");
  CHECK(error_in("node[3-1]") == "LIST is \"3-1\": the range ends before it begins");
  CHECK(error_in("node[-1]") == "LIST is \"\": must be a number or a range such as 01-16");
  CHECK(error_in("a,,b") == "LIST has an empty host name");
  CHECK(error_in("-rf") == "LIST has \"-rf\", which is not a host name");
  CHECK(error_in("a;b") == "LIST has \"a;b\", which is not a host name");
  CHECK(error_in(std::string("a\x1b[1]")) == "LIST has \"a?1\", which is not a host name");
}

TEST_CASE("lists with a billion hosts end with an error at once") {
  CHECK(error_in("node[1-1000000000]") == "LIST is \"1-1000000000\": the range has more than 65536 nodes");
  CHECK(error_in("n[1-9999]x[1-9999]x[1-9999]") == "LIST lists more than 65536 nodes");
  CHECK(error_in("n[1-40000],m[1-40000]") == "LIST lists more than 65536 nodes");
  CHECK(error_in("n[99999999999999999999-99999999999999999999]").find("must be a number") !=
        std::string::npos);
  CHECK(error_in("n[0000000000000000000000000000000000000000000000000000000001]").find("must be a number") !=
        std::string::npos);
  CHECK(error_in(std::string(5 << 20, 'n')) == "LIST is longer than 4 MiB");
  CHECK(error_in(std::string(300, 'n')).find("which is not a host name") != std::string::npos);
}

TEST_CASE("counts may be repeated") {
  CHECK(expand_counts("COUNTS", "2(x3),1") == std::vector{2, 2, 2, 1});
  CHECK(expand_counts("COUNTS", "1") == std::vector{1});
  const auto error = [](const std::string& text) {
    return test::error_of([&] { expand_counts("COUNTS", text); });
  };
  CHECK(error("2(x3") == "COUNTS is \"2(x3\": must be counts such as 2(x3),1");
  CHECK(error("") == "COUNTS is \"\": must be counts such as 2(x3),1");
  CHECK(error("1(x2000000000)") == "COUNTS is \"1(x2000000000)\": that is more than 65536 nodes");
}

}  // namespace
}  // namespace fleetrun::launch::slurm_lists_test
