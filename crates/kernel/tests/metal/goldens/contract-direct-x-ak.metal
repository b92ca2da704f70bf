// contract direct/1x1 a4k b4k
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
typedef metal::float4 type_3[1];
typedef float type_4[1];

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(3)]]
, device type_3 const& x0_ [[buffer(0)]]
, device type_3 const& x1_ [[buffer(1)]]
, device type_4& y0_ [[buffer(2)]]
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
        uint v0_ = id / _e21;
        uint _e25 = params.tiles_m;
        uint row = v0_ % _e25;
        uint _e29 = params.tiles_m;
        uint z = v0_ / _e29;
        uint _e35 = params.m;
        uint v1_ = metal::min(row, _e35 - 1u);
        uint _e41 = params.n;
        uint v2_ = metal::min(column, _e41 - 1u);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e89 = k;
                k = _e89 + 4u;
            }
            loop_init = false;
            uint _e47 = k;
            uint _e50 = params.k;
            if (_e47 < _e50) {
            } else {
                break;
            }
            {
                uint _e57 = k;
                uint v3_ = (((z * 20u) + (v1_ * 4u)) + _e57) >> 2u;
                metal::float4 v4_ = x0_[v3_];
                uint _e67 = k;
                metal::float4 v5_ = x1_[((v2_ * 4u) + _e67) >> 2u];
                float _e75 = sum_0_0_;
                sum_0_0_ = metal::fma(v5_.x, v4_.x, _e75);
                float _e79 = sum_0_0_;
                sum_0_0_ = metal::fma(v5_.y, v4_.y, _e79);
                float _e83 = sum_0_0_;
                sum_0_0_ = metal::fma(v5_.z, v4_.z, _e83);
                float _e87 = sum_0_0_;
                sum_0_0_ = metal::fma(v5_.w, v4_.w, _e87);
            }
        }
        uint _e94 = params.m;
        if (row < _e94) {
            float v6_ = sum_0_0_;
            uint _e99 = params.n;
            if (column < _e99) {
                y0_[((z * 30u) + (row * 6u)) + column] = v6_;
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
