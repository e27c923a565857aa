#include <algorithm>

#include "graph/shared_weights.h"
#include "quoll/log.h"

namespace quoll {

static const int kParamId = 28;
// The first of the values, so that a parameter of a custom layer is not taken for this one.
static const int kKind = 0x52414853;
// The same, with the layer's own parameter 28 in front of the numbers.
static const int kKindBesideOwn = kKind + 1;

WeightNumbers take_weight_numbers(ParamDict* params) {
    WeightNumbers numbers;
    const ParamDict::Type type = params->type(kParamId);
    if (type != ParamDict::kIntArray && type != ParamDict::kNumberArray) return numbers;
    const Mat values = params->get_ints(kParamId, Mat());
    const int* v = values;
    if (values.w < 2 || (v[0] != kKind && v[0] != kKindBesideOwn)) return numbers;
    const int head = v[0] == kKind ? 1 : 2;
    params->copy(kParamId, ParamDict());
    if (head == 2) params->set(kParamId, v[1]);
    numbers.assign(v + head, v + values.w);
    return numbers;
}

void put_weight_numbers(const WeightNumbers& numbers, ParamDict* params) {
    if (std::none_of(numbers.begin(), numbers.end(), [](int n) { return n != 0; })) return;
    const int head = params->type(kParamId) == ParamDict::kNone ? 1 : 2;
    Mat values(Shape((int)numbers.size() + head, DType::s32));
    int* v = values;
    v[0] = head == 1 ? kKind : kKindBesideOwn;
    if (head == 2) v[1] = params->get(kParamId, 0);
    std::copy(numbers.begin(), numbers.end(), v + head);
    params->set(kParamId, values);
}

SharingModelBin::SharingModelBin(const ModelBin& from,
                                 const std::unordered_map<int, WeightNumbers>& layers)
    : from_(from), layers_(layers) {
    for (const auto& layer : layers) wanted_.insert(layer.second.begin(), layer.second.end());
}

void SharingModelBin::begin_layer(int i) {
    const auto found = layers_.find(i);
    numbers_ = found == layers_.end() ? nullptr : &found->second;
    read_ = 0;
}

Mat SharingModelBin::load(int w, int type) const {
    const int number = numbers_ ? weight_number(*numbers_, read_) : 0;
    read_++;
    if (number == 0) {
        const Mat m = from_.load(w, type);
        if (wanted_.count(++count_)) kept_[count_] = m;
        return m;
    }
    const auto found = kept_.find(number);
    if (found != kept_.end() && found->second.w == w) return found->second;
    QUOLL_LOGE("[ModelBin] a weight of %d values is to be number %d of the file, %s", w, number,
               found == kept_.end() ? "which was not read before" : "which has another size");
    return Mat();
}

}  // namespace quoll
