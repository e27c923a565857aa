// Parameters, readers, weights and layers of quoll/c_api.h.
#include "c_api/objects.h"

#include <string.h>

#include <algorithm>

using namespace quoll;

// ---------------------------------------------------------------- parameters

extern "C" quoll_paramdict_t quoll_paramdict_create(void) {
    return run_api(__func__, (quoll_paramdict_t) nullptr,
                   [] { return reinterpret_cast<quoll_paramdict_t>(new ParamDict); });
}
extern "C" void quoll_paramdict_destroy(quoll_paramdict_t pd) { delete params_of(pd); }

extern "C" int quoll_paramdict_get_type(const quoll_paramdict_t pd, int id) {
    return pd ? (int)params_of(pd)->type(id) : null_argument(__func__);
}
extern "C" int quoll_paramdict_get_int(const quoll_paramdict_t pd, int id, int def) {
    return pd ? params_of(pd)->get(id, def) : null_argument(__func__);
}
extern "C" float quoll_paramdict_get_float(const quoll_paramdict_t pd, int id, float def) {
    return pd ? params_of(pd)->get(id, def) : (float)null_argument(__func__);
}
extern "C" quoll_mat_t quoll_paramdict_get_array(const quoll_paramdict_t pd, int id,
                                                 const quoll_mat_t def) {
    if (!pd) null_argument(__func__);
    if (!pd) return nullptr;
    return run_api(__func__, (quoll_mat_t) nullptr, [&] {
        return handle_of(new Mat(params_of(pd)->get(id, def ? *mat_of(def) : Mat())));
    });
}

template <class T>
static void set_param(const char* function, quoll_paramdict_t pd, int id, const T& value) {
    if (!pd) {
        null_argument(function);
        return;
    }
    run_api(function, [&] {
        params_of(pd)->set(id, value);
        return (int)kOk;
    });
}
extern "C" void quoll_paramdict_set_int(quoll_paramdict_t pd, int id, int i) {
    set_param(__func__, pd, id, i);
}
extern "C" void quoll_paramdict_set_float(quoll_paramdict_t pd, int id, float f) {
    set_param(__func__, pd, id, f);
}
extern "C" void quoll_paramdict_set_array(quoll_paramdict_t pd, int id, const quoll_mat_t v) {
    if (v)
        set_param(__func__, pd, id, *mat_of(v));
    else
        null_argument(__func__);
}

// ---------------------------------------------------------------- readers

static int default_scan(quoll_datareader_t dr, const char* format, void* p) {
    const DataReader* const from = static_cast<CDataReader*>(dr)->from.get();
    return from ? from->scan(format, p) : 0;
}
static size_t default_read(quoll_datareader_t dr, void* buf, size_t size) {
    const DataReader* const from = static_cast<CDataReader*>(dr)->from.get();
    return from ? from->read(buf, size) : 0;
}

namespace quoll {

int CDataReader::scan(const char* format, void* p) const {
    CDataReader* const self = const_cast<CDataReader*>(this);
    return static_cast<quoll_datareader*>(self)->scan(self, format, p);
}
size_t CDataReader::read(void* buf, size_t size) const {
    CDataReader* const self = const_cast<CDataReader*>(this);
    return static_cast<quoll_datareader*>(self)->read(self, buf, size);
}
const DataReader& CDataReader::reader() const {
    const quoll_datareader& face = *this;
    const bool own = face.read != default_read || face.scan != default_scan;
    return from && !own ? *from : static_cast<const DataReader&>(*this);
}

}  // namespace quoll

static quoll_datareader_t make_reader(const char* function, DataReader* (*make)(void*),
                                      void* from) {
    return run_api(function, (quoll_datareader_t) nullptr, [&]() -> quoll_datareader_t {
        std::unique_ptr<CDataReader> made(new CDataReader);
        quoll_datareader& face = *made;
        face.pthis = nullptr, face.scan = default_scan, face.read = default_read;
        if (make) made->from.reset(make(from));
        return made.release();
    });
}
extern "C" quoll_datareader_t quoll_datareader_create(void) {
    return make_reader(__func__, nullptr, nullptr);
}
#if QUOLL_STDIO
extern "C" quoll_datareader_t quoll_datareader_create_from_stdio(FILE* fp) {
    if (!fp) null_argument(__func__);
    if (!fp) return nullptr;
    return make_reader(
        __func__, [](void* file) -> DataReader* { return new DataReaderFromStdio((FILE*)file); },
        fp);
}
#endif
extern "C" quoll_datareader_t quoll_datareader_create_from_memory(const unsigned char** mem) {
    if (!mem || !*mem) null_argument(__func__);
    if (!mem || !*mem) return nullptr;
    return make_reader(
        __func__,
        [](void* memory) -> DataReader* {
            return new DataReaderFromMemory(*(const unsigned char**)memory);
        },
        mem);
}
extern "C" void quoll_datareader_destroy(quoll_datareader_t dr) {
    delete static_cast<CDataReader*>(dr);
}

// ---------------------------------------------------------------- weights

static quoll_mat_t load_1d(const quoll_modelbin_t mb, int w, int type) {
    return new_mat(static_cast<CModelBin*>(mb)->from->load(w, type), "quoll_modelbin load_1d");
}
static quoll_mat_t load_2d(const quoll_modelbin_t mb, int w, int h, int type) {
    return new_mat(static_cast<CModelBin*>(mb)->from->load(w, h, type), "quoll_modelbin load_2d");
}
static quoll_mat_t load_3d(const quoll_modelbin_t mb, int w, int h, int c, int type) {
    return new_mat(static_cast<CModelBin*>(mb)->from->load(w, h, c, type),
                   "quoll_modelbin load_3d");
}

namespace quoll {

CModelBin::CModelBin(const ModelBin* f) : from(f) {
    quoll_modelbin& face = *this;
    face.pthis = nullptr;
    face.load_1d = ::load_1d, face.load_2d = ::load_2d, face.load_3d = ::load_3d;
}

Mat CModelBin::load(int w, int type) const {
    CModelBin* const self = const_cast<CModelBin*>(this);
    const quoll_mat_t made = self->load_1d(self, w, type);
    const Mat m = made ? *mat_of(made) : Mat();
    quoll_mat_destroy(made);
    return m;
}

}  // namespace quoll

extern "C" quoll_modelbin_t quoll_modelbin_create_from_datareader(const quoll_datareader_t dr) {
    if (!dr) null_argument(__func__);
    if (!dr) return nullptr;
    return run_api(__func__, (quoll_modelbin_t) nullptr, [&]() -> quoll_modelbin_t {
        std::unique_ptr<CModelBin> made(new CModelBin(nullptr));
        made->owned.reset(new ModelBinFromDataReader(static_cast<CDataReader*>(dr)->reader()));
        made->from = made->owned.get();
        return made.release();
    });
}
extern "C" quoll_modelbin_t quoll_modelbin_create_from_mat_array(const quoll_mat_t* weights,
                                                                 int n) {
    if (n > 0 && !weights) null_argument(__func__);
    if (n > 0 && !weights) return nullptr;
    return run_api(__func__, (quoll_modelbin_t) nullptr, [&]() -> quoll_modelbin_t {
        std::unique_ptr<CModelBin> made(new CModelBin(nullptr));
        for (int i = 0; i < n; i++)
            made->weights.push_back(weights[i] ? *mat_of(weights[i]) : Mat());
        made->weights.push_back(Mat());  // for one that asks for more
        made->owned.reset(new ModelBinFromMatArray(made->weights.data()));
        made->from = made->owned.get();
        return made.release();
    });
}
extern "C" void quoll_modelbin_destroy(quoll_modelbin_t mb) { delete static_cast<CModelBin*>(mb); }

// ---------------------------------------------------------------- layers

namespace {

quoll_paramdict_t handle(const ParamDict& pd) {
    return reinterpret_cast<quoll_paramdict_t>(const_cast<ParamDict*>(&pd));
}

// Takes over the Mat that a function of the program has made, and destroys the handle.
int take_made(int status, quoll_mat_t made, Mat* mat) {
    if (made) *mat = *mat_of(made);
    quoll_mat_destroy(made);
    return status;
}

// A layer of the program's own: calls the functions of its struct.
struct ProgramLayer : Layer {
    quoll_layer_t face;
    int load_param(const ParamDict& pd) override { return face->load_param(face, handle(pd)); }
    int load_model(const ModelBin& mb) override {
        CModelBin weights(&mb);
        return face->load_model(face, &weights);
    }
    int create_pipeline(const Option& opt) override {
        return face->create_pipeline(face, handle_of(&opt));
    }
    int destroy_pipeline(const Option& opt) override {
        return face->destroy_pipeline(face, handle_of(&opt));
    }
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override {
        quoll_mat_t made = nullptr;
        const int status = face->forward_1(face, handle_of(&bottom), &made, handle_of(&opt));
        return take_made(status, made, &top);
    }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& top_blobs,
                const Option& opt) const override {
        std::vector<quoll_mat_t> in, made(top_blobs.size(), nullptr);
        for (const Mat& m : bottoms) in.push_back(handle_of(&m));
        const int status = face->forward_n(face, in.data(), (int)in.size(), made.data(),
                                           (int)made.size(), handle_of(&opt));
        for (size_t i = 0; i < made.size(); i++) take_made(status, made[i], &top_blobs[i]);
        return status;
    }
    int forward_inplace(Mat& blob, const Option& opt) const override {
        return face->forward_inplace_1(face, handle_of(&blob), handle_of(&opt));
    }
    int forward_inplace(std::vector<Mat>& blobs, const Option& opt) const override {
        std::vector<quoll_mat_t> all;
        for (const Mat& m : blobs) all.push_back(handle_of(&m));
        return face->forward_inplace_n(face, all.data(), (int)all.size(), handle_of(&opt));
    }
};

// The functions of a struct that the program has not set. For a built-in layer they call the layer;
// for the program's own layer they do what it would inherit.
template <bool kBuiltIn>
struct Inherited {
    static int need(const quoll_layer_t layer, CLayer::Stage stage, const char* function) {
        if (!kBuiltIn || static_cast<const CLayer*>(layer)->stage >= stage) return kOk;
        return bad_state(function,
                         "load_param, load_model and create_pipeline have to come first, in this "
                         "order, and to succeed");
    }
    // Moves to the next stage if f() succeeds.
    template <class F>
    static int advance(quoll_layer_t layer, CLayer::Stage to, const char* function, F f) {
        const CLayer::Stage from = (CLayer::Stage)(to - 1);
        QUOLL_RETURN_IF_ERROR(need(layer, from, function));
        const int status = run_api(function, f);
        static_cast<CLayer*>(layer)->stage = status == kOk ? to : from;
        return status;
    }
    static int load_param(quoll_layer_t layer, const quoll_paramdict_t pd) {
        if (!layer || !pd) return null_argument(__func__);
        Layer* const l = layer_of(layer);
        return advance(layer, CLayer::kHasParams, __func__, [&] {
            return kBuiltIn ? l->load_param(*params_of(pd)) : l->Layer::load_param(*params_of(pd));
        });
    }
    static int load_weights(quoll_layer_t layer, const ModelBin& weights) {
        Layer* const l = layer_of(layer);
        return advance(layer, CLayer::kHasWeights, "load_model", [&] {
            return kBuiltIn ? l->load_model(weights) : l->Layer::load_model(weights);
        });
    }
    static int load_model(quoll_layer_t layer, const quoll_modelbin_t mb) {
        if (!layer || !mb) return null_argument(__func__);
        return load_weights(layer, *static_cast<CModelBin*>(mb));
    }
    // load_model may be left out of layers without weights.
    static int create_pipeline(quoll_layer_t layer, const quoll_option_t opt) {
        if (!layer || !opt) return null_argument(__func__);
        Layer* const l = layer_of(layer);
        // The first call has taken the weights.
        if (kBuiltIn && static_cast<CLayer*>(layer)->stage == CLayer::kReady)
            return bad_state(__func__, "the pipeline is there already");
        if (kBuiltIn && static_cast<CLayer*>(layer)->stage == CLayer::kHasParams) {
            const Mat none[16];
            QUOLL_RETURN_IF_ERROR(load_weights(layer, ModelBinFromMatArray(none)));
        }
        return advance(layer, CLayer::kReady, __func__, [&] {
            return kBuiltIn ? l->create_pipeline(*option_of(opt))
                            : l->Layer::create_pipeline(*option_of(opt));
        });
    }
    static int destroy_pipeline(quoll_layer_t layer, const quoll_option_t opt) {
        if (!layer || !opt) return null_argument(__func__);
        Layer* const l = layer_of(layer);
        QUOLL_RETURN_IF_ERROR(need(layer, CLayer::kReady, __func__));
        static_cast<CLayer*>(layer)->stage = CLayer::kMade;
        return kBuiltIn ? l->destroy_pipeline(*option_of(opt))
                        : l->Layer::destroy_pipeline(*option_of(opt));
    }
    // Programs written for ncnn run layers that pack nothing right after load_param.
    static int prepare(const quoll_layer_t layer, const quoll_option_t opt, const char* function) {
        if (!kBuiltIn || static_cast<const CLayer*>(layer)->stage == CLayer::kReady) return kOk;
        QUOLL_RETURN_IF_ERROR(need(layer, CLayer::kHasParams, function));
        return create_pipeline(const_cast<quoll_layer_t>(layer), opt);
    }
    // A Net would convert them, or run the layer for each item.
    static int check_blobs(const quoll_layer_t layer, const quoll_mat_t* mats, int n,
                           const char* function) {
        const Layer& l = *layer_of(layer);
        for (int i = 0; i < n && kBuiltIn; i++) {
            const Mat& m = *mat_of(mats[i]);
            const bool packs = m.elempack > 1 && !l.support_packing;
            const bool f16 = m.dtype == DType::f16 && !l.support_fp16_storage;
            const bool bf16 = m.dtype == DType::bf16 && !l.support_bf16_storage;
            if (packs || f16 || bf16 || (m.n > 1 && !l.support_batch))
                return bad_state(function,
                                 "a Mat has an elempack, a 16-bit type or a batch that the layer "
                                 "does not take: see its quoll_layer_get_support_ functions");
        }
        return kOk;
    }
    // Arrays of Mats, none of which is missing.
    static bool all_there(const quoll_mat_t* mats, int n) {
        return mats && n >= 0 && std::find(mats, mats + n, nullptr) == mats + n;
    }
    static int forward_1(const quoll_layer_t layer, const quoll_mat_t bottom, quoll_mat_t* top,
                         const quoll_option_t opt) {
        if (!layer || !bottom || !top || !opt) return null_argument(__func__);
        QUOLL_RETURN_IF_ERROR(prepare(layer, opt, __func__));
        QUOLL_RETURN_IF_ERROR(check_blobs(layer, &bottom, 1, __func__));
        const Layer* const l = layer_of(layer);
        return run_api(__func__, [&] {
            Mat out;
            QUOLL_RETURN_IF_ERROR(kBuiltIn
                                      ? l->forward(*mat_of(bottom), out, *option_of(opt))
                                      : l->Layer::forward(*mat_of(bottom), out, *option_of(opt)));
            *top = handle_of(new Mat(out));
            return (int)kOk;
        });
    }
    static int forward_n(const quoll_layer_t layer, const quoll_mat_t* bottoms, int n,
                         quoll_mat_t* tops, int n2, const quoll_option_t opt) {
        if (!layer || !all_there(bottoms, n) || !tops || n2 < 0 || !opt)
            return null_argument(__func__);
        QUOLL_RETURN_IF_ERROR(prepare(layer, opt, __func__));
        QUOLL_RETURN_IF_ERROR(check_blobs(layer, bottoms, n, __func__));
        const Layer* const l = layer_of(layer);
        return run_api(__func__, [&] {
            std::vector<Mat> in, out(n2);
            for (int i = 0; i < n; i++) in.push_back(*mat_of(bottoms[i]));
            QUOLL_RETURN_IF_ERROR(kBuiltIn ? l->forward(in, out, *option_of(opt))
                                           : l->Layer::forward(in, out, *option_of(opt)));
            for (int i = 0; i < n2 && i < (int)out.size(); i++)
                tops[i] = handle_of(new Mat(out[i]));
            return (int)kOk;
        });
    }
    static int forward_inplace_1(const quoll_layer_t layer, quoll_mat_t blob,
                                 const quoll_option_t opt) {
        if (!layer || !blob || !opt) return null_argument(__func__);
        QUOLL_RETURN_IF_ERROR(prepare(layer, opt, __func__));
        QUOLL_RETURN_IF_ERROR(check_blobs(layer, &blob, 1, __func__));
        const Layer* const l = layer_of(layer);
        return run_api(__func__, [&] {
            return kBuiltIn ? l->forward_inplace(*mat_of(blob), *option_of(opt))
                            : l->Layer::forward_inplace(*mat_of(blob), *option_of(opt));
        });
    }
    static int forward_inplace_n(const quoll_layer_t layer, quoll_mat_t* blobs, int n,
                                 const quoll_option_t opt) {
        if (!layer || !all_there(blobs, n) || !opt) return null_argument(__func__);
        QUOLL_RETURN_IF_ERROR(prepare(layer, opt, __func__));
        QUOLL_RETURN_IF_ERROR(check_blobs(layer, blobs, n, __func__));
        const Layer* const l = layer_of(layer);
        return run_api(__func__, [&] {
            std::vector<Mat> all;
            for (int i = 0; i < n; i++) {
                all.push_back(Mat());
                std::swap(all.back(), *mat_of(blobs[i]));  // so that it is the only one
            }
            const int status = kBuiltIn ? l->forward_inplace(all, *option_of(opt))
                                        : l->Layer::forward_inplace(all, *option_of(opt));
            for (int i = 0; i < n; i++) std::swap(all[i], *mat_of(blobs[i]));
            return status;
        });
    }
    static void set(quoll_layer_t layer) {
        layer->pthis = layer_of(layer);
        layer->load_param = load_param, layer->load_model = load_model;
        layer->create_pipeline = create_pipeline, layer->destroy_pipeline = destroy_pipeline;
        layer->forward_1 = forward_1, layer->forward_n = forward_n;
        layer->forward_inplace_1 = forward_inplace_1, layer->forward_inplace_n = forward_inplace_n;
    }
};

template <class Key>
quoll_layer_t make_built_in(const char* function, Key key) {
    return run_api(function, (quoll_layer_t) nullptr, [&]() -> quoll_layer_t {
        std::unique_ptr<CLayer> made(new CLayer);
        made->layer.reset(create_layer(key));
        if (!made->layer) {
            QUOLL_LOGE("[%s] there is no such layer", function);
            return nullptr;
        }
        Inherited<true>::set(made.get());
        return made.release();
    });
}

const Layer& checked(quoll_layer_t layer, const char* function) {
    static const Layer none;
    if (!layer) null_argument(function);
    return layer ? *layer_of(layer) : none;
}

}  // namespace

extern "C" quoll_layer_t quoll_layer_create(void) {
    return run_api(__func__, (quoll_layer_t) nullptr, []() -> quoll_layer_t {
        std::unique_ptr<CLayer> made(new CLayer);
        std::unique_ptr<ProgramLayer> layer(new ProgramLayer);
        layer->face = made.get();
        made->layer = std::move(layer);
        Inherited<false>::set(made.get());
        return made.release();
    });
}
extern "C" quoll_layer_t quoll_layer_create_by_typeindex(int typeindex) {
    return make_built_in(__func__, typeindex);
}
extern "C" quoll_layer_t quoll_layer_create_by_type(const char* type) {
    if (!type) null_argument(__func__);
    return type ? make_built_in(__func__, type) : nullptr;
}
extern "C" void quoll_layer_destroy(quoll_layer_t layer) { delete static_cast<CLayer*>(layer); }
extern "C" int quoll_layer_type_to_index(const char* type) {
    return type ? layer_to_index(type) : null_argument(__func__);
}
extern "C" const char* quoll_layer_get_name(const quoll_layer_t layer) {
    return checked(layer, __func__).name.c_str();
}
extern "C" int quoll_layer_get_typeindex(const quoll_layer_t layer) {
    return checked(layer, __func__).typeindex;
}
extern "C" const char* quoll_layer_get_type(const quoll_layer_t layer) {
    return checked(layer, __func__).type.c_str();
}
extern "C" void* quoll_layer_get_userdata(const quoll_layer_t layer) {
    return checked(layer, __func__).userdata;
}
extern "C" void quoll_layer_set_userdata(quoll_layer_t layer, void* userdata) {
    if (layer)
        layer_of(layer)->userdata = userdata;
    else
        null_argument(__func__);
}

#define QUOLL_C_FLAG(name)                                                    \
    extern "C" int quoll_layer_get_##name(const quoll_layer_t layer) {        \
        return checked(layer, __func__).name;                                 \
    }                                                                         \
    extern "C" void quoll_layer_set_##name(quoll_layer_t layer, int enable) { \
        if (layer)                                                            \
            layer_of(layer)->name = enable != 0;                              \
        else                                                                  \
            null_argument(__func__);                                          \
    }
QUOLL_C_FLAG(one_blob_only)
QUOLL_C_FLAG(support_inplace)
QUOLL_C_FLAG(support_packing)
QUOLL_C_FLAG(support_batch)
QUOLL_C_FLAG(support_bf16_storage)
QUOLL_C_FLAG(support_fp16_storage)
QUOLL_C_FLAG(support_any_packing)
QUOLL_C_FLAG(support_vulkan)
QUOLL_C_FLAG(support_vulkan_packing)
QUOLL_C_FLAG(support_vulkan_any_packing)
#undef QUOLL_C_FLAG

#define QUOLL_C_BLOBS(name)                                                                     \
    extern "C" int quoll_layer_get_##name##_count(const quoll_layer_t layer) {                  \
        return (int)checked(layer, __func__).name##s.size();                                    \
    }                                                                                           \
    extern "C" int quoll_layer_get_##name(const quoll_layer_t layer, int i) {                   \
        const std::vector<int>& list = checked(layer, __func__).name##s;                        \
        return i >= 0 && (size_t)i < list.size() ? list[i] : -1;                                \
    }                                                                                           \
    extern "C" void quoll_layer_get_##name##_shape(const quoll_layer_t layer, int i, int* dims, \
                                                   int* w, int* h, int* c) {                    \
        const std::vector<Mat>& list = checked(layer, __func__).name##_shapes;                  \
        const Mat shape = i >= 0 && (size_t)i < list.size() ? list[i] : Mat();                  \
        if (dims) *dims = shape.dims;                                                           \
        if (w) *w = shape.w;                                                                    \
        if (h) *h = shape.h;                                                                    \
        if (c) *c = shape.c;                                                                    \
    }
QUOLL_C_BLOBS(bottom)
QUOLL_C_BLOBS(top)
#undef QUOLL_C_BLOBS
