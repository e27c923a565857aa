#ifndef QUOLL_BLOB_H
#define QUOLL_BLOB_H

#include <string>

#include "quoll/mat.h"

namespace quoll {

// An edge of the graph. Layer indexes count from 0; -1 is "none".
class Blob {
public:
    Blob() : producer(-1), consumer(-1) {}
    std::string name;
    int producer;
    int consumer;  // the last layer that reads this blob
    Mat shape;     // the hint of the param file, without data; dims 0 if there is none
};

}  // namespace quoll

#endif
