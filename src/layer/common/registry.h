// Facts about the built-in operators by name.
#ifndef QUOLL_LAYER_REGISTRY_H
#define QUOLL_LAYER_REGISTRY_H

namespace quoll {

class Layer;

// The operator's reference implementation without parameters, which is created once; null if there
// is no operator of that name.
const Layer* layer_prototype(const char* type);

// The folder of layer/cpu that the operator's fast implementation is in; null if it has the
// reference only.
const char* layer_kernel_family(const char* type);

// Binary params hold type indexes, in which kCustomLayerBit marks a custom layer, as in ncnn.
// Built-in indexes that contain this bit, or are above it, are therefore stored beyond 16 bits.
// layer_of_stored_index gives -1 for what denotes no built-in layer.
int stored_index(int typeindex);
int layer_of_stored_index(int stored);
// The index of a custom layer, without the bit, or -1.
int custom_of_stored_index(int stored);

}  // namespace quoll

#endif
