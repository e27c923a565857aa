// What layers and Nets read from, in Python's hands.
#ifndef QUOLL_PYTHON_PARAMS_H
#define QUOLL_PYTHON_PARAMS_H

#include <nanobind/nanobind.h>

#include "quoll/datareader.h"
#include "quoll/modelbin.h"
#include "quoll/paramdict.h"

namespace quoll_python {

namespace nb = nanobind;

// The weights, during a layer's load_model only.
struct Weights {
    const quoll::ModelBin* source;
};

// Reads through a Python object's read(n) -> bytes, or zeros without end.
class Reader : public quoll::DataReader {
public:
    explicit Reader(nb::handle object);
    size_t read(void* buf, size_t size) const override;

private:
    nb::handle object_;
    bool zeros_;
};

}  // namespace quoll_python

#endif
