#include "net/unfused.h"

#include <sys/stat.h>

#include "net/net_private.h"
#include "quoll/log.h"
#include "runtime/exceptions.h"
#include "runtime/log_mute.h"

namespace quoll {

void describe_file(const char* path, int64_t* size, int64_t* time) {
    struct stat st;
    const bool there = stat(path, &st) == 0;
    *size = there ? (int64_t)st.st_size : 0;
    *time = there ? (int64_t)st.st_mtime : 0;
#if defined(__linux__)
    // Seconds are too coarse: a program may write another model of this size within one.
    if (there) *time = *time * 1000000000 + (int64_t)st.st_mtim.tv_nsec;
#endif
}

// ---------------------------------------------------------------- nets without weights

// Layers that ask for weights are left as they were: load_model() may still be called.
int Net::Private::load_no_weights(const Option& opt) {
    const NoWeights nothing;
    {
        LogMute quiet;
        if (load_layer_weights(nothing) != kOk || nothing.asked()) return kError;
    }
    return prepare_layers(opt);
}

bool Net::Private::is_ready(const Option& opt) {
    if (weights_loaded) return true;  // not behind a thread that undoes fusion
    std::lock_guard<std::mutex> lock(late_loading);
    if (weights_loaded || layers.empty()) return weights_loaded;
    return without_weights = catch_no_memory("Net", [&] { return load_no_weights(opt); }) == kOk;
}

// ---------------------------------------------------------------- blobs that were fused away

bool Net::Private::is_fused_away(int blob, bool given) const {
    // There may be one of its name, with other values, or that not all layers read.
    return alias[blob] != blob || (given && !followed.empty() && !followed[blob]);
}

int Net::Private::load_again(const Private& from, bool fused) {
    if (from.unfused_param.empty()) return kError;  // made of a Model
    if (from.layers_may_differ) {
        QUOLL_LOGE("[Net] mutable_layers() was called: a second net would lack its changes");
        return kError;
    }
    keeps_weights = true;
    custom_layers = from.custom_layers;
    vulkan_device = from.vulkan_device;
    buffers = from.buffers;
    Option opt = from.loaded_opt;
    opt.use_graph_fusion = opt.use_graph_fusion && fused;
    const unsigned char* param = from.unfused_param.data();
    const DataReaderFromMemory reader(param, from.unfused_param.size());
    QUOLL_RETURN_IF_ERROR(load_graph(reader, from.unfused_is_binary, opt));
    weights_id = from.weights_id;
    shared_weights = from.shared_weights;
    const WeightSource& again = from.source;
#if QUOLL_STDIO
    if (!again.path.empty()) {
        int64_t size, time;
        describe_file(again.path.c_str(), &size, &time);
        if (size == again.path_size && time == again.path_time)
            return load_model_file(again.path.c_str(), opt);
        QUOLL_LOGE("[Net] %s is not the file any more that was loaded", again.path.c_str());
        return kError;
    }
#endif
    if (from.without_weights) return load_no_weights(opt);
    if (!again.reader) return kError;  // an application's that cannot be read twice
    const std::unique_ptr<DataReader> weights(again.reader->reopen());
    const DataReader& dr = weights ? *weights : *again.reader;
    return load_weights(ModelBinFromDataReader(dr), dr, false, opt);
}

std::shared_ptr<Net::Private> Net::Private::load_copy(bool fused) const {
    std::shared_ptr<Private> copy;
    const int status = catch_no_memory("Net", [&] {
        const std::shared_ptr<Private> made = std::make_shared<Private>(owner);
        QUOLL_RETURN_IF_ERROR(made->load_again(*this, fused));
        copy = made;
        return (int)kOk;
    });
    return status == kOk ? copy : nullptr;
}

std::shared_ptr<Net::Private> Net::Private::unfuse() {
    std::lock_guard<std::mutex> lock(late_loading);
    if (!unfused || layers_may_differ) unfused = load_copy(false);
    if (!unfused)
        QUOLL_LOGE(
            "[Net] the weights could not be loaded again for a blob that was fused away: call "
            "net.keep_blob before load_model, or set net.opt.use_graph_fusion = false");
    return unfused;
}

}  // namespace quoll
