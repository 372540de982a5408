#include "runtime/checkpoint/manifest.h"

#include <doctest/doctest.h>

#include "runtime/data/expect_error.h"

namespace fleetrun::runtime::manifest_test {
namespace {

Manifest example() {
  return {.state = {.steps = 391,
                    .epoch = 1,
                    .batch = 7,
                    .world_size = 2,
                    .batch_size = 64,
                    .seed = -5,
                    .model = "lenet",
                    .optimizer = "adam",
                    .samples = 50000},
          .files = {{"model.safetensors", facts_of("weights")}, {"optimizer.safetensors", facts_of("")}}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("a manifest is read back as it was written") {
  const Manifest read = parse_manifest(format_manifest(example()), "m");
  CHECK(read.state == example().state);
  CHECK(read.files == example().files);
}

TEST_CASE("a manifest holds the global batch of a training that has one") {
  CHECK(format_manifest(example()).find("global_batch") == std::string::npos);
  Manifest shared = example();
  shared.state.global_batch = 100;
  CHECK(parse_manifest(format_manifest(shared), "m").state == shared.state);
}

TEST_CASE("a manifest of an older build does not know the number of samples") {
  Manifest old = example();
  old.state.samples = 0;
  const std::string text = format_manifest(old);
  CHECK(text.find("samples") == std::string::npos);
  CHECK(parse_manifest(text, "m").state == old.state);
}

TEST_CASE("a manifest says how many batches were merged, and how") {
  Manifest merging = example();
  merging.state.merged = {.batches = 2, .k_steps = 3, .scaling = "loss scale 1, One"};
  CHECK(parse_manifest(format_manifest(merging), "m").state == merging.state);
}

TEST_CASE("a manifest says what powers of decay rates and the order of samples depend on") {
  Manifest manifest = example();
  manifest.state.decays = {{"beta1", 0}, {"beta2", 0.999}, {"ema_decay", 0.1}};
  manifest.state.shuffle = false;
  manifest.state.uneven = job::Uneven::drop;
  CHECK(parse_manifest(format_manifest(manifest), "m").state == manifest.state);
}

TEST_CASE("a manifest keeps the best epoch, and the count of early stopping") {
  Manifest manifest = example();
  CHECK(format_manifest(manifest).find("best") == std::string::npos);
  manifest.state.sampler = job::Sampler::balanced;
  manifest.state.best = ScoredEpoch{job::Metric::acc1, 1.0 / 3, 2, 141, "00ff", 9024};
  manifest.state.improvement = {.best = ScoredEpoch{job::Metric::loss, 0.1, 1, 94},
                                .evaluations = 1,
                                .epoch = 2,
                                .steps = 141,
                                .place = 9024};
  CHECK(parse_manifest(format_manifest(manifest), "m").state == manifest.state);
}

TEST_CASE("a manifest says which samples data.split has set aside, or that it set none aside") {
  CHECK(format_manifest(example()).find("split") == std::string::npos);
  Manifest manifest = example();
  manifest.state.split =
      SplitFacts{.share = 0.1, .seed = -7, .train = 90, .evaluation = 10, .digest = "00ff"};
  CHECK(parse_manifest(format_manifest(manifest), "m").state == manifest.state);
  manifest.state.split = SplitFacts{};
  CHECK(parse_manifest(format_manifest(manifest), "m").state == manifest.state);
}

TEST_CASE("a number that was changed, a file that was left out and a broken text are noticed") {
  const std::string text = format_manifest(example());
  check_error(ErrorKind::data, "m: its checksum is",
              [&] { parse_manifest(replaced(text, "\"steps\": 391", "\"steps\": 392"), "m"); });
  check_error(ErrorKind::data, "m: its checksum is",
              [&] { parse_manifest(replaced(text, "optimizer.safetensors", "optimizer.safetensorz"), "m"); });
  check_error(ErrorKind::data, "m: line ", [&] { parse_manifest(text.substr(0, text.size() / 2), "m"); });
  check_error(ErrorKind::data, "m: line 1", [] { parse_manifest("", "m"); });
  check_error(ErrorKind::data, "m: it has no proper checkpoint", [] { parse_manifest("{}", "m"); });
}

TEST_CASE("a manifest of another version says which, though this build cannot know the rest") {
  check_error(ErrorKind::protocol, "m: a checkpoint of version 2, this build reads version 1",
              [] { parse_manifest(R"({"checkpoint": {"version": 2}})", "m"); });
}

TEST_CASE("every byte that changes, but for spaces, is noticed") {
  const std::string text = format_manifest(example());
  int noticed = 0, changed = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' || text[i] == '\n') continue;
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    ++changed;
    try {
      parse_manifest(other, "m");
    } catch (const Error& error) {
      noticed += error.kind() == ErrorKind::data ? 1 : 0;
    }
  }
  CHECK(noticed == changed);
}

}  // namespace
}  // namespace fleetrun::runtime::manifest_test
