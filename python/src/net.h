#ifndef QUOLL_PYTHON_NET_H
#define QUOLL_PYTHON_NET_H

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "layer.h"
#include "option.h"
#include "quoll/net.h"

namespace quoll_python {

// A Net, with what Python code must not break: it is not loaded while it runs, and what it refers to stays.
struct PyNet {
    std::shared_ptr<PyOption> opt = std::make_shared<PyOption>();
    std::vector<std::shared_ptr<Pool>> pools;  // that it was loaded with
    std::vector<nb::object> weights;           // bytes that the model lies in
    std::vector<std::unique_ptr<LayerClass>> layer_classes;
    std::shared_mutex running;  // shared: it runs or is asked; exclusive: it is loaded
    unsigned generation = 0;    // of its content
    quoll::Net net;             // goes first
};

// Holds a Net as it is; throws while it is being loaded.
class Using {
public:
    explicit Using(PyNet& net);

private:
    std::shared_lock<std::shared_mutex> lock_;
};

// Holds a Net for a change; throws while it runs.
class Changing {
public:
    explicit Changing(PyNet& net);

private:
    std::unique_lock<std::shared_mutex> lock_;
};

// The index of a blob by its name or index; throws.
int find_blob(PyNet& net, nb::handle blob);

}  // namespace quoll_python

#endif
