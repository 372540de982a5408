#include "prototxt/schema.h"

#include <google/protobuf/descriptor.pb.h>

namespace fleetrun::prototxt {

Schema::Schema(std::string_view descriptors) {
  pb::FileDescriptorSet files;
  files.ParseFromArray(descriptors.data(), static_cast<int>(descriptors.size()));
  for (const pb::FileDescriptorProto& file : files.file()) pool_.BuildFile(file);
  strategy_ = pool_.FindMessageTypeByName("paddle.fleet.DistributedStrategy");
}

std::unique_ptr<pb::Message> Schema::make_strategy() const {
  return std::unique_ptr<pb::Message>(factory_.GetPrototype(strategy_)->New());
}

const Schema& schema_of_paddle_2() {
  static const Schema schema(paddle_2());
  return schema;
}

const Schema& schema_of_paddle_3() {
  static const Schema schema(paddle_3());
  return schema;
}

}  // namespace fleetrun::prototxt
