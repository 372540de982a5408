#include "comm/collective/transport.h"
#include "comm/gloo/gloo.h"

namespace fleetrun::comm {
namespace {

class GlooTransport : public Transport {
 public:
  explicit GlooTransport(TransportFacts facts) : facts_(std::move(facts)) {}

  TransportJoin join(const Party& party, const std::string& name, Deadline deadline) override {
    return {.communicator = make_gloo({.party = party,
                                       .key = facts_.key,
                                       .address = facts_.address,
                                       .name = name,
                                       .join_deadline = deadline.remaining()}),
            .problem = ""};
  }

 private:
  const TransportFacts facts_;
};

}  // namespace

std::unique_ptr<Transport> make_gloo_transport(const TransportFacts& facts) {
  return std::make_unique<GlooTransport>(facts);
}

}  // namespace fleetrun::comm
