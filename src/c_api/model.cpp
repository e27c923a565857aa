// Models that a program builds, of quoll/c_api.h.
#include "graph/model.h"
#include "c_api/objects.h"

using namespace quoll;

namespace {

struct CModel {
    Model model;
    bool finished = false;
};
CModel* model_of(quoll_model_t model) { return reinterpret_cast<CModel*>(model); }

// Calls f on layer number `layer` of a model that may still change.
template <class F>
int change_layer(const char* function, quoll_model_t model, int layer, const void* name,
                 const void* values, const F& f) {
    if (!model || !name || !values) return null_argument(function);
    CModel* const m = model_of(model);
    if (m->finished) return bad_state(function, "the model is finished");
    return run_api(function, [&] {
        if (layer >= 0 && (size_t)layer < m->model.layers.size()) return f(m->model.layers[layer]);
        QUOLL_LOGE("[%s] layer %d: expected 0 to %d", function, layer,
                   (int)m->model.layers.size() - 1);
        return (int)QUOLL_ERROR;
    });
}

std::vector<std::string> names_of(const char* const* names, int count) {
    std::vector<std::string> list;
    for (int i = 0; i < count; i++) list.push_back(names[i] ? names[i] : "");
    return list;
}

}  // namespace

extern "C" quoll_model_t quoll_model_create(void) {
    return run_api(__func__, (quoll_model_t) nullptr,
                   [] { return reinterpret_cast<quoll_model_t>(new CModel); });
}
extern "C" void quoll_model_destroy(quoll_model_t model) { delete model_of(model); }

extern "C" int quoll_model_add_layer(quoll_model_t model, const char* type, const char* name,
                                     const char* const* inputs, int input_count,
                                     const char* const* outputs, int output_count) {
    if (!model || !type || !name || (input_count > 0 && !inputs) || (output_count > 0 && !outputs))
        return null_argument(__func__);
    if (model_of(model)->finished) return bad_state(__func__, "the model is finished");
    return run_api(__func__, [&] {
        Model& m = model_of(model)->model;
        m.add(type, name, names_of(inputs, input_count), names_of(outputs, output_count));
        return (int)m.layers.size() - 1;
    });
}

extern "C" int quoll_model_set_int(quoll_model_t model, int layer, const char* param, int value) {
    return change_layer(__func__, model, layer, param, param,
                        [&](ModelLayer& l) { return l.set(param, value); });
}
extern "C" int quoll_model_set_float(quoll_model_t model, int layer, const char* param,
                                     float value) {
    return change_layer(__func__, model, layer, param, param,
                        [&](ModelLayer& l) { return l.set(param, value); });
}
extern "C" int quoll_model_set_string(quoll_model_t model, int layer, const char* param,
                                      const char* value) {
    return change_layer(__func__, model, layer, param, value,
                        [&](ModelLayer& l) { return l.set(param, value); });
}
extern "C" int quoll_model_set_ints(quoll_model_t model, int layer, const char* param,
                                    const int* values, int count) {
    return change_layer(__func__, model, layer, param, values, [&](ModelLayer& l) {
        return l.set(param, std::vector<int>(values, values + std::max(count, 0)));
    });
}
extern "C" int quoll_model_set_floats(quoll_model_t model, int layer, const char* param,
                                      const float* values, int count) {
    return change_layer(__func__, model, layer, param, values, [&](ModelLayer& l) {
        return l.set(param, std::vector<float>(values, values + std::max(count, 0)));
    });
}
extern "C" int quoll_model_set_weight(quoll_model_t model, int layer, const char* weight,
                                      const quoll_mat_t values) {
    return change_layer(__func__, model, layer, weight, values, [&](ModelLayer& l) {
        l.set_weight(weight, *mat_of(values));
        return (int)kOk;
    });
}

extern "C" int quoll_model_finish(quoll_model_t model) {
    if (!model) return null_argument(__func__);
    CModel* const m = model_of(model);
    if (m->finished) return bad_state(__func__, "the model is already finished");
    return run_api(__func__, [&] {
        QUOLL_RETURN_IF_ERROR(m->model.check());
        QUOLL_RETURN_IF_ERROR(m->model.check_weights());
        m->finished = true;
        return (int)kOk;
    });
}

extern "C" int quoll_model_make_net(const quoll_model_t model, quoll_net_t net) {
    if (!model || !net) return null_argument(__func__);
    if (!model_of(model)->finished) return bad_state(__func__, "the model is not finished");
    CNet* const c = net_of(net);
    const int status = run_api(__func__, [&] { return model_of(model)->model.make_net(&c->net); });
    c->has_weights = status == kOk;
    return status;
}

#if QUOLL_STDIO
extern "C" int quoll_model_save(const quoll_model_t model, const char* param_path,
                                const char* bin_path) {
    if (!model || !param_path || !bin_path) return null_argument(__func__);
    if (!model_of(model)->finished) return bad_state(__func__, "the model is not finished");
    return run_api(__func__, [&] {
        const Model& m = model_of(model)->model;
        QUOLL_RETURN_IF_ERROR(m.save_param(param_path));
        return m.save_model(bin_path);
    });
}
#endif
