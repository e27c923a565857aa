// Older forms of a net as the newest one.
#ifndef QUOLL_TOOLS_CAFFE_UPGRADE_H
#define QUOLL_TOOLS_CAFFE_UPGRADE_H

#include <string>
#include <vector>

#include "caffe.pb.h"

namespace quoll {

// What Caffe does before it builds a net for testing: layers of the formats before 2015 (`layers`,
// an enum of types) and before 2014 (`layers { layer {} }`) become `layer`s, the fields `input`
// become Input layers, and layers that are not for testing go, with a note. 0, or -1 after a
// message.
int upgrade_net(caffe::NetParameter* net, std::vector<std::string>* notes);

}  // namespace quoll

#endif
