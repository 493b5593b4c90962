// -2u of gelu_multiply.cpp is x * (kGeluLinear + kGeluCubic * x^2).
#pragma once

namespace inlay::kernels {

inline constexpr float kGeluLinear = -1.59576912f;   // -2 sqrt(2 / pi)
inline constexpr float kGeluCubic = -0.0713548163f;  // the same times 0.044715

}  // namespace inlay::kernels
