// conv2d x=image w=a -> y=b forward                      gather_parameter x=a -> y=a.forward {owner=1; shape=[8,3,3,3]}
// relu x=b -> y=c forward                                gather_parameter x=d -> y=d.forward {owner=0; shape=[10,8]}
// fc x=c w=d -> y=e forward                              conv2d x=image w=a.forward -> y=b forward
// fc_grad_x dy=e@GRAD w=d -> dx=c@GRAD backward     =>   relu x=b -> y=c forward
//                                                        gather_parameter x=d -> y=d.backward {owner=0; shape=[10,8]}
//                                                        fc x=c w=d.forward -> y=e forward
//                                                        fc_grad_x dy=e@GRAD w=d.backward -> dx=c@GRAD backward
//
// A gather is one op with parameters ahead of its use, so that it travels while that op computes. Ops that only bring a parameter
// into another form (a cast, a reorder) run again in the backward pass instead of keeping their result.
#include "runtime/passes/gather_parameters.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/graph/communicator_of.h"
#include "runtime/graph/owner_of.h"

namespace fleetrun::runtime {
namespace {

class Gathering {
 public:
  Gathering(Program& program, const std::map<ValueId, int>& owners, int communicator)
      : program_(program), owners_(owners), communicator_(communicator) {}

  void run() {
    std::vector<Op> ops = std::move(program_.ops);
    for (Op& op : ops) {
      if (op.role == Role::forward && only_forms_parameter(op)) forms_[op.outputs.front()] = op;
      if (op.role == Role::forward || op.role == Role::backward) read_gathered(op);
      if (!gathers_.empty()) place_gathers();
      std::move(forming_.begin(), forming_.end(), std::back_inserter(placed_));
      forming_.clear();
      placed_.push_back(std::move(op));
    }
    program_.ops = std::move(placed_);
  }

 private:
  using Copies = std::map<ValueId, ValueId>;

  bool only_forms_parameter(const Op& op) const {
    const auto is_known = [&](ValueId id) { return owners_.count(id) > 0 || forms_.count(id) > 0; };
    return op.outputs.size() == 1 && !op.inputs.empty() &&
           std::all_of(op.inputs.begin(), op.inputs.end(), is_known);
  }

  void read_gathered(Op& op) {
    for (ValueId& id : op.inputs) id = copy_for(id, op);
  }

  // What `reader` reads in place of the value.
  ValueId copy_for(ValueId id, const Op& reader) {
    Copies& copies = copies_[reader.role == Role::backward ? 1 : 0];
    if (const auto found = copies.find(id); found != copies.end()) return found->second;
    if (const auto owner = owners_.find(id); owner != owners_.end())
      return copies[id] = gather(id, owner->second, reader.role);
    const auto form = forms_.find(id);
    if (form == forms_.end() || reader.role == Role::forward) return id;
    return copies[id] = form_again(form->second, reader);
  }

  ValueId gather(ValueId id, int owner, Role role) {
    const ValueId copy = add_copy(id, role == Role::backward ? ".backward" : ".forward");
    Op op = {.type = "gather_parameter",
             .inputs = {id},
             .outputs = {copy},
             .attributes = {{"shape", program_.value(id).shape}},
             .role = Role::communication};
    set_owner(op, owner);
    set_communicator(op, communicator_);
    gathers_.push_back(std::move(op));
    return copy;
  }

  ValueId form_again(Op op, const Op& reader) {
    const ValueId made = add_copy(op.outputs.front(), ".backward");
    op.role = Role::backward;
    op.outputs = {made};
    op.after = reader.after;
    for (ValueId& id : op.inputs) id = copy_for(id, op);
    forming_.push_back(std::move(op));
    return made;
  }

  ValueId add_copy(ValueId id, const std::string& suffix) {
    const Value& value = program_.value(id);
    return program_.add_value(
        {.name = value.name + suffix, .dtype = value.dtype, .shape = value.shape, .layout = value.layout});
  }

  // In front of the op that needed the gathers before these.
  void place_gathers() {
    placed_.insert(placed_.begin() + static_cast<std::ptrdiff_t>(ahead_),
                   std::make_move_iterator(gathers_.begin()), std::make_move_iterator(gathers_.end()));
    gathers_.clear();
    ahead_ = placed_.size();
  }

  Program& program_;
  const std::map<ValueId, int>& owners_;
  const int communicator_;
  std::map<ValueId, Op> forms_;        // by what they make: forward ops that only read parameters
  std::array<Copies, 2> copies_;       // what forward ops and backward ops read instead
  std::vector<Op> gathers_, forming_;  // that the next op needs
  std::vector<Op> placed_;             // the new program
  std::size_t ahead_ = 0;              // where the next gathers go
};

}  // namespace

void gather_parameters(Program& program, const std::map<ValueId, int>& owners, int communicator) {
  Gathering(program, owners, communicator).run();
}

std::map<ValueId, int> owners_of_parameters(const Program& program) {
  std::map<ValueId, int> owners;
  for (const Op& op : program.ops)
    if (op.role == Role::optimize && program.value(op.outputs.front()).kind == ValueKind::parameter)
      owners[op.outputs.front()] = owner_of(op);
  return owners;
}

}  // namespace fleetrun::runtime
