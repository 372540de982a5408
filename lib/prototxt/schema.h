// The fields of DistributedStrategy in one version of PaddlePaddle.
#pragma once
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/message.h>

#include <memory>
#include <string_view>

namespace fleetrun::prototxt {

namespace pb = google::protobuf;

// The compiled schemas of schemas/.
std::string_view paddle_2();
std::string_view paddle_3();

class Schema {
 public:
  explicit Schema(std::string_view descriptors);

  std::unique_ptr<pb::Message> make_strategy() const;
  const pb::Descriptor& strategy() const { return *strategy_; }

 private:
  pb::DescriptorPool pool_;
  mutable pb::DynamicMessageFactory factory_;
  const pb::Descriptor* strategy_ = nullptr;
};

// Made when they are first used.
const Schema& schema_of_paddle_2();
const Schema& schema_of_paddle_3();

}  // namespace fleetrun::prototxt
