// contract direct/1x1 a1 b1
// language: metal2.4
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size3;
};

struct Params {
    uint m;
    uint n;
    uint tiles_m;
    uint tiles_n;
    uint total;
    uint k;
};
typedef float type_2[1];

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(3)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2 const& x1_ [[buffer(1)]]
, device type_2& y0_ [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    float sum_0_0_ = 0.0;
    uint k = 0u;
    uint id = (((workgroup_id.y * workgroup_count.x) + workgroup_id.x) * 64u) + local_index;
    uint _e13 = params.total;
    if (id < _e13) {
        uint _e17 = params.tiles_n;
        uint column = id % _e17;
        uint _e21 = params.tiles_n;
        uint _e25 = params.tiles_m;
        uint row = (id / _e21) % _e25;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e44 = k;
                k = _e44 + 1u;
            }
            loop_init = false;
            uint _e31 = k;
            uint _e34 = params.k;
            if (_e31 < _e34) {
            } else {
                break;
            }
            {
                float v0_ = x0_[0];
                float v1_ = x1_[0];
                float _e42 = sum_0_0_;
                sum_0_0_ = metal::fma(v1_, v0_, _e42);
            }
        }
        uint _e49 = params.m;
        if (row < _e49) {
            float v2_ = sum_0_0_;
            uint _e54 = params.n;
            if (column < _e54) {
                y0_[0] = v2_;
                return;
            } else {
                return;
            }
        } else {
            return;
        }
    } else {
        return;
    }
}
