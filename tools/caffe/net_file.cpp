#include "caffe/net_file.h"

#include <errno.h>
#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/text_format.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "caffe/upgrade.h"
#include "common/model_files.h"
#include "quoll/log.h"

namespace quoll {

namespace {

// A prototxt nests messages three or four deep; each level costs stack.
const int kMostNested = 100;

struct OpenFile {
    explicit OpenFile(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (fd < 0) QUOLL_LOGE("%s cannot be opened: %s", path.c_str(), strerror(errno));
    }
    ~OpenFile() {
        if (fd >= 0) close(fd);
    }
    const int fd;
};

// Sends what the text parser says to the log; lines and columns count from 1.
class ToLog : public google::protobuf::io::ErrorCollector {
public:
    explicit ToLog(const std::string& path) : path_(path) {}
    void AddError(int line, int column, const std::string& message) override {
        QUOLL_LOGE("%s:%d:%d: %s", path_.c_str(), line + 1, column + 1, message.c_str());
    }
    void AddWarning(int line, int column, const std::string& message) override {
        // Fields that only training reads are many and harmless.
        static const char* const kTraining[] = {"filler",
                                                "lr_mult",
                                                "\"param\"",
                                                "engine",
                                                "transform",
                                                "loss_weight",
                                                "blobs_lr",
                                                "weight_decay",
                                                "data_param",
                                                "accuracy_param",
                                                "propagate_down",
                                                "loss_param",
                                                "save_output_param",
                                                "visualize",
                                                "multibox_loss",
                                                "detection_evaluate",
                                                "stable_prod_grad",
                                                "bn_mode",
                                                "frozen",
                                                "momentum",
                                                "moving_average",
                                                "force_nd_im2col"};
        for (const char* word : kTraining)
            if (message.find(word) != std::string::npos) return;
        QUOLL_LOGW("%s:%d:%d: %s", path_.c_str(), line + 1, column + 1, message.c_str());
    }

private:
    const std::string& path_;
};

// Takes the blobs out of `layers`.
template <class Layers>
void collect(Layers* layers, CaffeWeights* weights) {
    for (auto& layer : *layers)
        if (layer.blobs_size() > 0) (*weights)[layer.name()].Swap(layer.mutable_blobs());
}

// The stream of an open file, and what the system said when it could not be read.
class Stream : public google::protobuf::io::FileInputStream {
public:
    explicit Stream(const OpenFile& file) : FileInputStream(file.fd) {}
    bool failed(const std::string& path) const {
        if (GetErrno() == 0) return false;
        QUOLL_LOGE("%s cannot be read: %s", path.c_str(), strerror(GetErrno()));
        return true;
    }
};

}  // namespace

int read_prototxt(const std::string& path, caffe::NetParameter* net,
                  std::vector<std::string>* notes) {
    OpenFile file(path);
    if (file.fd < 0) return -1;
    const std::string format = foreign_format_of(path, "a prototxt");
    if (!format.empty()) {
        QUOLL_LOGE("%s: this is no prototxt, it is %s", path.c_str(), format.c_str());
        return -1;
    }
    Stream stream(file);
    google::protobuf::TextFormat::Parser parser;
    ToLog to_log(path);
    parser.RecordErrorsTo(&to_log);
    parser.AllowUnknownField(true);
    parser.SetRecursionLimit(kMostNested);
    const bool parsed = parser.Parse(&stream, net);
    if (stream.failed(path) || !parsed) return -1;
    if (upgrade_net(net, notes)) {
        QUOLL_LOGE("%s is no net that can be converted", path.c_str());
        return -1;
    }
    return 0;
}

int read_caffemodel(const std::string& path, CaffeWeights* weights) {
    OpenFile file(path);
    if (file.fd < 0) return -1;
    Stream stream(file);
    google::protobuf::io::CodedInputStream coded(&stream);
    const void* head;
    int size;
    if (coded.GetDirectBufferPointer(&head, &size) && size >= 8 &&
        memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0) {
        QUOLL_LOGE("%s: this is HDF5; expected a binary caffemodel (snapshot_format: BINARYPROTO)",
                   path.c_str());
        return -1;
    }
    coded.SetTotalBytesLimit(INT_MAX);
    caffe::WeightsNet net;
    const bool parsed = net.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
    if (stream.failed(path)) return -1;
    if (!parsed || (net.layers_size() == 0 && net.layer_size() == 0)) {
        const std::string format = foreign_format_of(path, "a caffemodel");
        QUOLL_LOGE("%s: this is no caffemodel, %s", path.c_str(),
                   format.empty() ? "or a part of one" : ("it is " + format).c_str());
        return -1;
    }
    for (caffe::WeightsV1Layer& layer : *net.mutable_layers())
        if (layer.has_layer()) {
            layer.set_name(layer.layer().name());
            layer.mutable_blobs()->Swap(layer.mutable_layer()->mutable_blobs());
        }
    collect(net.mutable_layers(), weights);
    collect(net.mutable_layer(), weights);
    return 0;
}

}  // namespace quoll
