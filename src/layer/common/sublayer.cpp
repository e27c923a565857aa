#include "layer/common/sublayer.h"

#include "quoll/paramdict.h"

namespace quoll {

std::unique_ptr<Layer> make_binaryop(const Layer& of, const char* why, int op_type, bool fast) {
    std::unique_ptr<Layer> made(fast ? create_layer("BinaryOp")
                                     : create_layer_reference("BinaryOp"));
    ParamDict pd;
    pd.set(0, op_type);
    if (!made || made->load_param(pd)) {
        of.fail("%s needs BinaryOp, which this build lacks", why);
        return nullptr;
    }
    made->name = of.name;
    return made;
}

}  // namespace quoll
