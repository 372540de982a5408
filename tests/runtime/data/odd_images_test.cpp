// A folder of damaged and odd images: each is either read or named, whatever it holds, and memory stays bounded.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/system/file.h"
#include "runtime/data/expect_error.h"
#include "runtime/data/image_files.h"
#include "runtime/data/loader.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::odd_images_test {
namespace {

using Files = std::map<std::string, std::string>;

std::string cut(const std::string& content, double share) {
  return content.substr(0, static_cast<std::size_t>(share * static_cast<double>(content.size())));
}

std::string changed(std::string content, std::size_t from_end, char byte) {
  content[content.size() - from_end] = byte;
  return content;
}

Files good_ones() {
  const Image photo = gradient_image(3, 60, 80);
  const std::string jpeg = make_jpeg(photo), rows(photo.pixels.begin(), photo.pixels.end());
  Files files = {
      {"jpeg.jpg", jpeg},
      {"progressive.jpg", make_jpeg(photo, TJFLAG_PROGRESSIVE)},
      {"grey.jpg", make_jpeg(gradient_image(1, 60, 80))},
      {"cmyk.jpg", make_jpeg(gradient_image(4, 60, 80))},
      {"one-pixel.jpg", make_jpeg(gradient_image(3, 1, 1))},
      {"one-row.jpg", make_jpeg(gradient_image(3, 1, 500))},
      {"one-column.jpg", make_jpeg(gradient_image(3, 500, 1))},
      {"large.jpg", make_jpeg(gradient_image(3, 1500, 2000))},
      {"trailing.jpg", jpeg + std::string(1000, 'x')},
      {"png-named.jpg", make_png(photo)},
      {"png.png", make_png(photo)},
      {"grey.png", make_png(gradient_image(1, 60, 80))},
      {"deep.png", make_png({16, PNG_COLOR_TYPE_GRAY}, 2, 1, std::string("\x12\x12\xfe\xfe", 4))},
      {"clear.png", make_png({8, PNG_COLOR_TYPE_RGB_ALPHA}, 1, 1, std::string("\x01\x02\x03\x00", 4))},
      {"palette.png", make_png({2, PNG_COLOR_TYPE_PALETTE}, 4, 1, std::string("\x1b", 1))},
      {"bits.png", make_png({1, PNG_COLOR_TYPE_GRAY}, 8, 1, std::string("\xa0", 1))},
      {"interlaced.png", make_png({8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_ADAM7}, 80, 60, rows)},
      {"jpeg-named.png", jpeg},
      {"webp.webp", make_webp(photo)},
      {"turned.webp", with_webp_orientation(make_webp(photo), photo.shape, 6)},
      {"bmp.bmp", make_bmp(photo)},
      {"bmp-from-top.bmp", make_bmp(photo, {.bits = 32, .from_top = true})}};
  for (const int orientation : {2, 3, 6, 8})
    files["turned-" + std::to_string(orientation) + ".jpg"] = with_orientation(jpeg, orientation, true);
  return files;
}

Files bad_ones() {
  const Image photo = gradient_image(3, 60, 80);
  const std::string jpeg = make_jpeg(photo), png = make_png(photo);
  const std::string webp = make_webp(photo), bmp = make_bmp(photo);
  return {
      {"half.webp", cut(webp, 0.5)},
      {"start-only.webp", webp.substr(0, 21)},
      {"half.bmp", cut(bmp, 0.5)},
      {"header.bmp", bmp.substr(0, 54)},
      {"huge-header.bmp", bmp.substr(0, 18) + little_endian(60000) + little_endian(60000) + bmp.substr(26)},
      {"empty.jpg", ""},
      {"one-byte.jpg", "\xff"},
      {"start-only.jpg", cut(jpeg, 0.02)},
      {"half.jpg", cut(jpeg, 0.5)},
      {"no-end.jpg", cut(jpeg, 0.9)},
      {"half-header.jpg", jpeg.substr(0, 170)},
      {"zeros.jpg", std::string(5000, '\0')},
      {"html.jpg", "<!DOCTYPE html><html>404</html>"},
      {"text.png", "not found\n"},
      {"huge-header.jpg", with_jpeg_size(jpeg, 60000, 60000)},
      {"flat-header.jpg", with_jpeg_size(jpeg, 0, 80)},
      {"gif.jpg", "GIF89a\x01\x01"},
      {"webp.jpg", "RIFF....WEBPVP8 "},
      {"signature.png", png.substr(0, 8)},
      {"header.png", png.substr(0, 33)},
      {"half.png", cut(png, 0.5)},
      {"no-end.png", cut(png, 0.9)},
      {"checksum.png", changed(png, 20, 'x')},
      {"huge-header.png", with_png_size(png, 60000, 60000)},
      {"endless-header.png", with_png_size(png, 0x7fffffff, 0x7fffffff)},
      {"empty.png", ""}};
}

struct Folder : TemporaryFolder {
  explicit Folder(const Files& files) {
    make_directories(*this / "class");
    for (const auto& [name, content] : files) write("class/" + name, content);
  }
  std::unique_ptr<DataSet> open() const {
    job::DataSetSpec spec;
    spec.path = path();
    spec.image_size = 32;
    spec.augment = job::Augment::random_resized_crop;
    return open_data_set(spec);
  }
};

LoaderOptions options(job::BadSample bad_sample, int batch) {
  LoaderOptions made;
  made.batch = batch;
  made.shuffle = false;
  made.bad_sample = bad_sample;
  made.augment = job::Augment::random_resized_crop;
  return made;
}

TEST_CASE("every odd image is read") {
  const Folder folder(good_ones());
  const auto set = folder.open();
  Loader loader(*set, options(job::BadSample::fail, set->size()));
  for (int epoch = 0; epoch < 5; ++epoch) {
    loader.start_epoch(epoch);
    REQUIRE(loader.next() != nullptr);
  }
}

TEST_CASE("every damaged image is named, and none of them takes memory that its header asks for") {
  const Files bad = bad_ones();
  CHECK(good_ones().size() + bad.size() >= 40);
  const Folder folder(bad);
  const auto set = folder.open();
  struct rusage before {
  }, after{};
  ::getrusage(RUSAGE_SELF, &before);
  ReadScratch scratch;
  std::vector<std::uint8_t> pixels(set->shape().elements());
  for (std::int32_t sample = 0; sample < set->size(); ++sample)
    check_error(ErrorKind::data, set->describe(sample), [&] {
      set->read({.augment = job::Augment::random_resized_crop, .sample = sample}, scratch, pixels.data());
    });
  ::getrusage(RUSAGE_SELF, &after);
  constexpr long kMostKiB = 100 << 10;  // far below 60000 x 60000 pixels
  CHECK(after.ru_maxrss - before.ru_maxrss < kMostKiB);
}

TEST_CASE("bad samples that are skipped are reported once each, and others take their places") {
  Files files = good_ones();
  const std::size_t good = files.size();
  files.merge(bad_ones());
  const Folder folder(files);
  const auto set = folder.open();
  Loader loader(*set, options(job::BadSample::skip, 8));
  std::vector<std::string> told;
  for (int epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    while (const Batch* batch = loader.next()) CHECK(batch->samples == 8);
    for (std::string& words : loader.take_skipped()) told.push_back(std::move(words));
  }
  CHECK(told.size() == files.size() - good);
  for (const auto& [name, content] : bad_ones()) {
    CAPTURE(name);
    CHECK(std::count_if(told.begin(), told.end(), [&](const std::string& words) {
            return words.find("/" + name + ": ") != std::string::npos;
          }) == 1);
  }
}

// Large enough that most crops end above the damage, which lies in the last tenth.
std::string damaged_below() {
  std::string jpeg = make_jpeg(noisy_image(3, 400, 300));
  return jpeg.substr(0, jpeg.size() * 9 / 10) + "\xff\xd9";
}

// What is skipped in one epoch of all by a loader that begins there.
std::string skipped_in(const DataSet& set, int epoch) {
  Loader loader(set, options(job::BadSample::skip, set.size()));
  loader.start_epoch(epoch);
  REQUIRE(loader.next() != nullptr);
  return loader.skipped_names();
}

TEST_CASE("row 4: whether a file is bad does not depend on the crop that is seen of it first") {
  const Folder folder({{"a.jpg", damaged_below()}, {"b.jpg", make_jpeg(noisy_image(3, 400, 300))}});
  const auto set = folder.open();
  ReadScratch scratch;
  std::vector<std::uint8_t> pixels(set->shape().elements());
  int seen = 0;  // crops in which the damage is not
  for (int epoch = 0; epoch < 20; ++epoch) {
    CHECK(skipped_in(*set, epoch) == folder / "class/a.jpg" + '\0');
    try {
      set->read({.augment = job::Augment::random_resized_crop, .epoch = epoch, .sample = 0}, scratch,
                pixels.data());
      ++seen;
    } catch (const Error&) {
      continue;
    }
  }
  CHECK(seen > 5);
}

TEST_CASE("row 4: a good file is good to its end, whatever is shown of it") {
  ReadScratch scratch;
  for (const int colours : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_411, TJSAMP_GRAY})
    for (const int flags : {0, TJFLAG_PROGRESSIVE})
      for (const int height : {33, 100, 257}) {
        CAPTURE(colours);
        CAPTURE(height);
        const Image image = noisy_image(colours == TJSAMP_GRAY ? 1 : 3, height, 91);
        const Folder folder({{"a.jpg", make_jpeg(image, flags, colours)}});
        const auto set = folder.open();
        std::vector<std::uint8_t> whole(set->shape().elements()), part(whole.size());
        for (int epoch = 0; epoch < 30; ++epoch) {
          Framing framing = {.augment = job::Augment::random_resized_crop, .epoch = epoch};
          set->read(framing, scratch, part.data());
          framing.to_the_end = true;
          REQUIRE_NOTHROW(set->read(framing, scratch, whole.data()));
          CHECK(whole == part);
        }
      }
}

TEST_CASE("an evaluation leaves bad samples out and counts the others") {
  Files files = {{"bad.jpg", ""}, {"good.png", make_png(gradient_image(3, 40, 40))}};
  const Folder folder(files);
  const auto set = folder.open();
  LoaderOptions evaluation = options(job::BadSample::skip, 2);
  evaluation.evaluation = true;
  Loader loader(*set, evaluation);
  loader.start_epoch(0);
  const Batch* batch = loader.next();
  REQUIRE(batch != nullptr);
  CHECK(batch->samples == 1);
  CHECK(batch->labels[0] == -1);
  CHECK(batch->labels[1] == 0);
}

TEST_CASE("a data set of nothing but bad samples ends the run, though they may be skipped") {
  const Folder folder(bad_ones());
  const auto set = folder.open();
  Loader loader(*set, options(job::BadSample::skip, 8));
  loader.start_epoch(0);
  check_error(ErrorKind::data, "can be used; the last that was skipped", [&] { loader.next(); });
}

TEST_CASE("files that vanish are an error of the disk, skipped once in a thousand at most") {
  const Folder folder(good_ones());
  const auto set = folder.open();
  std::filesystem::remove_all(folder / "class");
  for (const auto policy : {job::BadSample::fail, job::BadSample::skip}) {
    Loader loader(*set, options(policy, 8));
    loader.start_epoch(0);
    check_error(ErrorKind::io,
                policy == job::BadSample::fail ? "(read 4 times)" : "could not be read, wanted at most 1",
                [&] { loader.next(); });
  }
}

}  // namespace
}  // namespace fleetrun::runtime::odd_images_test
