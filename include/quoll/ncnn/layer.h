#ifndef NCNN_LAYER_H
#define NCNN_LAYER_H

#include "layer_type.h"
#include "mat.h"
#include "modelbin.h"
#include "option.h"
#include "paramdict.h"
#include "platform.h"
#include "quoll/layer.h"
#if NCNN_VULKAN
#include "command.h"
#include "pipeline.h"
#endif

namespace ncnn {

// Rows of tables of layers that programs keep for themselves.
struct layer_registry_entry {
    const char* name;
    layer_creator_func creator;
};
struct custom_layer_registry_entry {
    const char* name;
    layer_creator_func creator;
    layer_destroyer_func destroyer;
    void* userdata;
};
struct overwrite_builtin_layer_registry_entry {
    int typeindex;
    layer_creator_func creator;
    layer_destroyer_func destroyer;
    void* userdata;
};

}  // namespace ncnn

#endif
