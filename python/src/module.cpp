// quoll._core: the public C++ API for the Python package.
#include "bindings.h"
#include "calls.h"
#include "memory.h"

NB_MODULE(_core, m) {
    using namespace quoll_python;
    m.doc() = "quoll's engine. Programs import quoll, which has these classes.";
    m.attr("__version__") = QUOLL_VERSION_TEXT;
    // Layers of an application often refer to the Net that they are registered with.
    nanobind::set_leak_warnings(false);
    bind_log(m);
    bind_allocators(m);
    bind_option(m);
    bind_mat(m);
    bind_mat_functions(m);
    bind_params(m);
    bind_layer(m);
    bind_net(m);
    bind_extractor(m);
    bind_cpu(m);
}
