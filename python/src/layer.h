#ifndef QUOLL_PYTHON_LAYER_H
#define QUOLL_PYTHON_LAYER_H

#include <nanobind/nanobind.h>

#include "quoll/layer.h"

namespace quoll_python {

namespace nb = nanobind;

// What register_custom_layer keeps: a function that makes a layer's Python object, and one that is told when it goes.
struct LayerClass {
    nb::object create, destroy;
};

// For Net::register_custom_layer; userdata: a LayerClass.
quoll::Layer* create_python_layer(void* userdata);
void destroy_python_layer(quoll::Layer* layer, void* userdata);

// The Python object of such a layer, or None.
nb::object python_object(const quoll::Layer& layer);

}  // namespace quoll_python

#endif
