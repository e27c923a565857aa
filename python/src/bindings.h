// The parts of the module quoll._core.
#ifndef QUOLL_PYTHON_BINDINGS_H
#define QUOLL_PYTHON_BINDINGS_H

#include <nanobind/nanobind.h>

namespace quoll_python {

void bind_mat(nanobind::module_& m);
void bind_mat_functions(nanobind::module_& m);
void bind_option(nanobind::module_& m);
void bind_params(nanobind::module_& m);
void bind_layer(nanobind::module_& m);
void bind_net(nanobind::module_& m);
void bind_extractor(nanobind::module_& m);
void bind_cpu(nanobind::module_& m);

}  // namespace quoll_python

#endif
