// map x1
// language: metal2.4
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
};

struct Params {
    uint count;
};
typedef float type_2[1];

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(2)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2& y0_ [[buffer(1)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    uint i = {};
    uint v0_ = workgroup_count.x * 256u;
    i = (workgroup_id.x * 256u) + local_index;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e24 = i;
            i = _e24 + v0_;
        }
        loop_init = false;
        uint _e11 = i;
        uint _e14 = params.count;
        if (_e11 < _e14) {
        } else {
            break;
        }
        {
            uint _e17 = i;
            float v1_ = x0_[_e17];
            uint _e21 = i;
            y0_[_e21] = -(v1_);
        }
    }
    return;
}
