// Results of tuning on a device: the best form of each dispatch.
#ifndef QUOLL_GPU_TUNING_H
#define QUOLL_GPU_TUNING_H

#include <stddef.h>
#include <stdint.h>

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

namespace quoll {

// Any number of threads. What keys and forms mean is their users' business; a form of another
// program is to be checked where it is used.
class TuningTable {
public:
    typedef std::vector<uint32_t> Words;
    // Whether sizes that are compiled from now on are measured.
    void set_on(bool on) { on_ = on; }
    bool is_on() const { return on_; }

    bool find(const Words& key, Words* form) const;
    void put(const Words& key, const Words& form);
    // As words: for each row the lengths of key and form, then both.
    std::vector<unsigned char> save() const;
    // Adds what save() wrote; rows that are there already stay. False, and nothing is added, if the
    // bytes are none.
    bool merge(const unsigned char* data, size_t bytes);

private:
    mutable std::mutex mutex_;
    std::map<Words, Words> rows_;
    std::atomic<bool> on_{false};
};

}  // namespace quoll

#endif
