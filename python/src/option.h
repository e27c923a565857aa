#ifndef QUOLL_PYTHON_OPTION_H
#define QUOLL_PYTHON_OPTION_H

#include <memory>

#include "memory.h"
#include "quoll/option.h"

namespace quoll_python {

// An Option that keeps its allocators alive.
struct PyOption {
    quoll::Option values;
    std::shared_ptr<Pool> blob_allocator, workspace_allocator;

    quoll::Option get() const {
        quoll::Option option = values;
        option.blob_allocator = pool_of(blob_allocator);
        option.workspace_allocator = pool_of(workspace_allocator);
        return option;
    }
};

}  // namespace quoll_python

#endif
