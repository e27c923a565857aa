#include "gpu/tuning.h"

#include <string.h>

namespace quoll {

bool TuningTable::find(const Words& key, Words* form) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto row = rows_.find(key);
    if (row == rows_.end()) return false;
    *form = row->second;
    return true;
}

void TuningTable::put(const Words& key, const Words& form) {
    std::lock_guard<std::mutex> lock(mutex_);
    rows_[key] = form;
}

std::vector<unsigned char> TuningTable::save() const {
    std::lock_guard<std::mutex> lock(mutex_);
    Words words;
    for (const auto& row : rows_) {
        words.push_back((uint32_t)row.first.size());
        words.push_back((uint32_t)row.second.size());
        words.insert(words.end(), row.first.begin(), row.first.end());
        words.insert(words.end(), row.second.begin(), row.second.end());
    }
    const unsigned char* const bytes = (const unsigned char*)words.data();
    return std::vector<unsigned char>(bytes, bytes + words.size() * 4);
}

bool TuningTable::merge(const unsigned char* data, size_t bytes) {
    if (bytes % 4) return false;
    Words words(bytes / 4);
    if (bytes) memcpy(words.data(), data, bytes);
    std::map<Words, Words> rows;
    for (size_t i = 0; i < words.size();) {
        if (words.size() - i < 2) return false;
        const size_t key = words[i], form = words[i + 1];
        if (key + form > words.size() - i - 2) return false;
        const auto begin = words.begin() + (std::ptrdiff_t)i + 2;
        const auto middle = begin + (std::ptrdiff_t)key;
        rows[Words(begin, middle)] = Words(middle, middle + (std::ptrdiff_t)form);
        i += 2 + key + form;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    rows_.insert(rows.begin(), rows.end());
    return true;
}

}  // namespace quoll
