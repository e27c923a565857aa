// The deployment file: what models, from which files, with what interface, packed how. Its keys are
// MACE's (docs/tools/enginedeploy.md).
#ifndef QUOLL_TOOLS_DEPLOY_CONFIG_H
#define QUOLL_TOOLS_DEPLOY_CONFIG_H

#include <stdint.h>

#include <string>
#include <vector>

namespace quoll {

// An input or output of a model.
struct DeployTensor {
    std::string name, place;     // place: "FILE:LINE:COLUMN: ", for messages
    std::vector<int64_t> sizes;  // as written; none: not said
    std::string format;          // of the sizes and the array: NHWC, NCHW or NONE
    bool integer = false;        // int32, else float32
    double low = -1, high = 1;   // of random values
    std::string array;           // .npy with its values, "" if there is none
};

struct DeployModel {
    std::string tag, place;
    std::string platform;        // onnx, caffe or ncnn
    std::string graph, weights;  // paths; no weights for onnx
    std::string graph_sha256, weights_sha256;
    std::vector<DeployTensor> inputs, outputs, checks;
    std::string precision = "fp16";  // storage of weights and blobs: fp32, fp16, bf16
    std::string backend;             // onnxruntime, quoll, or "": the former for onnx
    double threshold = 0;            // of the similarity; 0: that of the precision
    bool strip_names = false, winograd = true;
    bool gpu = false;       // runs on a Vulkan device where there is one
    bool slices = false;    // of 1 ms: Option::vulkan_slice_us
    int max_in_flight = 0;  // Option::vulkan_max_in_flight
};

struct DeployConfig {
    std::string library;
    std::vector<std::string> abis;
    bool graph_as_code = false, weights_as_code = false;
    std::vector<DeployModel> models;
    std::vector<std::string> notes;  // keys that have no effect here
};

// Reads and checks a whole file: every problem is one of *problems, "FILE:LINE:COLUMN: KEY: what".
// Paths in it are relative to its folder. 0, or -1 when there are problems, or, after a message in
// the log, when it cannot be read.
int read_deploy_config(const std::string& path, DeployConfig* config,
                       std::vector<std::string>* problems);

}  // namespace quoll

#endif
