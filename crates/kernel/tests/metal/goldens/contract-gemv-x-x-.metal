// contract gemv 2x1/1x1/64 a1 b1
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
struct type_3 {
    float inner[144];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(3)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2 const& x1_ [[buffer(1)]]
, device type_2& y0_ [[buffer(2)]]
, threadgroup type_3& lanes
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    float sum_0_0_ = 0.0;
    uint from_2_ = 0u;
    float total = {};
    uint id = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.total;
    if (id < _e10) {
        uint _e14 = params.tiles_n;
        uint column = id % _e14;
        uint _e18 = params.tiles_n;
        uint _e22 = params.tiles_m;
        uint tile_m = (id / _e18) % _e22;
        uint group = local_index & 1u;
        uint offset = local_index >> 1u;
        uint row = (tile_m * 2u) + group;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e58 = from_2_;
                from_2_ = _e58 + 64u;
            }
            loop_init = false;
            uint _e35 = from_2_;
            uint _e38 = params.k;
            if (_e35 < _e38) {
            } else {
                break;
            }
            {
                uint _e40 = from_2_;
                uint _e44 = params.k;
                bool v0_ = (_e40 + offset) < _e44;
                float v1_ = x1_[0];
                float v2_ = x0_[0];
                float _e56 = sum_0_0_;
                sum_0_0_ = metal::fma(v0_ ? v2_ : 0.0, v0_ ? v1_ : 0.0, _e56);
            }
        }
        uint output = offset >> 6u;
        uint part = offset & 63u;
        float _e65 = sum_0_0_;
        total = _e65;
        uint place = group + output;
        uint first = (place * 64u) + part;
        float _e73 = total;
        lanes.inner[first] = _e73;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool v3_ = part < 8u;
        if (v3_) {
            float v4_ = lanes.inner[first];
            float v5_ = lanes.inner[first + 8u];
            float v6_ = lanes.inner[first + 16u];
            float v7_ = lanes.inner[first + 24u];
            float v8_ = lanes.inner[first + 32u];
            float v9_ = lanes.inner[first + 40u];
            float v10_ = lanes.inner[first + 48u];
            float v11_ = lanes.inner[first + 56u];
            float v12_ = ((((((v4_ + v5_) + v6_) + v7_) + v8_) + v9_) + v10_) + v11_;
            total = v12_;
        }
        uint first_2_ = ((place * 8u) + part) + 128u;
        if (v3_) {
            float _e128 = total;
            lanes.inner[first_2_] = _e128;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool v13_ = part < 1u;
        if (v13_) {
            float v14_ = lanes.inner[first_2_];
            float v15_ = lanes.inner[first_2_ + 1u];
            float v16_ = lanes.inner[first_2_ + 2u];
            float v17_ = lanes.inner[first_2_ + 3u];
            float v18_ = lanes.inner[first_2_ + 4u];
            float v19_ = lanes.inner[first_2_ + 5u];
            float v20_ = lanes.inner[first_2_ + 6u];
            float v21_ = lanes.inner[first_2_ + 7u];
            float v22_ = ((((((v14_ + v15_) + v16_) + v17_) + v18_) + v19_) + v20_) + v21_;
            total = v22_;
        }
        if (v13_) {
            uint _e179 = params.m;
            if ((row + output) < _e179) {
                float v23_ = total;
                uint _e184 = params.n;
                if (column < _e184) {
                    y0_[0] = v23_;
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
    } else {
        return;
    }
}
