// Size expressions, as param files have them: "*(0w,2),-1" is twice the width of blob 0, and -1.
#ifndef QUOLL_EXPRESSION_H
#define QUOLL_EXPRESSION_H

#include <string>
#include <vector>

#include "quoll/mat.h"

namespace quoll {

// How many blobs an expression refers to: the highest number + 1; 0, after a message, for a text
// that is none.
int count_expression_blobs(const std::string& expr);
// The values of the list for blobs of these sizes (those of Mat::logical_shape), fractions cut off.
// 0, or a negative code after a message: not an expression, a blob that is not there, division by 0.
int eval_list_expression(const std::string& expr, const std::vector<Mat>& blobs,
                         std::vector<int>& outlist);

}  // namespace quoll

#endif
