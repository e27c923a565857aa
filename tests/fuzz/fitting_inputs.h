// For random_layers: params and inputs of the operators whose inputs depend on each other so
// closely that random ones hardly ever fit.
#ifndef QUOLL_TESTS_FUZZ_FITTING_INPUTS_H
#define QUOLL_TESTS_FUZZ_FITTING_INPUTS_H

#include <string>
#include <vector>

#include "quoll/mat.h"
#include "quoll/paramdict.h"
#include "random.h"

// An input to be made. Without values they are up to chance.
struct Wanted {
    quoll::Shape shape;
    std::vector<int> values;  // of s32, the first ones
    bool finite = false;      // no NaN, no infinity
};

// False, and nothing changed, for other operators. `params` holds what the schema let one make up;
// *outputs is what the case has.
bool fitting_inputs(const std::string& type, Random* random, quoll::ParamDict* params,
                    std::vector<Wanted>* inputs, int* outputs);

#endif
