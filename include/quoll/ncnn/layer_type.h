#ifndef NCNN_LAYER_TYPE_H
#define NCNN_LAYER_TYPE_H

namespace ncnn {

namespace LayerType {
// Type indexes of the built-in layers, as binary params hold them.
enum LayerType {
#include "quoll/ncnn/layer_type_enum.h"
    CustomBit = 1 << 8,
};
}  // namespace LayerType

}  // namespace ncnn

#endif
