// jpeg_floor LIST: images/s of the plainest loop that prepares the files of a list `path label` for training, in one thread:
// libjpeg-turbo decodes all of a file that lies in memory, a random part becomes 224x224 floats in planes. No loader around it.
// Measured in the last of the passes that it takes to reach its speed (steady.h).
#include <turbojpeg.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "steady.h"

namespace {

constexpr int kSide = 224;
using Bytes = std::vector<unsigned char>;

std::vector<Bytes> read_files(const char* list) {
  std::vector<Bytes> files;
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    std::ifstream file(line.substr(0, line.rfind(' ')), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

struct Part {
  int left, top, width, height;
};

Part random_part(int width, int height, std::mt19937& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const double area = uniform(0.08, 1) * width * height,
               aspect = std::exp(uniform(std::log(0.75), std::log(4.0 / 3)));
  const int wide = std::clamp(static_cast<int>(std::sqrt(area * aspect)), 1, width);
  const int high = std::clamp(static_cast<int>(std::sqrt(area / aspect)), 1, height);
  return {static_cast<int>(random() % static_cast<unsigned>(width - wide + 1)),
          static_cast<int>(random() % static_cast<unsigned>(height - high + 1)), wide, high};
}

// Bilinear, pixel centres over pixel centres; rows are mixed first.
void resize(const Bytes& pixels, int width, const Part& part, bool flip, float* planes) {
  static const float mean[3] = {123.675F, 116.28F, 103.53F},
                     scale[3] = {1 / 58.395F, 1 / 57.12F, 1 / 57.375F};
  static std::vector<float> row;
  static int low[kSide], high[kSide];
  static float weight[kSide];
  row.resize(static_cast<std::size_t>(part.width) * 3);
  for (int x = 0; x < kSide; ++x) {
    const float at =
        std::max(0.0F, (static_cast<float>(x) + 0.5F) * static_cast<float>(part.width) / kSide - 0.5F);
    const int whole = std::min(static_cast<int>(at), part.width - 1);
    low[x] = 3 * whole;
    high[x] = 3 * std::min(whole + 1, part.width - 1);
    weight[x] = at - static_cast<float>(whole);
  }
  for (int y = 0; y < kSide; ++y) {
    const float at =
        std::max(0.0F, (static_cast<float>(y) + 0.5F) * static_cast<float>(part.height) / kSide - 0.5F);
    const int whole = std::min(static_cast<int>(at), part.height - 1);
    const float below = at - static_cast<float>(whole);
    const auto line = [&](int number) {
      return &pixels[(static_cast<std::size_t>(part.top + std::min(number, part.height - 1)) *
                          static_cast<std::size_t>(width) +
                      static_cast<std::size_t>(part.left)) *
                     3];
    };
    const unsigned char *upper = line(whole), *lower = line(whole + 1);
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<float>(upper[i]) +
               below * (static_cast<float>(lower[i]) - static_cast<float>(upper[i]));
    for (int c = 0; c < 3; ++c) {
      float* plane = planes + (c * kSide + y) * kSide;
      for (int x = 0; x < kSide; ++x) {
        const float a = row[static_cast<std::size_t>(low[x] + c)],
                    b = row[static_cast<std::size_t>(high[x] + c)];
        plane[flip ? kSide - 1 - x : x] = (a + weight[x] * (b - a) - mean[c]) * scale[c];
      }
    }
  }
}

void prepare(tjhandle handle, const Bytes& file, std::mt19937& random) {
  static Bytes pixels;
  static std::vector<float> planes(3 * kSide * kSide);
  int width = 0, height = 0, subsampling = 0, colours = 0;
  tjDecompressHeader3(handle, file.data(), file.size(), &width, &height, &subsampling, &colours);
  pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  if (tjDecompress2(handle, file.data(), file.size(), pixels.data(), width, 0, height, TJPF_RGB,
                    TJFLAG_ACCURATEDCT) != 0 &&
      tjGetErrorCode(handle) != TJERR_WARNING)
    std::exit(1);
  resize(pixels, width, random_part(width, height, random), (random() & 1U) != 0, planes.data());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::vector<Bytes> files = read_files(argv[1]);
  tjhandle handle = tjInitDecompress();
  std::mt19937 random(7);
  std::vector<double> rates;
  while (!fleetrun::bench::warmed_up(rates)) {
    const auto start = std::chrono::steady_clock::now();
    for (const Bytes& file : files) prepare(handle, file, random);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(files.size()) / seconds.count());
  }
  std::printf("%f\n", rates.back());
  tjDestroy(handle);
  return 0;
}
