// Mats and arrays (NumPy, DLPack) that share memory.
#ifndef QUOLL_PYTHON_ARRAYS_H
#define QUOLL_PYTHON_ARRAYS_H

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <string>

#include "quoll/mat.h"
#include "quoll/status.h"

namespace quoll_python {

namespace nb = nanobind;

// "float32", ... as NumPy names it.
const char* dtype_text(quoll::DType dtype);

// Axes from the outermost on, the batch in front if there is one: (w), (h,w), (c,h,w), (c,d,h,w), (n,...).
nb::tuple sizes_of(const quoll::Mat& mat);

// A Mat of the array's elements: in its memory unless `copy`, where the layout allows. batch_index: the axis of the batch.
quoll::Mat mat_from_array(nb::handle array, std::optional<int> batch_index, bool copy);
// An argument that is a Mat or an array.
quoll::Mat mat_from_object(nb::handle object);
quoll::Mat copy_from_object(nb::handle object);

// In the Mat's memory, but for elempack > 1 and bfloat16, which NumPy lacks (widened to float32).
nb::object numpy_of(const quoll::Mat& mat, const std::string& format, std::optional<int> batch_index);

void bind_arrays(nb::class_<quoll::Mat>& mat);

}  // namespace quoll_python

#endif
