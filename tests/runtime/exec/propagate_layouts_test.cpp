#include "runtime/exec/propagate_layouts.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "runtime/data/expect_error.h"
#include "runtime/graph/program_text.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::propagate_layouts_test {
namespace {

const Layout kBlocked = {.name = "blocked", .descriptor = "b", .bytes = 256};

void infer_like_x(Inference& op) { op.set_output("y", op.input("x").shape); }
void infer_nothing(Inference&) {}

const OpTable& ops() {
  static const OpTable table = {
      {"blocked_op", {.name = "blocked_op", .inputs = {"x", "w"}, .outputs = {"y"}, .infer = infer_like_x}},
      {"any_op", {.name = "any_op", .inputs = {"x"}, .outputs = {"y"}, .infer = infer_like_x}},
      {"plain_op", {.name = "plain_op", .inputs = {"x"}, .outputs = {"y"}, .infer = infer_like_x}},
      {"plain_grad", {.name = "plain_grad", .inputs = {"x"}, .outputs = {"y"}, .infer = infer_like_x}},
      {"update",
       {.name = "update",
        .inputs = {"param", "grad"},
        .outputs = {"param"},
        .infer = infer_nothing,
        .in_place = {"param"}}},
      {"careless_update",
       {.name = "careless_update",
        .inputs = {"param", "grad"},
        .outputs = {"param"},
        .infer = infer_nothing,
        .in_place = {"param"}}},
      {"reorder", {.name = "reorder", .inputs = {"x"}, .outputs = {"y"}, .infer = infer_like_x}},
      {"unknown_here", {.name = "unknown_here", .inputs = {"x"}, .outputs = {"y"}, .infer = infer_like_x}},
  };
  return table;
}

LayoutChoice all_blocked(const LayoutQuery&, Device&) { return {{kBlocked, kBlocked}, {kBlocked}}; }
LayoutChoice like_first(const LayoutQuery& query, Device&) {
  const Layout& layout = query.op.program().value(query.op.op().inputs.front()).layout;
  return {std::vector<Layout>(query.op.op().inputs.size(), layout), {layout}};
}

// Knows layouts and nothing else.
class PaperDevice : public Device {
 public:
  std::string name() const override { return "PAPER"; }
  std::string version() const override { return "1"; }
  const KernelTable& kernels() const override { return kernels_; }
  std::unique_ptr<comm::Memory> allocate(std::size_t) override { return nullptr; }
  void to_plain(const Value&, const void*, void*) override {}
  void from_plain(const Value&, const void*, void*) override {}
  void enter_thread(int) override {}

 private:
  const KernelTable kernels_ = {{"blocked_op", {.choose_layouts = all_blocked}},
                                {"any_op", {.choose_layouts = like_first}},
                                {"plain_op", {}},
                                {"plain_grad", {}},
                                {"update", {.choose_layouts = like_first}},
                                {"careless_update", {.choose_layouts = as_they_lie}},
                                {"reorder", {}}};
};

std::string placed(const char* text, const ParameterLayouts& given = {}) {
  Program program = parse_program(text, ops());
  PaperDevice device;
  propagate_layouts(program, ops(), device, given);
  const std::string printed = print_program(program, ops());
  return printed.substr(printed.find("blocked_op"));
}

TEST_CASE("a layout flows from op to op, and one reorder stands where two neighbours disagree") {
  CHECK(placed("feed image f32[4]\nparameter w f32[4] constant 0.0\n"
               "activation a f32[4]\nactivation b f32[4]\nactivation c f32[4]\nactivation d f32[4]\n"
               "blocked_op x=image w=w -> y=a {} forward\n"
               "any_op x=a -> y=b {} forward\n"
               "plain_op x=b -> y=c {} forward\n"
               "plain_op x=b -> y=d {} forward\n") ==
        // the image is plain and has to be reordered; w is new and lies as its first reader wants it
        "blocked_op x=image.blocked w=w -> y=a {} forward\n"
        "any_op x=a -> y=b {} forward\n"
        "reorder x=b -> y=b.plain {} forward\n"
        "plain_op x=b.plain -> y=c {} forward\n"
        "plain_op x=b.plain -> y=d {} forward\n");
}

TEST_CASE("a gradient lies like its parameter, whatever the op makes that computes it") {
  const std::string text = placed(
      "feed image f32[4]\nparameter w f32[4] constant 0.0\nactivation a f32[4]\n"
      "gradient w@GRAD f32[4] of w\n"
      "blocked_op x=image w=w -> y=a {} forward\n"
      "plain_grad x=a -> y=w@GRAD {} backward\n"
      "update param=w grad=w@GRAD -> param=w {} optimize\n");
  CHECK(text ==
        "blocked_op x=image.blocked w=w -> y=a {} forward\n"
        "reorder x=a -> y=a.plain {} backward\n"
        "plain_grad x=a.plain -> y=w@GRAD.plain {} backward\n"
        "reorder x=w@GRAD.plain -> y=w@GRAD {} backward\n"
        "update param=w grad=w@GRAD -> param=w {} optimize\n");
}

TEST_CASE("a gradient that is an activation by now lies like its parameter, too") {
  const std::string text = placed(
      "feed image f32[4]\nparameter w f32[4] constant 0.0\nactivation a f32[4]\n"
      "activation w@GRAD f32[4] of w\n"
      "blocked_op x=image w=w -> y=a {} forward\n"
      "plain_grad x=a -> y=w@GRAD {} backward\n"
      "update param=w grad=w@GRAD -> param=w {} optimize\n");
  CHECK(text.find("reorder x=w@GRAD.plain -> y=w@GRAD {} backward\n"
                  "update param=w grad=w@GRAD -> param=w {} optimize\n") != std::string::npos);
}

TEST_CASE("an update that would combine a parameter with a gradient of another layout is refused") {
  check_error(ErrorKind::internal, "op careless_update would combine w with g, which has another layout", [] {
    placed(
        "feed image f32[4]\nparameter w f32[4] constant 0.0\nactivation a f32[4]\nactivation g f32[4]\n"
        "blocked_op x=image w=w -> y=a {} forward\n"
        "plain_grad x=a -> y=g {} backward\n"
        "careless_update param=w grad=g -> param=w {} optimize\n");
  });
}

TEST_CASE("a copy of a parameter is made again after the parameter has been updated") {
  const std::string text = placed(
      "feed image f32[4]\nparameter w f32[4] constant 0.0\nactivation a f32[4]\nactivation b f32[4]\nactivation c f32[4]\n"
      "gradient w@GRAD f32[4] of w\n"
      "blocked_op x=image w=w -> y=a {} forward\n"
      "plain_op x=w -> y=b {} forward\n"
      "any_op x=w -> y=w@GRAD {} backward\n"
      "update param=w grad=w@GRAD -> param=w {} optimize\n"
      "plain_op x=w -> y=c {} forward\n");
  CHECK(text.find("plain_op x=w.plain -> y=b") != std::string::npos);
  CHECK(text.find("plain_op x=w.plain.2 -> y=c") != std::string::npos);
}

TEST_CASE("the reorders of an op that waits for another one run one after the other") {
  const std::string text = placed(
      "feed image f32[4]\nfeed second f32[4]\nfeed third f32[4]\nparameter w f32[4] constant 0.0\n"
      "activation a f32[4]\nactivation b f32[4]\n"
      "blocked_op x=image w=w -> y=a {} forward\n"
      "blocked_op x=second w=third -> y=b {} forward after a\n");
  CHECK(
      text ==
      "blocked_op x=image.blocked w=w -> y=a {} forward\n"
      "reorder x=second -> y=second.blocked {} forward after a\n"
      "reorder x=third -> y=third.blocked {} forward after a,second.blocked\n"
      "blocked_op x=second.blocked w=third.blocked -> y=b {} forward after a,second.blocked,third.blocked\n");
}

TEST_CASE("a parameter keeps the layout that an earlier program gave it") {
  CHECK(placed("feed image f32[4]\nparameter w f32[4] constant 0.0\nactivation a f32[4]\n"
               "blocked_op x=image w=w -> y=a {} forward\n",
               {{"w", Layout()}}) == "blocked_op x=image.blocked w=w.blocked -> y=a {} forward\n");
}

TEST_CASE("an op without a kernel is named together with the device") {
  Program program =
      parse_program("feed x f32[1]\nactivation y f32[1]\nunknown_here x=x -> y=y {} forward\n", ops());
  PaperDevice device;
  CHECK_THROWS_WITH_AS(propagate_layouts(program, ops(), device, {}),
                       "op unknown_here has no PAPER kernel in this build", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::propagate_layouts_test
