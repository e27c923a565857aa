// Caffe's files, brought into one form.
#ifndef QUOLL_TOOLS_CAFFE_NET_FILE_H
#define QUOLL_TOOLS_CAFFE_NET_FILE_H

#include <string>
#include <unordered_map>
#include <vector>

#include "caffe.pb.h"

namespace quoll {

typedef google::protobuf::RepeatedPtrField<caffe::BlobProto> CaffeBlobs;
// The blobs of a layer, by the layer's name.
typedef std::unordered_map<std::string, CaffeBlobs> CaffeWeights;

// Reads a prototxt, text, and brings it into the newest form (upgrade.h). 0, or -1 after a message.
// Fields that are not known are named in a warning.
int read_prototxt(const std::string& path, caffe::NetParameter* net,
                  std::vector<std::string>* notes);

// Reads a caffemodel, binary, of any of the three layer formats.
int read_caffemodel(const std::string& path, CaffeWeights* weights);

}  // namespace quoll

#endif
