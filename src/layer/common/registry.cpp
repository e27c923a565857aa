// The built-in operators by name and index.
#include "layer/common/registry.h"

#include <string.h>

#include <memory>

#include "quoll/layer.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "runtime/exceptions.h"

namespace quoll {

#define QUOLL_LAYER(index, name, file) Layer* create_##name##_layer();
#define QUOLL_LAYER_FAST(index, name, file) \
    Layer* create_##name##_layer();         \
    Layer* create_##name##_fast_layer();
#include "enabled_layers.inc"
#undef QUOLL_LAYER
#undef QUOLL_LAYER_FAST

namespace {

struct Entry {
    int index;
    const char* type;
    Layer* (*reference)();
    Layer* (*fast)();
};

const Entry kEntries[] = {
#define QUOLL_LAYER(index, name, file) {index, #name, create_##name##_layer, create_##name##_layer},
#define QUOLL_LAYER_FAST(index, name, file) \
    {index, #name, create_##name##_layer, create_##name##_fast_layer},
#include "enabled_layers.inc"
#undef QUOLL_LAYER
#undef QUOLL_LAYER_FAST
};

// The entries by hash of their names: a model's layers are looked up many times each.
class Names {
public:
    Names() {
        for (const Entry& entry : kEntries) {
            unsigned at = hash(entry.type);
            while (slots_[at]) at = (at + 1) % kSlots;
            slots_[at] = &entry;
        }
    }
    const Entry* find(const char* type) const {
        for (unsigned at = hash(type); slots_[at]; at = (at + 1) % kSlots)
            if (strcmp(slots_[at]->type, type) == 0) return slots_[at];
        return nullptr;
    }

private:
    static const unsigned kSlots = 512;
    static_assert(sizeof(kEntries) / sizeof(kEntries[0]) < kSlots / 2, "few that meet");
    static unsigned hash(const char* type) {
        unsigned sum = 0;
        for (; *type; type++) sum = sum * 31 + (unsigned char)*type;
        return (sum ^ sum >> 9) % kSlots;
    }
    const Entry* slots_[kSlots] = {};
};

const Entry* find(const char* type) {
    static const Names names;
    return names.find(type);
}

const Entry* find(int index) {
    for (const Entry& entry : kEntries)
        if (entry.index == index) return &entry;
    return nullptr;
}

Layer* make(int index, bool reference) {
    const Entry* entry = find(index);
    if (!entry) return nullptr;
    return catch_no_memory("create_layer", (Layer*)nullptr, [&] {
        std::unique_ptr<Layer> layer(reference ? entry->reference() : entry->fast());
        layer->typeindex = entry->index;
        layer->type = entry->type;
        return layer.release();
    });
}

}  // namespace

int layer_to_index(const char* type) {
    const Entry* entry = find(type);
    return entry ? entry->index : -1;
}

const char* layer_type_name(int index) {
    const Entry* entry = find(index);
    return entry ? entry->type : nullptr;
}

Layer* create_layer(const char* type) { return create_layer(layer_to_index(type)); }
Layer* create_layer(int index) { return make(index, false); }
Layer* create_layer_reference(const char* type) {
    return create_layer_reference(layer_to_index(type));
}
Layer* create_layer_reference(int index) { return make(index, true); }

const Layer* layer_prototype(const char* type) {
    static const std::vector<std::unique_ptr<Layer>> prototypes = [] {
        std::vector<std::unique_ptr<Layer>> all;
        for (const Entry& entry : kEntries) all.emplace_back(make(entry.index, true));
        return all;
    }();
    const Entry* entry = find(type);
    return entry ? prototypes[(size_t)(entry - kEntries)].get() : nullptr;
}

const char* layer_kernel_family(const char* type) {
    static const struct {
        const char *type, *family;
    } kFamilies[] = {
#include "layer_families.inc"
        {nullptr, nullptr}};
    for (const auto* entry = kFamilies; entry->type; entry++)
        if (strcmp(entry->type, type) == 0) return entry->family;
    return nullptr;
}

static const int kOwnLayers = 1 << 16;

int stored_index(int typeindex) {
    return typeindex < kCustomLayerBit ? typeindex : typeindex | kOwnLayers;
}

int layer_of_stored_index(int stored) {
    const int index = stored >= kOwnLayers ? stored & ~kOwnLayers : stored;
    const bool canonical = index >= 0 && stored_index(index) == stored;
    return canonical && find(index) ? index : -1;
}

int custom_of_stored_index(int stored) {
    const bool custom = stored > 0 && stored < kOwnLayers && (stored & kCustomLayerBit) != 0;
    return custom ? stored & ~kCustomLayerBit : -1;
}

std::vector<std::string> layer_types() {
    std::vector<std::string> types;
    for (int i = 0, left = sizeof(kEntries) / sizeof(kEntries[0]); left > 0; i++)
        if (const Entry* entry = find(i)) types.push_back(entry->type), left--;
    return types;
}

}  // namespace quoll
