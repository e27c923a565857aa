// Choices and loops: layers whose inputs are computed while they run.
#include <algorithm>

#include "layer/common/tensor.h"
#include "layer/control/loop.h"
#include "layer/elementwise/select.h"
#include "plan/executor.h"
#include "runtime/exceptions.h"

namespace quoll {

namespace {

// Iterations after which a loop is assumed never to end, and the deepest nesting of loops.
const int kMostIterations = 1 << 20;
const int kDeepestLoop = 32;

}  // namespace

// Computes the input that a Select wants, now that its condition is there.
int Executor::run_choice(const Select& layer) {
    if (layer.bottoms.size() != 3)
        return layer.fail("expected 3 inputs, got %zu", layer.bottoms.size());
    Mat condition = blobs[layer.bottoms[0]];
    QUOLL_RETURN_IF_ERROR(convert_input(layer, &condition));
    const int chosen = layer.choose_input(condition);
    return chosen < 0 ? chosen : run_within({layer.bottoms[(size_t)chosen]});
}

// Computes blobs while another one is being computed.
int Executor::run_within(std::vector<int> wanted) {
    wanted.erase(
        std::remove_if(wanted.begin(), wanted.end(), [&](int id) { return blobs[id].dims != 0; }),
        wanted.end());
    if (wanted.empty()) return kOk;
    // Layers outside the branch may still read what it computes.
    const bool lightmode = opt.lightmode;
    opt.lightmode = false;
    depth_++;
    const int status = run_for(wanted);
    depth_--;
    opt.lightmode = lightmode;
    return status;
}

// The blobs that depend on what a loop's start gives, except its end.
std::vector<int> Executor::blobs_of_body(const Layer& start, const Layer& end) const {
    std::vector<char> seen(graph_->layers.size(), 0);
    std::vector<int> open = start.tops, found;
    while (!open.empty()) {
        const int blob = open.back();
        open.pop_back();
        for (int reader : graph_->consumers[blob]) {
            const Layer* layer = graph_->layers[reader];
            if (layer == &end || seen[reader]) continue;
            seen[reader] = 1;
            open.insert(open.end(), layer->tops.begin(), layer->tops.end());
            found.insert(found.end(), layer->tops.begin(), layer->tops.end());
        }
    }
    return found;
}

// Runs the body of a loop as often as its count and condition say.
int Executor::run_loop(int index, const LoopEnd& end) {
    const Layer& start = *graph_->layers[graph_->blobs[end.bottoms[0]].producer];
    const size_t most = end.bottoms.size() - 2;
    const size_t states = most - std::min(most, (size_t)end.scans);
    if (start.tops.size() != states + 3 || end.tops.size() != states + (size_t)end.scans)
        return end.fail("its LoopStart has %zu outputs, expected %zu", start.tops.size(),
                        states + 3);
    if (loop_depth_ >= kDeepestLoop) return end.fail("more than %d loops in loops", kDeepestLoop);
    // If no iteration is run, the values of the start and what follows from them are those of
    // iteration 0.
    const std::vector<int> body = blobs_of_body(start, end);
    std::vector<Mat> first, before;
    for (int id : start.tops) first.push_back(blobs[id]);
    for (int id : body) before.push_back(blobs[id]);
    std::vector<std::vector<Mat>> scans((size_t)end.scans);
    loop_depth_++;
    std::vector<Mat> carried;
    carried.reserve(states);
    const int status =
        catch_no_memory("LoopEnd", [&] { return run_iterations(start, end, body, &scans); });
    loop_depth_--;
    for (size_t i = 0; i < states; i++) carried.push_back(blobs[start.tops[3 + i]]);
    for (size_t i = 0; i < first.size(); i++) blobs[start.tops[i]] = first[i];
    for (size_t i = 0; i < body.size(); i++) blobs[body[i]] = before[i];
    QUOLL_RETURN_IF_ERROR(status);
    has_run[index] = 1;
    for (size_t i = 0; i < states; i++) blobs[end.tops[i]] = carried[i];
    for (size_t i = 0; i < scans.size(); i++) {
        Mat all;
        QUOLL_RETURN_IF_ERROR(end.stack(scans[i], (int)i, &all, opt));
        QUOLL_RETURN_IF_ERROR(store_output(end, states + i, &all));
    }
    return kOk;
}

int Executor::run_iterations(const Layer& start, const LoopEnd& end, const std::vector<int>& body,
                             std::vector<std::vector<Mat>>* scans) {
    double count = 0, going = 0;
    QUOLL_RETURN_IF_ERROR(read_number(start, blobs[start.tops[0]], &count));
    QUOLL_RETURN_IF_ERROR(read_number(start, blobs[start.tops[2]], &going));
    for (int i = 0; i < count && going != 0; i++) {
        if (i >= kMostIterations) return end.fail("more than %d iterations", kMostIterations);
        QUOLL_RETURN_IF_ERROR(run_iteration(start, end, i, body, &going, scans));
    }
    return kOk;
}

int Executor::run_iteration(const Layer& start, const LoopEnd& end, int number,
                            const std::vector<int>& body, double* going,
                            std::vector<std::vector<Mat>>* scans) {
    if (number > 0)
        for (int id : body)
            if (!is_input[id]) blobs[id].release();
    Mat& at = blobs[start.tops[1]];
    QUOLL_RETURN_IF_ERROR(create_tensor(Shape(1, DType::s32), &at, opt));
    *(int32_t*)at.data = number;
    std::vector<Mat> made;
    QUOLL_RETURN_IF_ERROR(run_within({end.bottoms.begin() + 1, end.bottoms.end()}));
    for (size_t i = 1; i < end.bottoms.size(); i++) made.push_back(blobs[end.bottoms[i]]);
    Mat condition = made[0];
    QUOLL_RETURN_IF_ERROR(convert_input(end, &condition));
    QUOLL_RETURN_IF_ERROR(read_number(end, condition, going));
    blobs[start.tops[2]] = made[0];
    const size_t states = start.tops.size() - 3;
    for (size_t i = 0; i < states; i++) blobs[start.tops[3 + i]] = made[1 + i];
    for (size_t i = 0; i < scans->size(); i++) {
        Mat& part = made[1 + states + i];
        QUOLL_RETURN_IF_ERROR(convert_input(end, &part));
        (*scans)[i].push_back(part);
    }
    return kOk;
}

}  // namespace quoll
