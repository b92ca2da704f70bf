// row serial 64x1 rows fast unrolled 1
// language: metal2.4
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
};

struct Params {
    uint rows;
    uint width;
};
typedef float type_2[1];

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(2)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2& y0_ [[buffer(1)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float sum = 0.0;
    uint v0_ = (((workgroup_id.y * workgroup_count.x) + workgroup_id.x) * 64u) + local_index;
    uint _e13 = params.rows;
    uint row = metal::min(v0_, _e13 - 1u);
    float v1_ = x0_[0];
    float _e22 = sum;
    sum = _e22 + v1_;
    float v2_ = sum;
    uint _e27 = params.rows;
    if (v0_ < _e27) {
        y0_[row] = v2_;
        return;
    } else {
        return;
    }
}
