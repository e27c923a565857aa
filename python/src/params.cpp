#include "params.h"

#include <nanobind/stl/string.h>
#include <string.h>

#include "arrays.h"
#include "bindings.h"
#include "calls.h"

namespace quoll_python {

using quoll::Mat;
using quoll::ParamDict;

namespace {

// Marks a reader of zeros.
struct Empty {};

nb::object param(const ParamDict& pd, int id, nb::handle missing) {
    if (id < 0 || id > quoll::kMaxParamId) throw nb::index_error("ParamDict: ids run from 0 to 31");
    if (nb::isinstance<nb::float_>(missing)) return nb::cast(pd.get(id, nb::cast<float>(missing)));
    if (nb::isinstance<nb::str>(missing))
        return nb::cast(pd.get(id, nb::cast<std::string>(missing)));
    if (nb::isinstance<nb::int_>(missing)) return nb::cast(pd.get(id, nb::cast<int>(missing)));
    const Mat none = nb::isinstance<Mat>(missing) ? nb::cast<Mat>(missing) : Mat();
    const Mat value = pd.get(id, none);
    if (nb::isinstance<Mat>(missing)) return nb::cast(value.empty() ? value : value.clone());
    return value.empty() ? nb::borrow(missing) : numpy_of(value.clone(), "", std::nullopt);
}

void set_param(ParamDict& pd, int id, nb::handle value) {
    if (id < 0 || id > quoll::kMaxParamId) throw nb::index_error("ParamDict: ids run from 0 to 31");
    if (nb::isinstance<nb::float_>(value)) return pd.set(id, nb::cast<float>(value));
    if (nb::isinstance<nb::str>(value)) return pd.set(id, nb::cast<std::string>(value));
    if (nb::isinstance<nb::int_>(value)) return pd.set(id, nb::cast<int>(value));
    const Mat array = mat_from_object(value).clone();
    call("ParamDict.set", [&] {
        pd.set(id, array);
        return pd.type(id) == ParamDict::kNone ? quoll::kError : quoll::kOk;
    });
}

}  // namespace

Reader::Reader(nb::handle object) : object_(object), zeros_(nb::isinstance<Empty>(object)) {}

size_t Reader::read(void* buf, size_t size) const {
    if (zeros_) {
        memset(buf, 0, size);
        return size;
    }
    const AcquireGil gil;
    try {
        size_t done = 0;
        while (done < size) {
            const nb::bytes part = nb::cast<nb::bytes>(object_.attr("read")(size - done));
            if (part.size() == 0) break;
            if (part.size() > size - done) throw nb::value_error("read(n) gave more than n bytes");
            memcpy((char*)buf + done, part.c_str(), part.size());
            done += part.size();
        }
        return done;
    } catch (nb::python_error& error) {
        keep_exception(std::move(error));
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_TypeError,
                        (std::string("read(n) of a reader: ") + error.what()).c_str());
        keep_exception(nb::python_error());
    }
    return 0;
}

void bind_params(nb::module_& m) {
    nb::class_<Empty>(m, "DataReaderFromEmpty",
                      "Zeros without end: a net without weights, for timing.")
        .def(nb::init<>());
    nb::class_<ParamDict>(m, "ParamDict", "The numbered parameters of a layer, ids 0 to 31.")
        .def(nb::init<>())
        .def(
            "type", [](const ParamDict& pd, int id) { return (int)pd.type(id); }, nb::arg("id"),
            "0: none, 1: number, 2: int, 3: float, 4 to 6: array of these, 7: text.")
        .def("get", &param, nb::arg("id"), nb::arg("default").none() = nb::none(),
             "The value, or `default` if there is none. int, float and str as the type of "
             "`default` says; a Mat for a Mat; for None an array.")
        .def("set", &set_param, nb::arg("id"), nb::arg("value"));
    nb::class_<Weights>(m, "ModelBin", "The weights of a model, during a layer's load_model.")
        .def(
            "load",
            [](Weights& weights, nb::args sizes) {
                if (sizes.size() < 2 || sizes.size() > 5)
                    throw nb::type_error(
                        "load(w, type), load(w, h, type), ...: 1 to 4 sizes and a type");
                if (!weights.source) throw Error("ModelBin: it is for the time of load_model only");
                int v[5];
                for (size_t i = 0; i < sizes.size(); i++) v[i] = nb::cast<int>(sizes[i]);
                Mat mat;
                call("ModelBin.load", [&] {
                    const quoll::ModelBin& from = *weights.source;
                    mat = sizes.size() == 2   ? from.load(v[0], v[1])
                          : sizes.size() == 3 ? from.load(v[0], v[1], v[2])
                          : sizes.size() == 4 ? from.load(v[0], v[1], v[2], v[3])
                                              : from.load(v[0], v[1], v[2], v[3], v[4]);
                    return mat.empty() ? quoll::kError : quoll::kOk;
                });
                // It may lie in a file that is mapped while it is loaded.
                return mat.clone();
            },
            nb::arg("sizes"),
            "load(w, type), load(w, h, type), ...: the next weight. type 0: by the tag before the "
            "data; 1: float32; 2: float16; 3: int8.");
}

}  // namespace quoll_python
