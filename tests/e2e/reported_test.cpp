// What a training reports is what it saved: figures of the summary, log/train.json and log/report.json are found again in its
// files, by a network written here with plain loops.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <regex>

#include <fmt/format.h>

#include "e2e/launcher.h"

namespace fleetrun::reported_test {
namespace {

constexpr int kSide = 12, kClasses = 4, kTrain = 92, kTest = 75, kBatch = 8, kEpochs = 2;

// ---- images of stripes, whose direction is the class, under noise

struct Images {
  std::string pixels, labels;
};

Images make_images(int count, std::uint32_t seed) {
  Images images;
  for (int i = 0; i < count; ++i) {
    const int label = i % kClasses;
    images.labels += static_cast<char>(label);
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        seed = seed * 1664525U + 1013904223U;
        const int along = label == 0 ? x : label == 1 ? y : label == 2 ? x + y : x - y + kSide;
        const int noise = static_cast<int>(seed >> 24U) / 2;
        images.pixels += static_cast<char>(noise + (along % 4 < 2 ? 100 : 0));
      }
  }
  return images;
}

std::string big_endian(int value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

void write_images(const TemporaryFolder& folder, const std::string& name, const Images& images) {
  const int count = static_cast<int>(images.labels.size());
  const std::string sizes = big_endian(count) + big_endian(kSide) + big_endian(kSide);
  folder.write(name + ".images", big_endian(0x0803) + sizes + images.pixels);
  folder.write(name + ".labels", big_endian(0x0801) + big_endian(count) + images.labels);
}

// ---- resnet20 in evaluation

using Weights = std::map<std::string, std::vector<float>>;

Weights read_weights(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const std::size_t start = sizeof length + length;
  Weights weights;
  const nlohmann::json header = nlohmann::json::parse(file.substr(sizeof length, length));
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t from = tensor["data_offsets"][0], to = tensor["data_offsets"][1];
    std::vector<float>& values = weights[name];
    values.resize((to - from) / sizeof(float));
    std::memcpy(values.data(), file.data() + start + from, to - from);
  }
  return weights;
}

struct Map {
  int channels = 0, side = 0;
  std::vector<double> values;

  Map(int count, int of_side) : channels(count), side(of_side) {
    values.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(of_side * of_side));
  }
  std::size_t index(int channel, int y, int x) const {
    return static_cast<std::size_t>((channel * side + y) * side + x);
  }
  double padded(int channel, int y, int x) const {
    return y < 0 || x < 0 || y >= side || x >= side ? 0 : values[index(channel, y, x)];
  }
};

class Network {
 public:
  explicit Network(Weights weights) : weights_(std::move(weights)) {}

  std::vector<double> scores(const Map& image) const {
    Map x = relu(conv_norm("conv1", "bn1", image, 3, 1));
    for (const int stage : {1, 2, 3})
      for (const int number : {0, 1, 2})
        x = block(fmt::format("layer{}.{}.", stage, number), x, stage > 1 && number == 0 ? 2 : 1);
    return classify(x);
  }

 private:
  const std::vector<float>& tensor(const std::string& name) const { return weights_.at(name); }

  Map conv_norm(const std::string& conv, const std::string& norm, const Map& x, int kernel,
                int stride) const {
    const std::vector<float>&weight = tensor(conv + ".weight"), &scale = tensor(norm + ".weight"),
          &bias = tensor(norm + ".bias"), &mean = tensor(norm + ".running_mean"),
          &variance = tensor(norm + ".running_var");
    Map y(static_cast<int>(scale.size()), (x.side + stride - 1) / stride);
    for (int c = 0; c < y.channels; ++c) {
      const auto of = static_cast<std::size_t>(c);
      for (int row = 0; row < y.side; ++row)
        for (int column = 0; column < y.side; ++column) {
          double sum = 0;
          std::size_t at = of * static_cast<std::size_t>(x.channels * kernel * kernel);
          for (int from = 0; from < x.channels; ++from)
            for (int i = 0; i < kernel; ++i)
              for (int j = 0; j < kernel; ++j)
                sum += weight[at++] *
                       x.padded(from, row * stride + i - kernel / 2, column * stride + j - kernel / 2);
          y.values[y.index(c, row, column)] =
              (sum - mean[of]) / std::sqrt(variance[of] + 1e-5) * scale[of] + bias[of];
        }
    }
    return y;
  }

  static Map relu(Map x) {
    for (double& value : x.values) value = std::max(0.0, value);
    return x;
  }

  Map block(const std::string& name, const Map& x, int stride) const {
    Map y = conv_norm(name + "conv2", name + "bn2",
                      relu(conv_norm(name + "conv1", name + "bn1", x, 3, stride)), 3, 1);
    const bool changes = weights_.contains(name + "downsample.0.weight");
    const Map shortcut = changes ? conv_norm(name + "downsample.0", name + "downsample.1", x, 1, stride) : x;
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += shortcut.values[i];
    return relu(std::move(y));
  }

  std::vector<double> classify(const Map& x) const {
    std::vector<double> scores(tensor("fc.bias").begin(), tensor("fc.bias").end());
    const int pixels = x.side * x.side;
    for (std::size_t k = 0; k < scores.size(); ++k)
      for (std::size_t i = 0; i < x.values.size(); ++i)
        scores[k] += tensor("fc.weight")[k * static_cast<std::size_t>(x.channels) +
                                         i / static_cast<std::size_t>(pixels)] *
                     x.values[i] / pixels;
    return scores;
  }

  Weights weights_;
};

struct TestScore {
  int hits = 0;
  double loss = 0;  // mean
};

TestScore score_of(const Network& network, const Images& images) {
  TestScore score;
  for (std::size_t i = 0; i < images.labels.size(); ++i) {
    Map image(1, kSide);
    for (std::size_t p = 0; p < image.values.size(); ++p)
      image.values[p] = static_cast<unsigned char>(images.pixels[i * image.values.size() + p]) / 255.0;
    const std::vector<double> scores = network.scores(image);
    const auto label = static_cast<std::size_t>(images.labels[i]);
    double sum = 0;
    for (const double other : scores) sum += std::exp(other);
    score.loss += (std::log(sum) - scores[label]) / static_cast<double>(images.labels.size());
    score.hits += std::max_element(scores.begin(), scores.end()) - scores.begin() == images.labels[i] ? 1 : 0;
  }
  return score;
}

// ---- a training, and what it says of itself

const std::string kJob = R"({
  "model": {"name": "resnet20"},
  "data": {"train": {"format": "idx", "images": "train.images", "labels": "train.labels"},
           "test": {"format": "idx", "images": "test.images", "labels": "test.labels"},
           "batch_size": 8, "loader_threads": 1},
  "optimizer": {"name": "momentum", "learning_rate": 0.02},
  "train": {"epochs": 2, "log_every": 1}
})";

struct Training : Launch {
  Images test = make_images(kTest, 2);

  Training() {
    write_images(folder, "train", make_images(kTrain, 1));
    write_images(folder, "test", test);
    folder.write("job.json", kJob);
  }
  ChildResult run(int ranks, const Words& overrides = {}) const {
    Words words = {fmt::format("--nproc_per_node={}", ranks), "--device=cpu", "job.json"};
    words.insert(words.end(), overrides.begin(), overrides.end());
    return run_words(words);
  }
  TestScore saved_score() const {
    return score_of(Network(read_weights(folder.read("output/model.safetensors"))), test);
  }
};

// The number after the last place where `words` stand.
std::string number_behind(const std::string& text, const std::string& words) {
  const std::size_t at = text.rfind(words);
  REQUIRE_MESSAGE(at != std::string::npos, words);
  const std::size_t start = at + words.size();
  return text.substr(start, text.find_first_not_of("0123456789.", start) - start);
}

void check_counts(const nlohmann::json& train, int ranks, const ChildResult& result) {
  const int steps =
      kEpochs * ((kTrain + ranks * kBatch - 1) / (ranks * kBatch));  // the last batches are padded
  CHECK(train["steps"] == steps);
  CHECK(train["epochs"] == kEpochs);
  CHECK(train["world_size"] == ranks);
  const double seconds = train["train_seconds"], speed = train["images_per_second"];
  CHECK(seconds > 0);
  CHECK(seconds < result.seconds);
  CHECK(speed * seconds == doctest::Approx(steps * ranks * kBatch));
  const nlohmann::json& goodput = train["goodput"];
  CHECK(goodput["seconds"] > seconds);
  CHECK(goodput["seconds"] < result.seconds);
  double whole = 0;
  for (const auto& [use, share] : goodput.items()) whole += use == "seconds" ? 0 : share.get<double>();
  CHECK(whole == doctest::Approx(1));
}

TEST_CASE("row 5: what is reported is what is saved, on 1, 2, 4 and 8 ranks with uneven last batches") {
  for (const int ranks : {1, 2, 4, 8}) {
    CAPTURE(ranks);
    const Training training;
    const ChildResult result = training.run(ranks);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const nlohmann::json report = training.report(), train = report["train"];
    CHECK(train == nlohmann::json::parse(training.folder.read("log/train.json")));
    const TestScore saved = training.saved_score();
    CHECK(train["test_accuracy"].get<double>() ==
          doctest::Approx(static_cast<double>(saved.hits) / kTest).epsilon(1e-9));
    CHECK(train["test_loss"].get<double>() == doctest::Approx(saved.loss).epsilon(1e-4));
    check_counts(train, ranks, result);
    CHECK(report["seconds"].get<double>() == doctest::Approx(result.seconds).epsilon(0.2));
    CHECK(report["ranks"].size() == static_cast<std::size_t>(ranks));
    CHECK(number_behind(result.out, "test accuracy ") ==
          fmt::format("{:.5f}", train["test_accuracy"].get<double>()));
    CHECK(number_behind(result.out, "[Epoch 1, test] loss: ") ==
          fmt::format("{:.5f}", train["test_loss"].get<double>()));
    CHECK(number_behind(result.out, "trained 2 epochs, ") == std::to_string(train["steps"].get<int>()));
    const int last = train["steps"].get<int>() / kEpochs - 1;
    CHECK(number_behind(result.out, fmt::format("[Epoch 1, batch {}] loss: ", last)) ==
          fmt::format("{:.5f}", train["loss"].get<double>()));
  }
}

TEST_CASE("row 5: the saved model scores on one rank what it scored on those that trained it") {
  const Training training;
  REQUIRE(training.run(4, {"checkpoint.dir=saved"}).code == 0);
  const nlohmann::json of_four = training.report()["train"];
  const ChildResult alone = training.run(1, {"checkpoint.dir=saved"});
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  CHECK(contains(alone.out, "the training is already complete"));
  const nlohmann::json of_one = training.report()["train"];
  CHECK(of_one["test_accuracy"] == of_four["test_accuracy"]);
  CHECK(of_one["test_loss"].get<double>() ==
        doctest::Approx(of_four["test_loss"].get<double>()).epsilon(1e-4));
}

TEST_CASE(
    "a training that is stopped reports the epochs and steps that it has done, not those it was to do") {
  const Training training;
  ChildProcess process({FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", "job.json",
                        "train.epochs=1000000", "checkpoint.dir=saved", "train.eval_every=0"},
                       training.options());
  REQUIRE(comes_true([&] { return contains(training.folder.read("log/workerlog.0"), "[Epoch 2, batch 1]"); },
                     60s));
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
  const auto train = nlohmann::json::parse(training.folder.read("log/train.json"));
  const int steps = train["steps"], in_epoch = (kTrain + 2 * kBatch - 1) / (2 * kBatch);
  CHECK(train["epochs"] == (steps + in_epoch - 1) / in_epoch);
  CHECK(steps < 100 * in_epoch);
  CHECK(std::filesystem::exists(
      training.folder / fmt::format("output/saved/{:06}-step-{}", train["epochs"].get<int>(), steps)));
}

TEST_CASE("a training that is stopped in mid-epoch says which epoch its test score is of") {
  const Training training;
  ChildProcess process({FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", "job.json",
                        "train.epochs=1000000", "checkpoint.dir=saved", "train.eval_every=2"},
                       training.options());
  const auto log = [&] { return training.folder.read("log/workerlog.0"); };
  REQUIRE(comes_true([&] { return contains(log(), "[Epoch 2, batch 1]"); }, 60s));
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
  const auto train = nlohmann::json::parse(training.folder.read("log/train.json"));
  const int steps = train["steps"], in_epoch = (kTrain + 2 * kBatch - 1) / (2 * kBatch);
  const int tested = train["test_epochs"];
  CHECK(tested % 2 == 0);
  CHECK(tested * in_epoch < steps);
  CHECK(train.value("whole_epochs", train["epochs"].get<int>()) == steps / in_epoch);
  const std::string accuracy = fmt::format("{:.5f}", train["test_accuracy"].get<double>());
  CHECK(contains(log(), fmt::format(", test accuracy {} after {} epochs\n", accuracy, tested)));
  CHECK(std::regex_search(log(),
                          std::regex(fmt::format(R"(\[Epoch {}, test\].* acc1: {})", tested - 1, accuracy))));
}

TEST_CASE("a test loss beyond what f32 holds is a warning when all weights are finite") {
  const Training training;
  const ChildResult result = training.run(2, {"data.test.std=[2e-38]"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "all weights are finite, and the training goes on"));
  CHECK_FALSE(training.report()["train"].contains("test_loss"));
  CHECK(training.report()["train"]["steps"] == 2 * 6);
}

}  // namespace
}  // namespace fleetrun::reported_test
