// For operators that go through the lines of a blob, that is, the values that are summed up or
// normalised together.
#ifndef QUOLL_LAYER_VULKAN_LINES_H
#define QUOLL_LAYER_VULKAN_LINES_H

#include "layer/vulkan/axes.h"

namespace quoll {

// An axis of an input and an output, with the steps of both and of a table of factors.
struct LineAxis {
    uint32_t size, from, to, factor;
};

// The combinations of indexes of `within` make up a line; those of `across` tell which one.
struct Lines {
    std::vector<LineAxis> within, across;  // the fastest of the memory first; at most 6 each

    static uint32_t total(const std::vector<LineAxis>& axes) {
        uint32_t count = 1;
        for (const LineAxis& axis : axes) count *= axis.size;
        return count;
    }
    uint32_t count() const { return total(across); }
    uint32_t length() const { return total(within); }
    // A line has only one invocation if it is short, or if there are more lines than there can be
    // groups.
    bool serial() const { return length() < 32 || count() > 65535; }

    // The Table of common/lines.glsl.
    int table(Recorder& r, Binding* binding) const {
        std::vector<uint32_t> words;
        for (const std::vector<LineAxis>* axes : {&within, &across}) {
            for (size_t i = 0; i < 6; i++) {
                const LineAxis axis = i < axes->size() ? (*axes)[i] : LineAxis{1, 0, 0, 0};
                words.insert(words.end(), {axis.size, axis.from, axis.to, axis.factor});
            }
        }
        return r.constants(words, binding);
    }
    // A dispatch of a shader with kSerial, the numbers of axes within and across as specialisation
    // constants 0, 1, 2, before those in `constants`.
    void dispatch(Recorder& r, Shader shader, const Words& constants,
                  const std::vector<Binding>& bindings, const Words& push) const {
        Words all = {serial(), (int)within.size(), (int)across.size()};
        all.insert(all.end(), constants.begin(), constants.end());
        if (serial())
            r.dispatch_linear(shader, all, bindings, push, count());
        else
            r.dispatch(shader, all, bindings, push, count());
    }
};

// Softmax of lines that follow each other without gaps.
void record_softmax(Recorder& r, const Value& from, const Value& to, uint32_t length,
                    uint32_t lines);

}  // namespace quoll

#endif
